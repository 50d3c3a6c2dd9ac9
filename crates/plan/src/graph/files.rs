//! From the name of a file to the targets that are made from it: a variant from its kernel files and all that they import or include, an op from its
//! `cases.py` and its reference.
//!
//! It does not know which files there are: it knows those that ops.yaml and imports name.

use std::collections::BTreeSet;
use std::path::Path;

use t2t_model::path::RepoPath;
use t2t_spec::{Op, Spec, Variant};

use crate::graph::expand::Inventory;
use crate::graph::pattern::{fits, is_pattern};
use crate::graph::pick::Unknown;

/// What is known of a workspace's files.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The declared ops.
    pub spec: &'a Spec,
    /// What their files import.
    pub inventory: &'a Inventory,
}

impl Files<'_> {
    /// Returns the targets that are made from the file, from the files in the folder, or from those that the pattern `path` stands for. Paths
    /// are relative to the workspace. None where `path` names no file that is known and does not look like one.
    pub fn targets(&self, path: &str) -> Result<Option<Vec<String>>, Unknown> {
        let first = path.split('/').next().unwrap_or_default();
        let is_pattern_of_targets = is_pattern(first) && !is_python(path);
        if path.contains(':') || self.spec.op(first).is_some() || is_pattern_of_targets {
            return Ok(None);
        }
        let path = path.trim_end_matches('/');
        // A package is the folder that it is.
        let path = path.strip_suffix("/__init__.py").unwrap_or(path);
        let found: Vec<String> = self.spec.ops.iter().flat_map(|op| self.of_op(op, path)).collect();
        if found.is_empty() && looks_like_a_file(path) {
            return Err(unknown(path));
        }
        Ok(Some(found).filter(|found| !found.is_empty()))
    }

    fn of_op(&self, op: &Op, path: &str) -> Vec<String> {
        let mut shared =
            op.cases.iter().chain(op.reference.as_ref().map(|reference| &reference.file)).chain(op.baseline_files());
        let is_one_file = is_python(path) && !is_pattern(path);
        if is_one_file && shared.any(|file| self.is_made_from(file, path)) {
            return vec![op.name.clone()];
        }
        let named = op.variants.iter().filter(|variant| self.is_variant_made_from(variant, path));
        named.map(|variant| format!("{}/{}", op.name, variant.name)).collect()
    }

    fn is_variant_made_from(&self, variant: &Variant, path: &str) -> bool {
        [Some(&variant.file), variant.cuda.as_ref()].into_iter().flatten().any(|file| self.is_made_from(file, path))
    }

    fn is_made_from(&self, file: &str, path: &str) -> bool {
        let imported = self.inventory.files.get(file).into_iter().flat_map(|file| file.closure.keys());
        let files: BTreeSet<&str> = imported.map(RepoPath::as_str).chain([file]).collect();
        files.into_iter().any(|file| names(path, file))
    }
}

/// Returns whether `path` is the file, a folder around it, or a pattern that matches it.
fn names(path: &str, file: &str) -> bool {
    let is_inside = || file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    if is_pattern(path) { fits(path, file) } else { path == file || is_inside() }
}

/// Returns whether a target could not be written so.
#[must_use]
pub fn looks_like_a_file(path: &str) -> bool {
    path.matches('/').count() > 1 || is_python(path) || Path::new(path).extension().is_some_and(|ending| ending == "cu")
}

fn is_python(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "py")
}

fn unknown(path: &str) -> Unknown {
    Unknown {
        message: format!("no variant in ops.yaml is made from `{path}`"),
        hint: "list it under `variants` of its op; `t2t status` names the files that no variant is".to_owned(),
    }
}
