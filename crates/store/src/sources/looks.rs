//! What was looked at: the files, folders and modules that this build's results may rest on, present or absent.
//!
//! It does not know what was made of them.

use std::collections::BTreeMap;
use std::io;

use t2t_model::path::RepoPath;

use super::Sources;
use crate::fingerprint::{Fingerprint, Known, Observed};
use crate::fs;
use crate::installed::{self, Found};

impl Sources {
    /// Returns all files of the workspace that were looked at, absent ones too, in their state at the first look: the build's results come from that state.
    #[must_use]
    pub fn looked_at(&self) -> BTreeMap<RepoPath, Option<Known>> {
        let state = self.state.borrow();
        let own = state.first.iter().filter(|(path, _)| installed::module(path).is_none());
        own.map(|(path, known)| (path.clone(), *known)).collect()
    }

    /// Returns fingerprints of everything else that was looked at: folders that may become packages, installed modules, and the folders in which they were
    /// searched. None if a name is not UTF-8.
    #[must_use]
    pub fn fingerprints(&self) -> Option<Vec<Fingerprint<'static>>> {
        let state = self.state.borrow();
        let absent = state.packages.iter().filter(|(_, is_there)| !**is_there);
        let mut fingerprints: Vec<Fingerprint<'static>> =
            absent.map(|(path, _)| Fingerprint { path: path.clone().into(), was: Observed::Time(None) }).collect();
        for (path, known) in &state.first {
            if let Some(Found::File(file)) = installed::module(path).map(|module| self.installed.find(module)) {
                fingerprints.push(Fingerprint { path: file.to_str()?.to_owned().into(), was: Observed::File(*known) });
            }
        }
        for folder in self.installed.searched() {
            let was = Observed::Time(fs::folder_time(&folder));
            fingerprints.push(Fingerprint { path: folder.to_str()?.to_owned().into(), was });
        }
        Some(fingerprints)
    }

    /// Returns whether the file at `path`, or one below it, was looked at.
    #[must_use]
    pub fn has_looked_at(&self, path: &RepoPath) -> bool {
        let state = self.state.borrow();
        let below = format!("{path}/");
        let is_looked = state.first.contains_key(path) || state.packages.contains_key(path.as_str());
        is_looked || state.first.keys().any(|looked| looked.as_str().starts_with(&below))
    }

    /// Returns the paths of all files and folders that were looked at, absent ones too.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let state = self.state.borrow();
        state.first.keys().map(ToString::to_string).chain(state.packages.keys().cloned()).collect()
    }

    /// Returns the first workspace file that was looked for and may not be read, and why. A result without it would depend on rights, which no key holds.
    #[must_use]
    pub fn denied(&self) -> Option<(RepoPath, io::Error)> {
        let state = self.state.borrow();
        let mut absent: Vec<&RepoPath> =
            state.looked.iter().filter(|(_, digest)| digest.is_none()).map(|(path, _)| path).collect();
        absent.retain(|path| installed::module(path).is_none());
        absent.sort();
        absent.into_iter().find_map(|path| Some((path.clone(), fs::denied(&path.under(&self.root))?)))
    }
}
