//! What kernels are compared with beside torch: whether the workspace has the functions that ops.yaml names, and which versions the modules of others have.
//!
//! It imports nothing, so of an installed module it knows no function.

use std::collections::BTreeMap;
use std::path::Path;

use t2t_host::toolchain::Toolchain;
use t2t_model::problem::Listing;
use t2t_plan::graph::expand::{KernelFile, MODULE};
use t2t_spec::names::suggestion;
use t2t_spec::{Baseline, BaselineFunction, Op, Profile, Spec};
use t2t_store::fs;
use t2t_store::sources::Sources;

use super::{NoSession, OPS};

/// Fails, with the places in ops.yaml, where a file of the workspace lacks the function that a baseline names, or is not there. `found` are the workspace's files, read.
pub(super) fn are_there(spec: &Spec, found: &BTreeMap<String, KernelFile>, root: &Path) -> Result<(), NoSession> {
    let lacking: Vec<(&BaselineFunction, String, String)> =
        spec.ops.iter().flat_map(|op| functions(op).filter_map(move |one| lacks(op, one, found))).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let bytes = fs::read(&root.join(OPS)).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let listing = Listing::new(OPS, &text);
    let problem = |(function, message, hint): (&BaselineFunction, String, String)| {
        listing.problem(function.place, message).with_hint(hint)
    };
    Err(NoSession::Spec(lacking.into_iter().map(problem).collect()))
}

/// Returns the versions of the toolchain, and of each module that a baseline is of, where that is known without importing it.
pub(super) fn versions(toolchain: Option<&Toolchain>, spec: &Spec, sources: &Sources) -> BTreeMap<String, String> {
    let known = toolchain.map(|toolchain| toolchain.versions.clone()).unwrap_or_default();
    let packages = spec.ops.iter().flat_map(functions).filter_map(BaselineFunction::package);
    let modules = packages.filter_map(|name| Some((format!("{MODULE}{name}"), sources.version(name)?)));
    known.into_iter().chain(modules).collect()
}

/// Returns the functions that an op's kernels are compared with on a device.
fn functions(op: &Op) -> impl Iterator<Item = &BaselineFunction> {
    op.settings(Profile::Cuda).baselines.iter().filter_map(Baseline::function)
}

fn lacks<'a>(
    op: &Op,
    one: &'a BaselineFunction,
    found: &BTreeMap<String, KernelFile>,
) -> Option<(&'a BaselineFunction, String, String)> {
    let file = one.file.as_ref()?;
    let known = found.get(file)?;
    if known.closure.is_empty() {
        let message = format!("op `{}`: baseline `{}`: no file `{file}`", op.name, one.name);
        return Some((one, message, "write the file, or take the baseline out".to_owned()));
    }
    // A file that is no Python says so when it is imported, and is a reason without a figure.
    let binds = known.binds.as_ref()?;
    let first = one.function.split('.').next().unwrap_or_default();
    let names = || binds.callables.iter().chain(&binds.names).map(String::as_str);
    if names().any(|name| name == first || name == "*") {
        return None;
    }
    let message = format!("op `{}`: baseline `{}`: `{file}` has no `{first}`", op.name, one.name);
    Some((one, message, suggestion(first, binds.callables.iter().map(String::as_str))))
}
