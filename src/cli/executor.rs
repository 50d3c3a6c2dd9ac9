//! Which cluster performs what depends on a device, as it is named: by `--on`, else by `$T2T_EXECUTOR`, else by ops.yaml.
//!
//! It does not know what a cluster is.

use std::env;

use t2t_spec::Spec;
use t2t_spec::executor::{EXAMPLES, Executor};

use super::error::CliError;

/// Returns what the command line or the environment names in the place of ops.yaml. `on` is `--on`.
pub(crate) fn given(on: Option<&str>) -> Option<String> {
    on.map_or_else(|| env::var("T2T_EXECUTOR").ok(), |on| Some(on.to_owned()))
}

/// Returns the address of the cluster that is named, if one is.
pub(crate) fn cluster(on: Option<&str>, spec: &Spec) -> Result<Option<String>, CliError> {
    let given = given(on);
    let address = Executor::address(given.as_deref(), spec.executor.as_ref());
    let address = address.map_err(|text| CliError::misuse(format!("`{text}` is no address of a cluster"), EXAMPLES))?;
    Ok(address.map(str::to_owned))
}
