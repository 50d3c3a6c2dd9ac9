//! Earlier results: the last of each action, and all that are known by key.
//!
//! It does not know how they are stored, nor which of them still stand.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::action::{Identity, Phase};
use crate::digest::Digest;
use crate::record::{Outcome, Record};

/// Earlier results: the last of each action, and all that are known by key.
#[derive(Debug, Default, Clone)]
pub struct History {
    last: HashMap<Identity, Arc<Record>>,
    by_key: HashMap<Digest, Vec<Arc<Record>>>,
    /// Results that a newer one with the same key replaced, from another action. Such actions are alike, for example the baselines of two ops with one
    /// declaration. Each action gets its own result back, so what was made of it stands.
    ceded: HashMap<(Digest, Identity), Vec<Arc<Record>>>,
    /// The keys of which all results are here; None where that is so of every key.
    recalled: Option<HashSet<Digest>>,
}

impl History {
    /// Adds a finished action. It becomes the action's last result. A lost one is known by no key, so that it takes no other's place.
    pub fn add(&mut self, record: impl Into<Arc<Record>>) {
        let record = record.into();
        self.add_known(&record);
        self.last.insert(record.identity.clone(), record);
    }

    fn add_known(&mut self, record: &Arc<Record>) {
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
    }

    /// Returns the history as one that may lack results: it has the last of each action that it is asked for, and all of a key once they are recalled.
    #[must_use]
    pub fn in_part(self) -> Self {
        Self { recalled: Some(HashSet::new()), ..self }
    }

    /// Returns whether all results known by `key` are here.
    #[must_use]
    pub fn has_all_of(&self, key: Digest) -> bool {
        self.recalled.as_ref().is_none_or(|recalled| recalled.contains(&key))
    }

    /// Takes all results that are known by `key`, oldest first. No action's last result is another one then.
    pub fn recall(&mut self, key: Digest, records: impl IntoIterator<Item = Record>) {
        self.by_key.remove(&key);
        self.ceded.retain(|(of, _), _| *of != key);
        records.into_iter().for_each(|record| self.add_known(&Arc::new(record)));
        self.recalled.iter_mut().for_each(|recalled| _ = recalled.insert(key));
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

    /// Adds a result of another machine: it is known by its key, and is no action's last result.
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

    /// Returns all results of a phase that are known, in no order.
    pub fn of_phase(&self, phase: Phase) -> impl Iterator<Item = &Record> {
        let known = self.by_key.values().chain(self.ceded.values()).flatten().chain(self.last.values());
        known.map(AsRef::as_ref).filter(move |record| record.identity.target.phase == phase)
    }

    /// Returns the results known by `key`, newest first.
    #[must_use]
    pub fn known(&self, key: Digest) -> &[Arc<Record>] {
        self.by_key.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the results known by `key`: first the action's own, then those of other actions with the same key, each newest first.
    pub fn known_to(&self, identity: &Identity, key: Digest) -> impl Iterator<Item = &Arc<Record>> {
        let known = self.known(key);
        let own = known.iter().filter(|record| record.identity == *identity);
        let ceded = if self.ceded.is_empty() { None } else { self.ceded.get(&(key, identity.clone())) };
        own.chain(ceded.into_iter().flatten()).chain(known)
    }
}
