//! The one staleness rule: whether an action's earlier result still stands, and if not, why.
//!
//! It reads no file, clock or environment: the caller passes a function that says what a file is now.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use t2t_model::action::Action;
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::path::RepoPath;
use t2t_model::record::{JUDGING, Outcome, Record, Seen};

/// Answers what a file is now, in the terms in which it was seen.
pub type Tree<'a> = dyn Fn(&RepoPath, Seen) -> Seen + 'a;

/// What is to be done about an action.
#[derive(Debug, PartialEq)]
pub enum Decision<'a> {
    /// Its last result stands.
    Fresh(&'a Arc<Record>),
    /// An earlier result stands: it comes back.
    Restore(&'a Arc<Record>),
    /// No result stands.
    Stale(Why),
}

/// A file that an action turned out to read, and that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: RepoPath,
    /// What it was.
    pub old: Seen,
    /// What it is.
    pub new: Seen,
}

/// Why no result stands: data that explain, logs and tests share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It was asked for.
    Forced,
    /// There is no earlier result.
    NeverRan,
    /// The manifest differs from the last result's.
    Changed {
        /// The last result's key.
        old: Digest,
        /// The files that the last run turned out to read, and that are not what they were.
        files: Vec<FileChange>,
    },
    /// The key is the last result's, and something else speaks against it: at least one of these.
    Objection {
        /// It was rejected for this deadline, and the one that it has now is longer.
        deadline: Option<(Duration, Duration)>,
        /// Whether it was rejected by other tolerances, or other words about its results, than there are now.
        judging: bool,
        /// The files that the action turned out to read, and that are not what they were.
        files: Vec<FileChange>,
    },
    /// The last run was lost to the machine.
    Lost,
}

/// Returns what is to be done about `action`, whose manifest has the digest `key`.
#[must_use]
pub fn decide<'a>(action: &Action, key: Digest, history: &'a History, tree: &Tree<'_>) -> Decision<'a> {
    let last = history.last(&action.identity);
    if let Some(record) = last
        && record.key == key
        && stands(action, record, tree)
    {
        return Decision::Fresh(record);
    }
    match (standing(action, history.known_to(&action.identity, key), tree), last) {
        (Some(record), _) => Decision::Restore(record),
        (None, None) => Decision::Stale(why_unknown(action, key, history, tree)),
        (None, Some(record)) if record.key != key => {
            Decision::Stale(Why::Changed { old: record.key, files: changes(record, tree).collect() })
        }
        (None, Some(record)) => Decision::Stale(objection(action, record, tree)),
    }
}

/// Returns the first of these results, all with the right key, that stands.
pub fn standing<'a, R: Borrow<Record>>(
    action: &Action,
    known: impl IntoIterator<Item = &'a R>,
    tree: &Tree<'_>,
) -> Option<&'a R> {
    known.into_iter().find(|record| stands(action, (*record).borrow(), tree))
}

/// Returns whether nothing speaks against a result with the right key.
fn stands(action: &Action, record: &Record, tree: &Tree<'_>) -> bool {
    let is_lost = matches!(record.outcome, Outcome::Lost { .. });
    !is_lost
        && missed(action, record).is_none()
        && !is_judged_otherwise(action, record)
        && changes(record, tree).next().is_none()
}

/// Returns all that speaks against a result with the right key that does not stand.
fn objection(action: &Action, record: &Record, tree: &Tree<'_>) -> Why {
    if matches!(record.outcome, Outcome::Lost { .. }) {
        return Why::Lost;
    }
    Why::Objection {
        deadline: missed(action, record),
        judging: is_judged_otherwise(action, record),
        files: changes(record, tree).collect(),
    }
}

/// Returns the deadline that a result missed, and the one that the action has, where that is longer.
fn missed(action: &Action, record: &Record) -> Option<(Duration, Duration)> {
    let is_longer = record.outcome.is_timeout() && action.deadline > record.deadline();
    is_longer.then(|| (record.deadline(), action.deadline))
}

/// Returns whether the result is a rejection by something else than what the action's timed calls are judged by now.
pub(crate) fn is_judged_otherwise(action: &Action, record: &Record) -> bool {
    let judged_by = record.circumstances.get(JUDGING).filter(|_| matches!(record.outcome, Outcome::Rejected { .. }));
    judged_by.is_some_and(|before| action.judging.is_some_and(|now| now.to_string() != *before))
}

fn changes<'a>(record: &'a Record, tree: &'a Tree<'_>) -> impl Iterator<Item = FileChange> + 'a {
    record.discovered.iter().filter_map(|(path, &old)| {
        let new = tree(path, old);
        (new != old).then(|| FileChange { path: path.clone(), old, new })
    })
}

/// Returns why an action without a last result has none that stands: another workspace's result may be known by key.
fn why_unknown(action: &Action, key: Digest, history: &History, tree: &Tree<'_>) -> Why {
    history.known(key).first().map_or(Why::NeverRan, |record| objection(action, record, tree))
}
