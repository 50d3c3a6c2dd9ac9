//! The edits since the last answer: which ops they are of, what of the answer speaks of them, and the answer that follows once those ops are built.
//!
//! It builds nothing, and does not know how the ops were built.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use t2t_model::action::Phase;
use t2t_model::event::{Event, Tally};
use t2t_model::record::Record;
use t2t_report::render::build_page::OpSummary;
use t2t_store::fingerprint::{Fingerprint, Known, Observed, Rechecked};
use t2t_store::fs;
use t2t_store::store::journal::{Journal, LinePlace};
use t2t_store::store::key_index::KeyIndex;
use t2t_store::store::noop_cache::{ActionName, LastRecords, NoopCache, NoopResult, Ops, Piece};

use super::answer::{self, Standing, Told};
use crate::engine::{Report, local};
use crate::session::{Part, Rest, Session};

/// From how many edited ops on the whole workspace is looked at without delay.
const MANY: usize = 64;

/// What was edited since the last answer.
pub(crate) struct Edits<'a> {
    kept: NoopResult<'a>,
    ops: Ops<'a>,
    told: Told,
    /// The files that changed, by their places in the list.
    changed: Vec<usize>,
    /// The ops that are edited, by their places among the pieces.
    edited: BTreeSet<usize>,
    /// How the others stand, without what is told of them.
    standings: BTreeMap<usize, Standing>,
    /// What pages of many ops tell of each op, in order, but of the edited ones.
    summaries: Arc<Vec<Option<Box<OpSummary>>>>,
    /// What the journal got since.
    added: Vec<(Record, LinePlace)>,
}

impl<'a> Edits<'a> {
    /// Returns the edits by which files `looked` at differ from what an answer rests on, and what the journal got since. The ops `also` count as edited. None where the
    /// edits may be of more than a few ops.
    pub(crate) fn of(
        mut kept: NoopResult<'a>,
        root: &Path,
        looked: Rechecked,
        others: &[(usize, Known)],
        added: Vec<(Record, LinePlace)>,
        also: &BTreeSet<String>,
    ) -> Option<Self> {
        // A file that went or came may be what imports of any op find, or find no more.
        let is_there = |place: &usize| {
            let Fingerprint { path, was } = &kept.files[*place];
            matches!(was, Observed::File(Some(_))) && fs::stat(&root.join(&**path)).is_some()
        };
        if !looked.changed.iter().all(is_there) {
            return None;
        }
        let Cow::Borrowed(ops) = kept.ops else { return None };
        let ops = Ops::decode(ops)?;
        let told: Told = serde_json::from_str(&kept.told).ok()?;
        let changed: BTreeSet<u32> = looked.changed.iter().filter_map(|place| u32::try_from(*place).ok()).collect();
        let is_read = |place: &u32| changed.contains(place);
        let read = ops.pieces.iter().enumerate().filter(|(_, piece)| piece.files.iter().any(is_read));
        let mut edited: BTreeSet<usize> = read.map(|(place, _)| place).collect();
        let explained: BTreeSet<u32> = edited.iter().flat_map(|place| &ops.pieces[*place].files).copied().collect();
        if !changed.is_subset(&explained) {
            return None;
        }
        // What another build did since; an op that is not known, and what is of none, is of account for all.
        let built = added.iter().map(|(record, _)| &record.identity.target);
        let built: BTreeSet<&str> =
            built.filter(|target| target.phase != Phase::Summary).map(|target| target.op.as_str()).collect();
        for op in built.into_iter().chain(also.iter().map(String::as_str)) {
            edited.insert(ops.pieces.iter().position(|piece| !op.is_empty() && *piece.op == *op)?);
        }
        if edited.len() > MANY || edited.contains(&0) {
            return None;
        }
        let mut standings: BTreeMap<usize, Standing> = BTreeMap::new();
        let mut summaries = Vec::with_capacity(ops.pieces.len());
        for (place, piece) in ops.pieces.iter().enumerate().skip(1) {
            if edited.contains(&place) {
                summaries.push(None);
                continue;
            }
            let mut standing = Standing::decode(&piece.standing)?;
            summaries.push(standing.summary.take());
            standings.insert(place, standing);
        }
        answer::touch(&mut kept.files, &looked.touched);
        answer::touch(&mut kept.others, others);
        let (changed, summaries) = (looked.changed, Arc::new(summaries));
        Some(Self { kept, ops, told, changed, edited, standings, summaries, added })
    }

    /// Returns what was told before anything was decided.
    pub(crate) fn introduction(&self) -> impl Iterator<Item = &Event> {
        self.told.events.iter().take_while(|event| event.target().is_none() && !matches!(event, Event::Finished { .. }))
    }

    /// Returns the part of the workspace that has the edited ops, with what the summary takes of the others where one was told of.
    pub(crate) fn part(&self) -> Part {
        let pieces = || self.ops.pieces.iter().enumerate();
        let mut records: LastRecords = LastRecords::new();
        for place in self.edited.iter().chain([&0]) {
            records.extend(self.ops.pieces[*place].records());
        }
        for (record, place) in &self.added {
            records.insert(name(record), *place);
        }
        let mut records: Vec<LinePlace> = records.into_values().collect();
        records.sort_by_key(|place| place.offset);
        let ops = pieces().skip(1);
        Part {
            lines: ops.clone().map(|(_, piece)| (piece.op.to_string(), piece.line)).collect(),
            ops: ops.filter(|(place, _)| self.edited.contains(place)).map(|(_, piece)| piece.op.to_string()).collect(),
            records,
            keys: self.keys_with(&self.added),
            rest: self.rest(),
        }
    }

    fn keys_with(&self, added: &[(Record, LinePlace)]) -> KeyIndex<'static> {
        KeyIndex::read(&*self.ops.keys).with(added.iter().map(|(record, place)| (record.key, *place)))
    }

    fn rest(&self) -> Option<Rest> {
        let manifest = self.told.summary?;
        // The page tells of each op: where one is not known there is no rest.
        let is_known = |(place, summary): (usize, &Option<_>)| summary.is_some() || self.edited.contains(&place);
        if !(1..).zip(&*self.summaries).all(is_known) {
            return None;
        }
        let wall = Duration::from_millis(self.standings.values().map(|standing| standing.wall_ms).sum());
        let device = Duration::from_millis(self.standings.values().map(|standing| standing.device_ms).sum());
        Some(Rest { ops: Arc::clone(&self.summaries), wall, device, manifest })
    }

    /// Returns whether a summary was told of.
    pub(crate) fn has_summary(&self) -> bool {
        self.told.summary.is_some()
    }

    /// Returns what is told again of the ops that are not edited, each with the place of its op.
    pub(crate) fn told_of_others(&self) -> Vec<(usize, Event)> {
        let events = || self.told.events.iter().filter(|event| event.target().is_some());
        if events().next().is_none() {
            return Vec::new();
        }
        let places: HashMap<&str, usize> =
            self.ops.pieces.iter().enumerate().map(|(place, piece)| (&*piece.op, place)).collect();
        let place = |event: &Event| places.get(event.target()?.op.as_str()).copied();
        let told = events().filter_map(|event| Some((place(event)?, event.clone())));
        told.filter(|(place, _)| self.standings.contains_key(place)).collect()
    }

    /// Returns the edited ops, and the place of each in the order of ops.yaml.
    pub(crate) fn places(&self) -> HashMap<String, usize> {
        self.edited.iter().map(|place| (self.ops.pieces[*place].op.to_string(), *place)).collect()
    }

    /// Returns what is counted of the ops that are not edited.
    pub(crate) fn tally_of_others(&self) -> Tally {
        answer::sum(self.standings.values())
    }

    /// Returns what a table of all ops tells of each that it has, in order: of the edited ones what is known `now`.
    pub(crate) fn rows<'b>(&'b self, now: &'b [OpSummary]) -> Vec<&'b OpSummary> {
        let row = |place: usize| match self.standings.get(&place) {
            Some(_) => self.summaries[place - 1].as_deref(),
            None => now.iter().find(|summary| *summary.op() == *self.ops.pieces[place].op),
        };
        (1..self.ops.pieces.len()).filter_map(row).collect()
    }

    /// Keeps the answer that follows: that of a build of the whole which finds nothing to do. `told` is what that tells, and `summaries` are of the edited ops.
    pub(crate) fn keep(
        mut self,
        place: &NoopCache,
        session: &Session,
        report: &Report,
        told: &Told,
        mut standings: HashMap<String, Standing>,
        summaries: &[OpSummary],
    ) {
        let journal = Journal::open(&session.cache);
        let Some(added) = journal.added_since(&self.kept.journal) else { return };
        let Ok(extent) = journal.extent(Some(&self.kept.journal)) else { return };
        let (Some(files), Some(others)) = (answer::files(session, report), session.sources.fingerprints()) else {
            return;
        };
        let Ok(told) = serde_json::to_string(told) else { return };
        self.take_files(files);
        self.take_others(others);
        for summary in summaries {
            standings.entry(summary.op().to_owned()).or_default().summary = Some(Box::new(summary.clone()));
        }
        let keys = self.keys_with(&added);
        let mut read = answer::files_of_ops(session, report, &self.kept.files);
        for number in self.edited.iter().chain([&0]) {
            let piece = &mut self.ops.pieces[*number];
            let mut records = piece.records();
            let own = added.iter().filter(|(record, _)| record.identity.target.op == *piece.op);
            records.extend(own.map(|(record, place)| (name(record), *place)));
            let files = read.remove(&*piece.op).unwrap_or_default();
            let standing = standings.remove(&*piece.op).unwrap_or_default().encode();
            *piece = Piece::new(piece.op.clone(), piece.line, files, &records, standing);
        }
        self.ops.keys = keys.into_bytes();
        let ops = self.ops.encode();
        let NoopResult { files, others, .. } = self.kept;
        place.keep(&NoopResult { files, others, journal: extent, told: told.into(), ops: ops.into() });
    }

    /// Takes what the build saw of files that changed, and of those that nobody had looked at. What it saw of others is what others saw, or the next look tells.
    fn take_files(&mut self, seen: Vec<Fingerprint<'static>>) {
        // Few were seen of many.
        let asked: HashSet<&str> = seen.iter().map(|file| &*file.path).collect();
        let places: HashMap<String, usize> = self
            .kept
            .files
            .iter()
            .enumerate()
            .filter(|(_, file)| asked.contains(&*file.path))
            .map(|(place, file)| (file.path.to_string(), place))
            .collect();
        let changed: HashSet<usize> = self.changed.iter().copied().collect();
        let (mut now, mut new) = (Vec::new(), Vec::new());
        for file in seen {
            match places.get(&*file.path) {
                None => new.push(file),
                Some(place) if changed.contains(place) || is_log(&file.path) => now.push((*place, file.was)),
                Some(_) => {}
            }
        }
        for (place, was) in now {
            self.kept.files[place].was = was;
        }
        self.kept.files.extend(new);
    }

    fn take_others(&mut self, seen: Vec<Fingerprint<'static>>) {
        let known: HashSet<&str> = self.kept.others.iter().map(|other| &*other.path).collect();
        let new: Vec<Fingerprint<'static>> = seen.into_iter().filter(|other| !known.contains(&*other.path)).collect();
        self.kept.others.extend(new);
    }
}

fn is_log(path: &str) -> bool {
    path.strip_prefix(local::LOGS).is_some_and(|rest| rest.starts_with('/'))
}

fn name(record: &Record) -> ActionName {
    ActionName::of(&serde_json::to_string(&record.identity).unwrap_or_default())
}
