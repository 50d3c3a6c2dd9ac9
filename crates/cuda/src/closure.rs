//! The closure of CUDA C++ files: themselves and every file of the workspace that their includes reach.
//!
//! It reads nothing: the caller passes a function that returns what a file says. Includes that a condition leaves out count like others, and the names of files that macros make are unknown.

use std::collections::BTreeMap;

use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;

use crate::CudaFile;

/// Files, and all that they include.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closure {
    /// Each file with its meaning there.
    pub files: BTreeMap<RepoPath, Digest>,
    /// Whether one of them includes a header of torch's.
    pub includes_torch: bool,
}

/// Returns `files` and all files that they include, directly or through others, without those that `read` does not have.
///
/// A file that is not there is one of the compiler's, or missing.
pub fn closure(files: &[RepoPath], mut read: impl FnMut(&RepoPath) -> Option<CudaFile>) -> Closure {
    let mut found: BTreeMap<RepoPath, CudaFile> = BTreeMap::new();
    let mut open = files.to_vec();
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
    Closure {
        includes_torch: found.values().any(|cuda| cuda.includes_torch),
        files: found.iter().map(|(path, cuda)| (path.clone(), meaning(cuda))).collect(),
    }
}

/// Returns the file that `name` means in the file at `path`, as in an include; None where it leaves the workspace.
#[must_use]
pub fn beside(path: &RepoPath, name: &str) -> Option<RepoPath> {
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
