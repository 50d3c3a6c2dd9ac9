//! The closure of a CUDA C++ file: itself and every file of the workspace that its includes reach.
//!
//! It reads nothing: the caller passes a function that returns what a file says. Includes that a condition leaves out count like others, and the names of files that macros make are unknown.

use std::collections::BTreeMap;

use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;

use crate::CudaFile;

/// Returns `file` and all files that it includes, directly or through others, each with its meaning there; nothing where `read` has no such file.
///
/// A file that is not there is one of the compiler's, or missing.
pub fn closure(file: &RepoPath, mut read: impl FnMut(&RepoPath) -> Option<CudaFile>) -> BTreeMap<RepoPath, Digest> {
    let mut found: BTreeMap<RepoPath, CudaFile> = BTreeMap::new();
    let mut open = vec![file.clone()];
    while let Some(path) = open.pop() {
        if found.contains_key(&path) {
            continue;
        }
        let Some(cuda) = read(&path) else { continue };
        open.extend(cuda.includes.iter().filter_map(|name| beside(&path, name)));
        found.insert(path, cuda);
    }
    // A macro of one file may be used in another.
    let is_spaced = found.values().any(|cuda| cuda.is_stringizing);
    let meaning = |cuda: &CudaFile| if is_spaced { cuda.spaced } else { cuda.meaning };
    found.iter().map(|(path, cuda)| (path.clone(), meaning(cuda))).collect()
}

/// Returns the file that `name` means in an include of the file at `path`; None where it leaves the workspace.
fn beside(path: &RepoPath, name: &str) -> Option<RepoPath> {
    let mut parts: Vec<&str> = path.as_str().split('/').collect();
    parts.pop();
    if name.starts_with('/') {
        return None;
    }
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    RepoPath::new(&parts.join("/")).ok()
}

#[cfg(test)]
mod tests;
