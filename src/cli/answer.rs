//! The answer of a build: what it tells that finds nothing to do, how each op stands, and all that it rests on, taken from a build that settled everything.
//!
//! It does not know when an answer is told again.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::event::{Event, Tally};
use t2t_model::path::RepoPath;
use t2t_model::record::Record;
use t2t_plan::attempts::count;
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_report::rank::Found;
use t2t_report::render::build_page::OpSummary;
use t2t_store::fingerprint::{Fingerprint, Known, Observed};
use t2t_store::store::journal::Journal;
use t2t_store::store::key_index::KeyIndex;
use t2t_store::store::noop_cache::{ActionName, LastRecords, NoopCache, NoopResult, Ops, Piece};

use crate::engine::{Report, local};
use crate::session::Session;

/// The store of a workspace.
pub(crate) const CACHE: &str = "cache";

/// What a build that finds nothing to do tells.
#[derive(Serialize, Deserialize)]
pub(crate) struct Told {
    /// Before its last line.
    pub(crate) events: Vec<Event>,
    /// After it, on standard output.
    pub(crate) table: String,
    /// What it ends with.
    pub(crate) exit_code: u8,
    /// The key of the summary that stands, where it was asked for.
    pub(crate) summary: Option<Digest>,
}

/// Puts down what is known now of files that were written again with the same bytes.
pub(crate) fn touch(fingerprints: &mut [Fingerprint<'_>], touched: &[(usize, Known)]) {
    for (place, known) in touched {
        fingerprints[*place].was = Observed::File(Some(*known));
    }
}

/// Returns what a build that finds nothing to do tells of the actions that settled, in the order of the graph. `failures` are the rejections that were told.
pub(crate) fn told_again(session: &Session, report: &Report, failures: &[Event]) -> Vec<Event> {
    let failure = |event: &Event| match event {
        Event::Failure { target, .. } => Some((target.clone(), event.clone())),
        _ => None,
    };
    let mut failures: HashMap<Target, Event> = failures.iter().filter_map(failure).collect();
    let again = |index: Index| {
        let target = session.graph.action(index).target();
        match report.settled[index.number()].as_ref()? {
            Settled::Skipped(on) => Some(Event::ActionSkipped { target: target.clone(), because: on.clone() }),
            settled => {
                let Record { outcome, key, .. } = settled.record()?;
                let fresh = || Event::ActionFresh { target: target.clone(), outcome: outcome.clone(), key: *key };
                if outcome.is_not_judged() { Some(fresh()) } else { failures.remove(target) }
            }
        }
    };
    session.graph.indices().filter_map(again).collect()
}

/// Returns the key of the summary, where it has settled with one.
pub(crate) fn summary(session: &Session, report: &Report) -> Option<Digest> {
    let index = session.graph.find(&Target::summary())?;
    report.settled[index.number()].as_ref()?.record().map(|record| record.key)
}

/// How an op stands, or what is of no op.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Standing {
    /// What a build that finds nothing to do counts.
    pub(crate) tally: Tally,
    /// How long its actions ran, in milliseconds, as far as the summary counts them.
    pub(crate) wall_ms: u64,
    /// How long they held a device, in milliseconds.
    pub(crate) device_ms: u64,
    /// What pages of many ops tell of it.
    pub(crate) summary: Option<Box<OpSummary>>,
}

impl Standing {
    /// Returns what `bytes` hold.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// Returns the bytes that [`Self::decode`] reads.
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("numbers and texts can be written")
    }

    /// Adds an action. False where it has not settled for good.
    fn add(&mut self, settled: &Settled, is_replaced: bool) -> bool {
        match settled {
            Settled::Fresh(record) | Settled::Restored(record) | Settled::Ran(record) => {
                self.tally.fresh += 1;
                self.tally.rejected += usize::from(record.outcome.is_rejection() && !is_replaced);
                self.tally.not_judged += usize::from(record.outcome.is_not_judged() && !is_replaced);
                // As the summary has it: what a rejected bench measured is no figure of its.
                let is_left_out = record.outcome.is_rejection() && record.identity.target.phase == Phase::Bench;
                if record.outputs.contains_key("cost") && !is_left_out {
                    self.wall_ms += record.wall_ms;
                    self.device_ms += record.device_ms;
                }
            }
            Settled::Skipped(_) => self.tally.skipped += 1,
            Settled::NotNeeded => {}
            Settled::Lost(_) | Settled::Planned | Settled::Missing | Settled::Withheld(_) => return false,
        }
        true
    }
}

/// Returns how each op stands that the session has, and with no name what is of no op. None where something is not settled for good: it is to be tried again.
pub(crate) fn standings(session: &Session, report: &Report) -> Option<HashMap<String, Standing>> {
    if report.interrupted || report.stopped || report.damaged > 0 || !report.missing.is_empty() {
        return None;
    }
    let mut standings: HashMap<String, Standing> = HashMap::from([(String::new(), Standing::default())]);
    standings.extend(session.spec.ops.iter().map(|op| (op.name.clone(), Standing::default())));
    for index in session.graph.indices() {
        let Some(settled) = &report.settled[index.number()] else { continue };
        if !standings
            .get_mut(&session.graph.action(index).target().op)?
            .add(settled, report.is_replaced(index.number()))
        {
            return None;
        }
    }
    Some(standings)
}

/// Returns what pages of many ops tell of each op of the session that was asked for.
pub(crate) fn summaries(session: &Session, report: &Report) -> Vec<OpSummary> {
    let cas = session.cas();
    let found = |op: &str| {
        let index = session.graph.find(&Target::of_op(op, Phase::Select))?;
        let record = report.settled[index.number()].as_ref()?.record()?;
        let bytes = cas.get(record.outputs.get("selection")?.digest).ok()?;
        serde_json::from_slice(&bytes).ok().map(Found::Document)
    };
    let ends = |index: Index| report.settled[index.number()].as_ref();
    let attempts = |op: &str| count(&session.graph, &ends, op);
    let told = |op: &str| Some(OpSummary::of(op, &found(op)?).with_attempts(attempts(op)));
    session.spec.ops.iter().filter_map(|op| told(&op.name)).collect()
}

/// Adds up what is counted of the ops.
pub(crate) fn sum<'a>(standings: impl IntoIterator<Item = &'a Standing>) -> Tally {
    let mut sum = Tally::default();
    for Standing { tally, .. } in standings {
        add(&mut sum, tally);
    }
    sum
}

/// Adds what a build that finds nothing to do counts to `sum`.
pub(crate) fn add(sum: &mut Tally, tally: &Tally) {
    sum.fresh += tally.fresh;
    sum.skipped += tally.skipped;
    sum.rejected += tally.rejected;
    sum.not_judged += tally.not_judged;
}

/// Keeps what the next build tells if nothing changes. Only what settled everything is kept.
pub(crate) fn keep(place: &NoopCache, session: &Session, report: &Report, mut told: Told, summaries: Vec<OpSummary>) {
    let Some(mut standings) = standings(session, report) else { return };
    let Some((files, others)) = fingerprints(session, report) else { return };
    let (tally, wall) = (sum(standings.values()), Duration::ZERO);
    told.events.push(Event::Finished { tally, wall, exit_code: told.exit_code });
    for summary in summaries {
        let op = summary.op().to_owned();
        standings.entry(op).or_default().summary = Some(Box::new(summary));
    }
    let journal = Journal::open(&session.cache);
    let (Ok(told), Ok(lines), Ok(extent)) = (serde_json::to_string(&told), journal.places(), journal.extent(None))
    else {
        return;
    };
    let keys = KeyIndex::of(lines.iter().map(|line| (line.key, line.place)));
    let mut records: HashMap<String, LastRecords> = HashMap::new();
    for line in lines {
        let op = line.target().split(['/', ':']).next().unwrap_or_default();
        let op = if Target::of_build(line.target()).is_some() { "" } else { op };
        records.entry(op.to_owned()).or_default().insert(ActionName::of(&line.identity), line.place);
    }
    let mut read = files_of_ops(session, report, &files);
    let ops = session.spec.ops.iter().map(|op| (op.name.as_str(), op.place.line));
    let piece = |(op, line): (&'_ str, u32)| {
        let (files, records) = (read.remove(op).unwrap_or_default(), records.remove(op).unwrap_or_default());
        let standing = standings.remove(op).unwrap_or_default();
        Piece::new(Cow::Owned(op.to_owned()), line, files, &records, standing.encode())
    };
    let pieces = std::iter::once(("", 0)).chain(ops).map(piece).collect();
    let ops = Ops { pieces, keys: Cow::Borrowed(keys.bytes()) }.encode();
    let kept = NoopResult { files, others, journal: extent, told: told.into(), ops: ops.into() };
    place.keep(&kept);
}

/// Returns the fingerprints of the workspace's files that the build looked at, as they were when it did, the logs as they are now. None where a log is not what the
/// store holds.
pub(crate) fn files(session: &Session, report: &Report) -> Option<Vec<Fingerprint<'static>>> {
    let mut sources = session.sources.looked_at();
    for index in session.graph.indices() {
        let target = session.graph.action(index).target();
        let path = match target.phase {
            Phase::Log => local::log_path(&target.op),
            Phase::Summary => local::SUMMARY.to_owned(),
            _ => continue,
        };
        let Some(record) = report.settled[index.number()].as_ref().and_then(Settled::record) else { continue };
        let path = RepoPath::new(&path).ok()?;
        let known = session.sources.now(&path);
        if known.map(|known| known.bytes) != record.outputs.get(local::PAGE).map(|page| page.digest) {
            return None;
        }
        sources.insert(path, known);
    }
    let file = |(path, known): (RepoPath, _)| Fingerprint { path: Cow::Owned(path.into()), was: Observed::File(known) };
    Some(sources.into_iter().map(file).collect())
}

/// Returns all that the build looked at: files of the workspace, and what else. None where that cannot be told apart later.
fn fingerprints(session: &Session, report: &Report) -> Option<(Vec<Fingerprint<'static>>, Vec<Fingerprint<'static>>)> {
    let mut others = session.sources.fingerprints()?;
    others.extend(session.fingerprints.clone()?);
    let scratch = format!("{CACHE}/scratch");
    others.push(Fingerprint { path: Cow::Owned(scratch), was: Observed::Empty });
    Some((files(session, report)?, others))
}

/// Returns, op by op, the places among `files` of those that its actions depend on, and of its log.
pub(crate) fn files_of_ops(session: &Session, report: &Report, files: &[Fingerprint<'_>]) -> HashMap<String, Vec<u32>> {
    let mut read: HashMap<&str, BTreeSet<Cow<'_, str>>> = HashMap::new();
    for index in session.graph.indices() {
        let action = session.graph.action(index);
        let record = report.settled[index.number()].as_ref().and_then(Settled::record);
        let paths = action
            .sources
            .keys()
            .chain(&action.generated)
            .chain(record.into_iter().flat_map(|record| record.discovered.keys()));
        let page = (action.target().phase == Phase::Log).then(|| local::log_path(&action.target().op));
        let paths = paths.map(|path| Cow::Borrowed(path.as_str())).chain(page.map(Cow::Owned));
        read.entry(&action.target().op).or_default().extend(paths);
    }
    // An edit asks for few of many files.
    let asked: HashSet<&str> = read.values().flatten().map(AsRef::as_ref).collect();
    let places: HashMap<&str, u32> =
        files.iter().map(|file| &*file.path).zip(0..).filter(|(path, _)| asked.contains(path)).collect();
    let places_of = |paths: &BTreeSet<Cow<'_, str>>| {
        let found: BTreeSet<u32> = paths.iter().filter_map(|path| places.get(path.as_ref()).copied()).collect();
        found.into_iter().collect()
    };
    read.iter().map(|(op, paths)| ((*op).to_owned(), places_of(paths))).collect()
}
