//! What the includes of a workspace's CUDA C++ files reach.
//!
//! It does not know how includes are followed, which is the business of `t2t_cuda`.

use std::collections::BTreeMap;

use t2t_cuda::CudaFile;
use t2t_cuda::closure::closure;
use t2t_model::action::Source;
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;

use super::Sources;
use crate::fs;

impl Sources {
    /// Returns the closure of the CUDA C++ file at `path`, itself and what it includes of the workspace: empty where there is no file.
    pub fn cuda_closure(&self, path: &RepoPath) -> BTreeMap<RepoPath, Source> {
        let found = closure(path, |path| self.cuda(path));
        let source = |(path, meaning): (RepoPath, Digest)| {
            let bytes = self.bytes(&path)?;
            Some((path, Source { meaning, bytes }))
        };
        found.into_iter().filter_map(source).collect()
    }

    /// Returns what the CUDA C++ file at `path` says, or None where there is no file.
    fn cuda(&self, path: &RepoPath) -> Option<CudaFile> {
        let digest = self.bytes(path)?;
        if let Some(cuda) = self.state.borrow().cuda.get(&digest) {
            return Some(cuda.clone());
        }
        let bytes = fs::read(&path.under(&self.root)).ok()?;
        let cuda = t2t_cuda::read(&bytes);
        // The file may have changed since `bytes` looked at it.
        self.state.borrow_mut().cuda.insert(Digest::of(&bytes), cuda.clone());
        Some(cuda)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_in_an_included_file_changes_its_bytes_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| RepoPath::new(&format!("kernels/a/{name}")).unwrap();
        let found = |header: &str| {
            fs::write(&path("v.cu").under(folder.path()), b"#include \"h.cuh\"\n#include \"none.cuh\"\n").unwrap();
            fs::write(&path("h.cuh").under(folder.path()), header.as_bytes()).unwrap();
            Sources::unknown(folder.path(), folder.path()).cuda_closure(&path("v.cu"))
        };
        let (plain, commented, edited) = (found("int x;"), found("int x; // c"), found("int y;"));
        let names: Vec<&RepoPath> = plain.keys().collect();
        assert_eq!(names, [&path("h.cuh"), &path("v.cu")]);
        let header = |found: &BTreeMap<RepoPath, Source>| found[&path("h.cuh")].clone();
        assert_eq!(header(&plain).meaning, header(&commented).meaning);
        assert_ne!(header(&plain).bytes, header(&commented).bytes);
        assert_ne!(header(&plain).meaning, header(&edited).meaning);
        assert!(Sources::unknown(folder.path(), folder.path()).cuda_closure(&path("none.cu")).is_empty());
    }
}
