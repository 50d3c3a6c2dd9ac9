//! The files that keep rounds of improvement, one an op, in `assets/rounds`: they go with the repository, as published results do.
//!
//! It does not know what they say.

use std::collections::BTreeMap;
use std::path::Path;

use t2t_model::digest::Digest;
use t2t_spec::Spec;
use t2t_store::fingerprint::{Fingerprint, Observed};
use t2t_store::fs;

/// The folder.
const FOLDER: &str = "assets/rounds";

/// Returns the place of the rounds of an op in the workspace.
#[must_use]
pub(crate) fn rounds_path(op: &str) -> String {
    format!("{FOLDER}/{op}.json")
}

/// Returns the place of their picture.
#[must_use]
pub(crate) fn picture_path(op: &str) -> String {
    format!("{FOLDER}/{op}.svg")
}

/// Returns the digests of the files that there are, by op. What cannot be read counts as absent.
pub(super) fn digests(spec: &Spec, root: &Path) -> BTreeMap<String, Digest> {
    let digest = |op: &str| Some(Digest::of(&fs::read(&root.join(rounds_path(op))).ok()?));
    let ops = ops(root).into_iter().filter(|op| spec.op(op).is_some());
    ops.filter_map(|op| Some((op.clone(), digest(&op)?))).collect()
}

/// Returns fingerprints of the files, and of the folder that gets new ones.
pub(super) fn fingerprints(root: &Path) -> Vec<Fingerprint<'static>> {
    let folder = Fingerprint { path: FOLDER.into(), was: Observed::Time(fs::folder_time(&root.join(FOLDER))) };
    let files = ops(root).into_iter().map(|op| Fingerprint::of_file(root, &rounds_path(&op)));
    std::iter::once(folder).chain(files).collect()
}

/// Returns the ops that have a file.
fn ops(root: &Path) -> Vec<String> {
    let names = fs::names(&root.join(FOLDER)).into_iter();
    names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
}
