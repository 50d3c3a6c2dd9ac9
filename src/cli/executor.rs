//! Which cluster performs what depends on a device, as it is named: by `--on`, else by `$T2T_EXECUTOR`.
//!
//! It does not know what a cluster is.

use std::env;

/// Returns the cluster that was named, if one was. `on` is `--on`.
pub(crate) fn named(on: Option<&str>) -> Option<String> {
    let named = on.map_or_else(|| env::var("T2T_EXECUTOR").ok(), |on| Some(on.to_owned()));
    named.filter(|address| !address.is_empty())
}
