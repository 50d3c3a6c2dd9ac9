//! The one staleness rule: whether an action's earlier result still stands, and if not, why.
//!
//! It reads no file, clock or environment: what the tree holds now is asked of a function that the caller gives.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::action::{Action, Identity};
use crate::digest::Digest;
use crate::path::RepoPath;
use crate::record::{Outcome, Record, Seen};

/// Answers what a file is now, in the terms in which it was seen.
pub type Tree<'a> = dyn Fn(&RepoPath, Seen) -> Seen + 'a;

/// Earlier results: the last of each action, and all that are known by key.
#[derive(Debug, Default, Clone)]
pub struct History {
    last: HashMap<Identity, Arc<Record>>,
    by_key: HashMap<Digest, Vec<Arc<Record>>>,
    /// Results whose place by key a newer one of an action took that is alike, as the baselines of two ops of one declaration. Each gets its own back, and what was made
    /// of it stands.
    ceded: HashMap<(Digest, Identity), Vec<Arc<Record>>>,
}

impl History {
    /// Adds a finished action. It becomes the action's last result. A lost one is known by no key, so that it takes no other's place.
    pub fn add(&mut self, record: impl Into<Arc<Record>>) {
        let record = record.into();
        if !matches!(record.outcome, Outcome::Lost { .. }) {
            if !self.ceded.is_empty()
                && let Some(own) = self.ceded.get_mut(&(record.key, record.identity.clone()))
            {
                own.retain(|other| other.discovered != record.discovered);
            }
            let known = self.by_key.entry(record.key).or_default();
            if let Some(place) = known.iter().position(|other| other.discovered == record.discovered) {
                let other = known.remove(place);
                if other.identity != record.identity {
                    self.ceded.entry((other.key, other.identity.clone())).or_default().insert(0, other);
                }
            }
            known.insert(0, record.clone());
        }
        self.last.insert(record.identity.clone(), record);
    }

    /// Adds a finished action as older than all that are known.
    pub fn add_older(&mut self, record: impl Into<Arc<Record>>) {
        let record = record.into();
        let known = self.by_key.entry(record.key).or_default();
        match known.iter().find(|other| other.discovered == record.discovered) {
            None => known.push(record.clone()),
            Some(other) if other.identity != record.identity => {
                self.ceded.entry((record.key, record.identity.clone())).or_default().push(record.clone());
            }
            Some(_) => {}
        }
        self.last.entry(record.identity.clone()).or_insert(record);
    }

    /// Adds what another machine found out: known by key, and nobody's last result.
    pub fn learn(&mut self, record: Record) {
        let known = self.by_key.entry(record.key).or_default();
        known.retain(|other| other.discovered != record.discovered);
        known.push(record.into());
    }

    /// Drops what is known under `key`: its artifacts are lost or damaged.
    pub fn forget(&mut self, key: Digest) {
        self.by_key.remove(&key);
        self.ceded.retain(|(of, _), _| *of != key);
        self.last.retain(|_, record| record.key != key);
    }

    /// Returns the last result of an action.
    #[must_use]
    pub fn last(&self, identity: &Identity) -> Option<&Arc<Record>> {
        self.last.get(identity)
    }

    /// Returns the newest result of each key that starts with these hexadecimal digits, in the order of keys.
    #[must_use]
    pub fn starting_with(&self, digits: &str) -> Vec<&Record> {
        let digits = digits.to_ascii_lowercase();
        let mut found: Vec<&Record> =
            self.by_key.values().filter_map(|known| known.first().map(AsRef::as_ref)).collect();
        found.retain(|record| record.key.to_string().starts_with(&digits));
        found.sort_by_key(|record| record.key);
        found
    }

    /// Returns the results known by `key`, newest first.
    #[must_use]
    pub fn known(&self, key: Digest) -> &[Arc<Record>] {
        self.by_key.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the results known by `key`, newest first, but those of the action itself before those of actions that are alike.
    fn known_to(&self, identity: &Identity, key: Digest) -> impl Iterator<Item = &Arc<Record>> {
        let known = self.known(key);
        let own = known.iter().filter(|record| record.identity == *identity);
        let ceded = if self.ceded.is_empty() { None } else { self.ceded.get(&(key, identity.clone())) };
        own.chain(ceded.into_iter().flatten()).chain(known)
    }
}

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
        /// The files that the action turned out to read, and that are not what they were.
        files: Vec<FileChange>,
    },
    /// The last run was lost to the machine.
    Lost,
}

/// Returns what is to be done about `action`, whose manifest has the digest `key`.
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
    !is_lost && missed(action, record).is_none() && changes(record, tree).next().is_none()
}

/// Returns all that speaks against a result with the right key that does not stand.
fn objection(action: &Action, record: &Record, tree: &Tree<'_>) -> Why {
    if matches!(record.outcome, Outcome::Lost { .. }) {
        return Why::Lost;
    }
    Why::Objection { deadline: missed(action, record), files: changes(record, tree).collect() }
}

/// Returns the deadline that a result missed, and the one that the action has, where that is longer.
fn missed(action: &Action, record: &Record) -> Option<(Duration, Duration)> {
    let is_longer = record.outcome.is_timeout() && action.deadline > record.deadline();
    is_longer.then(|| (record.deadline(), action.deadline))
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
