//! What the imports of a workspace's files reach.
//!
//! It does not know how imports are followed, which is the business of `t2t_python`, nor what is made of the closure.

use std::collections::BTreeMap;

use t2t_model::action::Source;
use t2t_model::path::RepoPath;
use t2t_python::closure::{Tree, closure};
use t2t_python::{FaultKind, PythonFile};

use super::{PACKAGES, Sources};
use crate::fs;

impl Sources {
    /// Returns the closure of the kernel file at `path`: empty where there is no file.
    pub fn closure(&self, path: &RepoPath) -> BTreeMap<RepoPath, Source> {
        let found = closure(path, &mut Imported(self));
        let source =
            |path: &RepoPath, python: &PythonFile| Some(Source { meaning: python.meaning, bytes: self.bytes(path)? });
        found.iter().filter_map(|(path, python)| Some((path.clone(), source(path, python)?))).collect()
    }

    /// Returns the first file of the closure of `path` that is too long or too deep to be parsed, and its fault. Its imports are unknown, so the closure is
    /// incomplete.
    pub fn beyond(&self, path: &RepoPath) -> Option<(RepoPath, PythonFile)> {
        let is_beyond =
            |python: &PythonFile| python.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Beyond);
        closure(path, &mut Imported(self)).into_iter().find(|(_, python)| is_beyond(python))
    }

    /// Returns whether the folder at `path` is there, which could be a package.
    fn has_package(&self, path: &str) -> bool {
        let is_there = || fs::folder_time(&self.root.join(path)).is_some();
        *self.state.borrow_mut().packages.entry(path.to_owned()).or_insert_with(is_there)
    }
}

/// The workspace's files, for the code that follows imports.
pub(super) struct Imported<'a>(pub(super) &'a Sources);

impl Tree for Imported<'_> {
    fn read(&mut self, path: &RepoPath) -> Option<PythonFile> {
        self.0.python(path)
    }

    fn homes(&mut self, name: &str) -> Vec<String> {
        if PACKAGES.contains(&name) {
            return vec![String::new()];
        }
        let has = |home: &&String| {
            let module = format!("{home}{name}");
            let file = RepoPath::new(&format!("{module}.py")).ok();
            file.is_some_and(|file| self.0.bytes(&file).is_some()) || self.0.has_package(&module)
        };
        self.0.homes.iter().filter(has).cloned().collect()
    }
}
