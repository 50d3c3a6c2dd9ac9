//! Relevance: which files were looked at by the sessions of a watch, so that a change of any other begins no round.
//!
//! It does not know what was made of them.

use std::collections::BTreeSet;

use t2t_model::path::RepoPath;

use crate::session::Session;

/// What sessions looked at that are gone: the last of the whole workspace, and those of its parts since.
#[derive(Debug, Default)]
pub(crate) struct Relevance(BTreeSet<String>);

impl Relevance {
    /// Forgets all: another session looks at the whole.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds what `session` looked at.
    pub(crate) fn extend(&mut self, session: &Session) {
        self.0.extend(session.looked_at());
    }

    /// Returns whether the file or folder at `path`, or one below it, was looked at.
    pub(crate) fn has(&self, path: &RepoPath) -> bool {
        let below = format!("{path}/");
        let next = self.0.range(below.clone()..).next();
        self.0.contains(path.as_str()) || next.is_some_and(|found| found.starts_with(&below))
    }
}
