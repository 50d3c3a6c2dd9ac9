//! What the includes of a workspace's CUDA C++ files reach.
//!
//! It does not know how includes are followed, which is the business of `t2t_cuda`.

use std::collections::BTreeMap;
use std::slice;

use t2t_cuda::CudaFile;
use t2t_cuda::closure::{beside, closure};
use t2t_model::action::Source;
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;

use super::Sources;
use crate::fs;

/// A file in CUDA C++ with all that it includes.
#[derive(Debug, Clone, Default)]
pub struct CudaClosure {
    /// The files; none where it is not there.
    pub files: BTreeMap<RepoPath, Source>,
    /// Whether it is part of an extension of torch's: it, or a file beside it that the operator names, includes torch's headers.
    pub is_extension: bool,
}

impl Sources {
    /// Returns the closure of the CUDA C++ file at `path`, itself and what it includes of the workspace: empty where there is no file.
    ///
    /// Where the files in C++ that `operator`, a Python file, names make an extension of torch's with it, their closure is part of it.
    pub fn cuda_closure(&self, path: &RepoPath, operator: &RepoPath) -> CudaClosure {
        let with_named = closure(&self.with_named(path, operator), |path| self.cuda(path));
        let is_extension = with_named.includes_torch;
        let found = if is_extension { with_named } else { closure(slice::from_ref(path), |path| self.cuda(path)) };
        let source = |(path, meaning): (RepoPath, Digest)| {
            let bytes = self.bytes(&path)?;
            Some((path, Source { meaning, bytes }))
        };
        CudaClosure { files: found.files.into_iter().filter_map(source).collect(), is_extension }
    }

    /// Returns a CUDA C++ file, if it is there, and the files in C++ that a Python file names: by paths from its own folder, or from the workspace.
    fn with_named(&self, path: &RepoPath, operator: &RepoPath) -> Vec<RepoPath> {
        let is_there = |path: &RepoPath| self.bytes(path).is_some();
        if !is_there(path) {
            return Vec::new();
        }
        let sources = self.python(operator).map(|python| python.sources).unwrap_or_default();
        let from_workspace = |name: &str| RepoPath::new(name).ok().filter(is_there);
        let named = |name: &String| beside(operator, name).filter(is_there).or_else(|| from_workspace(name));
        [path.clone()].into_iter().chain(sources.iter().filter_map(named)).collect()
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
            Sources::unknown(folder.path(), folder.path()).cuda_closure(&path("v.cu"), &path("v.py")).files
        };
        let (plain, commented, edited) = (found("int x;"), found("int x; // c"), found("int y;"));
        let names: Vec<&RepoPath> = plain.keys().collect();
        assert_eq!(names, [&path("h.cuh"), &path("v.cu")]);
        let header = |found: &BTreeMap<RepoPath, Source>| found[&path("h.cuh")].clone();
        assert_eq!(header(&plain).meaning, header(&commented).meaning);
        assert_ne!(header(&plain).bytes, header(&commented).bytes);
        assert_ne!(header(&plain).meaning, header(&edited).meaning);
        let missing = Sources::unknown(folder.path(), folder.path()).cuda_closure(&path("none.cu"), &path("v.py"));
        assert!(missing.files.is_empty());
    }

    #[test]
    fn files_that_the_operator_names_count_where_one_includes_torchs_headers() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| RepoPath::new(&format!("kernels/a/{name}")).unwrap();
        let found = |binding: &str| {
            let operator = b"'''none.cpp'''\nload('m', [here + '/v.cu', HERE / 'b.cpp', 'kernels/a/c.cc', 'd.cpp'])\n";
            let files: [(&str, &[u8]); 4] =
                [("v.cu", b"int x;"), ("b.cpp", binding.as_bytes()), ("c.cc", b"int y;"), ("v.py", operator)];
            for (name, text) in files {
                fs::write(&path(name).under(folder.path()), text).unwrap();
            }
            let found = Sources::unknown(folder.path(), folder.path()).cuda_closure(&path("v.cu"), &path("v.py"));
            (found.files.into_keys().collect::<Vec<_>>(), found.is_extension)
        };
        assert_eq!(found("#include <torch/extension.h>"), (vec![path("b.cpp"), path("c.cc"), path("v.cu")], true));
        assert_eq!(found("// <torch/extension.h>"), (vec![path("v.cu")], false), "t2t compiles what it launches alone");
    }
}
