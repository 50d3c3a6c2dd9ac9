//! Asking: before an action runs, the remote cache is asked for its result; what was found out here is left there for others.
//!
//! What comes is put into the store and the history, and the action is decided again: looking up is one more way of executing. It does not know how the remote
//! cache is reached.

use std::collections::{BTreeMap, HashSet};

use t2t_host::interrupt::Interrupt;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_model::manifest::Manifest;
use t2t_model::path::RepoPath;
use t2t_model::record::{Blob, Record};
use t2t_plan::decide::{Why, standing};
use t2t_plan::graph::Index;
use t2t_plan::schedule::seen_by;
use t2t_spec::remote::Mode;
use t2t_store::store::cas::Cas;
use t2t_store::store::remote::entry::Entry;
use t2t_store::store::remote::{Blobs, Remote, Wanted};

use super::in_flight::Message;
use super::{Run, Settings, Stop};

/// What the remote cache was asked in this run.
#[derive(Debug, Default)]
pub(super) struct RemoteLookups {
    /// Each action is asked for once under each key.
    keys: HashSet<(Index, Digest)>,
    /// How many answers are awaited.
    open: usize,
    /// The keys of results that came.
    brought: HashSet<Digest>,
    /// What entries held themselves, of results whose other blobs are on their way.
    held: BTreeMap<Index, Blobs>,
}

impl RemoteLookups {
    /// Returns whether no answer is awaited.
    pub(crate) fn is_answered(&self) -> bool {
        self.open == 0
    }

    /// Returns whether the result came from the remote cache.
    pub(crate) fn brought(&self, record: &Record) -> bool {
        self.brought.contains(&record.key)
    }
}

impl Run<'_, '_> {
    fn remote(&self) -> Option<&Remote> {
        self.settings.remote.as_deref()
    }

    /// Asks for the result of an action that is to run, and returns whether an answer is awaited. What somebody wants to run does so.
    pub(super) fn ask(&mut self, index: Index, manifest: &Manifest, why: &Why) -> bool {
        let key = manifest.key();
        let is_asked = self.remote().is_some() && *why != Why::Forced && !self.needs_what_is_missing(index);
        if !is_asked || !self.lookups.keys.insert((index, key)) {
            return false;
        }
        self.lookups.open += 1;
        let (messages, round) = (self.in_flight.messages(), self.round);
        if let Some(remote) = self.remote() {
            remote.look_up(key, move |entry| _ = messages.send(Message::Answered(round, index, entry)));
        }
        true
    }

    /// Takes what is known of an action elsewhere: the blobs of the result that stands are fetched.
    pub(super) fn answered(&mut self, index: Index, entry: Option<Entry>) -> Result<(), Stop> {
        let entry = entry.unwrap_or_default();
        let (action, sources) = (self.schedule.action(index), &self.session.sources);
        let tree = |path: &RepoPath, like| sources.seen(path, like);
        let Some(record) = standing(action, &entry.records, &|path, like| seen_by(action, path, like, &tree)).cloned()
        else {
            self.settle_answer(index, None);
            return Ok(());
        };
        let lacking = lacking(&record, &entry, self.cas);
        if lacking.is_empty() {
            return self.bring(index, record, &entry.blobs);
        }
        self.lookups.held.insert(index, entry.blobs);
        let (messages, round) = (self.in_flight.messages(), self.round);
        if let Some(remote) = self.remote() {
            remote.fetch(lacking, move |blobs| {
                _ = messages.send(Message::Fetched(round, index, Box::new(record), blobs));
            });
        }
        Ok(())
    }

    /// Takes the blobs of a result that stands.
    pub(super) fn fetched(&mut self, index: Index, record: Record, blobs: Option<Blobs>) -> Result<(), Stop> {
        let mut held = self.lookups.held.remove(&index).unwrap_or_default();
        let Some(blobs) = blobs else {
            self.settle_answer(index, None);
            return Ok(());
        };
        held.extend(blobs);
        self.bring(index, record, &held)
    }

    /// Puts a result into the store and the history. Its record enters the journal when the action is restored by it.
    fn bring(&mut self, index: Index, record: Record, blobs: &Blobs) -> Result<(), Stop> {
        let needed = std::iter::once(record.key).chain(record.outputs.values().map(|blob| blob.digest));
        for bytes in needed.filter_map(|digest| blobs.get(&digest)) {
            self.cas.put(bytes)?;
        }
        self.settle_answer(index, Some(record));
        Ok(())
    }

    fn settle_answer(&mut self, index: Index, record: Option<Record>) {
        self.lookups.open -= 1;
        if let Some(remote) = self.remote() {
            remote.count(record.is_some());
        }
        if let Some(record) = record {
            self.lookups.brought.insert(record.key);
            self.history.learn(record);
        }
        self.schedule.again(index);
        tell(self.settings, self.emit);
    }

    /// Leaves a result for others.
    pub(super) fn share(&self, record: &Record) {
        if let Some(remote) = self.remote().filter(|remote| remote.mode() == Mode::ReadWrite) {
            remote.upload(record, self.cas);
        }
    }
}

/// Returns the blobs of a record that neither its entry nor the store holds.
fn lacking(record: &Record, entry: &Entry, cas: &Cas) -> Vec<Wanted> {
    let manifest = Wanted { digest: record.key, size: None };
    let outputs = record.outputs.values().filter(|blob| entry.blob(**blob).is_none());
    let outputs = outputs.map(|Blob { digest, size }| Wanted { digest: *digest, size: Some(*size) });
    let all = std::iter::once(manifest).filter(|wanted| !entry.blobs.contains_key(&wanted.digest)).chain(outputs);
    all.filter(|wanted| cas.get(wanted.digest).is_err()).collect()
}

/// Tells what went wrong with the remote cache.
fn tell(settings: &Settings, emit: &mut dyn FnMut(Event)) {
    let warnings = settings.remote.iter().flat_map(|remote| remote.warnings());
    warnings.for_each(|text| emit(Event::Warning { text }));
}

/// Waits for what is on its way to the remote cache, and tells what was had of it. Who wants to stop does not wait.
pub(crate) fn drain_remote(settings: &Settings, interrupt: &Interrupt, emit: &mut dyn FnMut(Event)) {
    let Some(remote) = settings.remote.as_deref() else { return };
    let used = remote.drain(|| interrupt.is_set());
    tell(settings, emit);
    if let Some(used) = used {
        emit(Event::RemoteUsed {
            remote: remote.place().to_string(),
            hits: used.hits,
            misses: used.misses,
            uploads: used.uploads,
            unsent: used.unsent,
            faults: used.faults,
        });
    }
}
