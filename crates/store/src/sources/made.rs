//! Files that t2t makes among the sources: what they mean before they are there, and how they come there.
//!
//! It does not know what they are made of.

use std::collections::BTreeMap;
use std::io;

use t2t_model::action::Source;
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_python::PythonFile;
use t2t_python::closure::{Tree, closure};

use super::Sources;
use super::imports::Imported;
use crate::fs;

impl Sources {
    /// Returns the closure of the kernel file at `path` as it is once the file holds `bytes`, which `python` says the meaning of, whatever it holds now.
    #[must_use]
    pub fn closure_with(&self, path: &RepoPath, bytes: Digest, python: &PythonFile) -> BTreeMap<RepoPath, Source> {
        let found = closure(path, &mut With { sources: self, path, python });
        let source = |other: &RepoPath, python: &PythonFile| {
            let bytes = if other == path { bytes } else { self.bytes(other)? };
            Some(Source { meaning: python.meaning, bytes })
        };
        found.iter().filter_map(|(path, python)| Some((path.clone(), source(path, python)?))).collect()
    }

    /// Writes the file at `path`, or removes it where there is nothing to be written. Later calls, and later builds, know it as it is then.
    pub fn put(&self, path: &RepoPath, bytes: Option<&[u8]>) -> io::Result<()> {
        let place = path.under(&self.root);
        match bytes {
            Some(bytes) => fs::write(&place, bytes)?,
            None => fs::remove(&place)?,
        }
        let mut state = self.state.borrow_mut();
        // What results were made from is what was written.
        state.first.remove(path);
        self.digest_now(path, &mut state);
        Ok(())
    }
}

/// The workspace's files with another one at a place, for the code that follows imports.
struct With<'a> {
    sources: &'a Sources,
    path: &'a RepoPath,
    python: &'a PythonFile,
}

impl Tree for With<'_> {
    fn read(&mut self, path: &RepoPath) -> Option<PythonFile> {
        if path == self.path { Some(self.python.clone()) } else { self.sources.python(path) }
    }

    fn homes(&mut self, name: &str) -> Vec<String> {
        Imported(self.sources).homes(name)
    }
}
