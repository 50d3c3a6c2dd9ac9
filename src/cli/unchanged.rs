//! The answer of a build that found nothing to do, told again while nothing that it looked at has changed: no workspace is opened for it.
//!
//! It does not know what is stale: it knows that everything a build looked at is unchanged.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::env;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use t2t_host::device;
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::event::{Event, Tally};
use t2t_model::path::RepoPath;
use t2t_plan::schedule::Settled;
use t2t_spec::Op;
use t2t_store::fingerprint::{self, Fingerprint, Observed, Rechecked};
use t2t_store::fs;
use t2t_store::store::journal::{Journal, LinePlace};
use t2t_store::store::noop_cache::{self, NoopCache, NoopResult, Piece};

use super::outputs::Outputs;
use super::{BuildArguments, Common, context, streams};
use crate::engine::{Report, local};
use crate::reporter::Reporter;
use crate::session::{DeviceChoice, Part, Session};

/// What a build that finds nothing to do tells.
#[derive(Serialize, Deserialize)]
pub(crate) struct Told {
    /// Before its last line.
    pub(crate) events: Vec<Event>,
    /// After it, on standard output.
    pub(crate) table: String,
    /// What it ends with.
    pub(crate) exit_code: u8,
}

/// Returns the key of the no-op cache: the digest of what is asked and of who asks: the arguments, the binary, the interpreter, the devices, the screen. None for what is never answered
/// without a look at the store.
pub(crate) fn key(common: &Common, arguments: &BuildArguments, root: &Path) -> Option<Digest> {
    let writes = arguments.trace.is_some() || arguments.events.is_some() || arguments.junit.is_some();
    let looks = arguments.force || arguments.require_cached || common.as_device.is_some();
    let is_annotated = super::outputs::is_asked_for(arguments.annotations);
    let options = context::options(common, root, crate::session::Probing::Never);
    if writes || looks || is_annotated || options.harness.is_some() {
        return None;
    }
    let devices = match common.device {
        DeviceChoice::Cpu => Vec::new(),
        _ => device::devices(options.visible.as_deref(), options.driver.as_deref()),
    };
    let binary = env::current_exe().ok()?;
    let facts = (
        (env::args_os().skip(1).collect::<Vec<_>>(), &binary, fs::stat(&binary)?),
        (options.python?, options.search, devices, streams::width()),
    );
    Some(Digest::of(format!("{facts:?}").as_bytes()))
}

/// What has become of what the last answer rests on.
pub(crate) enum Since {
    /// It is as it was, the answer was told again, and this is the exit code.
    Nothing(u8),
    /// Files of a few ops were edited, and nothing else: the part of the workspace that has them, and what was told before anything was decided.
    Edits(Part, Vec<Event>),
    /// There is no answer, or something else changed.
    More,
}

/// From how many edited ops on the whole workspace is looked at without delay.
const MANY: usize = 64;

/// Looks at what the last answer rests on, and tells it again if all is as it was. The caller holds the workspace's lock.
pub(crate) fn since(key: Digest, root: &Path, outputs: &mut Outputs, start: Instant) -> Since {
    let place = NoopCache::of(&root.join("cache"), key);
    let bytes = place.bytes();
    let kept = noop_cache::decode(&bytes);
    let told = |kept: &NoopResult<'_>| serde_json::from_str::<Told>(&kept.told).ok();
    let Some((kept, told)) = kept.and_then(|kept| told(&kept).map(|told| (kept, told))) else { return Since::More };
    let looked = fingerprint::look(root, &kept.fingerprints);
    if looked.changed.is_empty() {
        tell_again(&told, outputs, start);
        renew(&place, &kept, &looked);
        return Since::Nothing(told.exit_code);
    }
    let introduction =
        told.events.into_iter().take_while(|event| !is_told_again(event) && !matches!(event, Event::Finished { .. }));
    edited(&kept, &looked.changed).map_or(Since::More, |part| Since::Edits(part, introduction.collect()))
}

/// Returns the part of the workspace whose files changed, if nothing else did.
fn edited(kept: &NoopResult<'_>, changed: &[usize]) -> Option<Part> {
    let pieces = kept.pieces();
    let places: BTreeSet<u32> = changed.iter().map(|place| u32::try_from(*place)).collect::<Result<_, _>>().ok()?;
    let is_hit = |piece: &&Piece<'_>| piece.fingerprints.iter().any(|place| places.contains(place));
    let hit: Vec<&Piece<'_>> = pieces.iter().filter(is_hit).collect();
    let explained: BTreeSet<u32> = hit.iter().flat_map(|piece| &piece.fingerprints).copied().collect();
    if !places.is_subset(&explained) || hit.len() > MANY || hit.len() == pieces.len() {
        return None;
    }
    Some(Part {
        ops: hit.iter().map(|piece| piece.op.to_string()).collect(),
        records: hit.iter().flat_map(|piece| piece.records()).collect(),
        lines: pieces.iter().map(|piece| (piece.op.to_string(), piece.line)).collect(),
    })
}

fn tell_again(told: &Told, outputs: &mut Outputs, start: Instant) {
    for event in &told.events {
        match event {
            Event::Finished { tally, exit_code, .. } => {
                outputs.report(&Event::Finished { tally: *tally, wall: start.elapsed(), exit_code: *exit_code });
            }
            other => outputs.report(other),
        }
    }
    outputs.close_screen();
    streams::print(&told.table);
}

/// Keeps the answer with what is known now of files that were written again with the same bytes.
fn renew(place: &NoopCache, kept: &NoopResult<'_>, looked: &Rechecked) {
    if !looked.touched.is_empty() {
        let mut renewed = kept.clone();
        looked
            .touched
            .iter()
            .for_each(|(place, known)| renewed.fingerprints[*place].was = Observed::File(Some(*known)));
        place.keep(&renewed);
    }
}

/// Returns whether a build that finds nothing to do tells of this, too.
pub(crate) fn is_told_again(event: &Event) -> bool {
    match event {
        Event::ActionSkipped { .. } | Event::Failure { .. } => true,
        Event::ActionFinished { outcome, .. }
        | Event::ActionFresh { outcome, .. }
        | Event::ActionRestored { outcome, .. } => outcome.is_not_judged(),
        _ => false,
    }
}

/// Keeps the answer for the next build if nothing changes. Only a build that settled everything is kept: lost and undecided actions must be tried again.
pub(crate) fn keep(key: Digest, session: &Session, report: &Report, mut told: Told) {
    let Some(fingerprints) = fingerprints(session, report) else { return };
    let Some(tally) = tally(report) else { return };
    let wall = std::time::Duration::ZERO;
    told.events.push(Event::Finished { tally, wall, exit_code: told.exit_code });
    let (Ok(told), Ok(pieces)) = (serde_json::to_string(&told), pieces(session, report, &fingerprints)) else { return };
    NoopCache::of(&session.cache, key).keep(&NoopResult::new(fingerprints, told, &pieces));
}

/// Counts what the next build finds. None where something is not settled for good.
fn tally(report: &Report) -> Option<Tally> {
    if report.interrupted || report.stopped || report.damaged > 0 || !report.missing.is_empty() {
        return None;
    }
    let mut tally = Tally::default();
    for settled in report.settled.iter().flatten() {
        match settled {
            Settled::Fresh(record) | Settled::Restored(record) | Settled::Ran(record) => {
                tally.fresh += 1;
                tally.rejected += usize::from(record.outcome.is_rejection());
                tally.not_judged += usize::from(record.outcome.is_not_judged());
            }
            Settled::Skipped(_) => tally.skipped += 1,
            Settled::Lost(_) | Settled::Planned | Settled::Missing => return None,
        }
    }
    Some(tally)
}

/// Returns all that the build looked at, as it was when it did, and the logs as they are now. None where that cannot be told apart later.
fn fingerprints(session: &Session, report: &Report) -> Option<Vec<Fingerprint<'static>>> {
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
    let mut fingerprints: Vec<Fingerprint<'static>> = sources.into_iter().map(file).collect();
    fingerprints.extend(session.sources.fingerprints()?);
    fingerprints.extend(session.fingerprints.clone()?);
    let cache = session.cache.strip_prefix(&session.root).ok()?.to_str()?;
    let journal = format!("{cache}/journal");
    let state = Observed::State(fs::stat(&session.root.join(&journal)));
    fingerprints.push(Fingerprint { path: Cow::Owned(journal), was: state });
    fingerprints.push(Fingerprint { path: Cow::Owned(format!("{cache}/scratch")), was: Observed::Empty });
    Some(fingerprints)
}

/// Returns what the answer rests on op by op.
fn pieces<'a>(
    session: &'a Session,
    report: &Report,
    fingerprints: &[Fingerprint<'_>],
) -> std::io::Result<Vec<Piece<'a>>> {
    let places: HashMap<&str, u32> = fingerprints.iter().map(|fingerprint| &*fingerprint.path).zip(0..).collect();
    let mut files: HashMap<&str, BTreeSet<u32>> = HashMap::new();
    for index in session.graph.indices() {
        let action = session.graph.action(index);
        let record = report.settled[index.number()].as_ref().and_then(Settled::record);
        let read = action.sources.keys().chain(record.into_iter().flat_map(|record| record.discovered.keys()));
        let page = (action.target().phase == Phase::Log).then(|| local::log_path(&action.target().op));
        let read = read
            .filter_map(|path| places.get(path.as_str()))
            .chain(page.as_ref().and_then(|page| places.get(page.as_str())));
        files.entry(&action.target().op).or_default().extend(read);
    }
    let mut records: HashMap<String, Vec<LinePlace>> = HashMap::new();
    for (target, place) in Journal::open(&session.cache).places()? {
        let op = target.split(['/', ':']).next().unwrap_or_default();
        records.entry(op.to_owned()).or_default().push(place);
    }
    // An op's log stands on the calibration, which is of no op.
    let of_all = records.remove(&Target::calibrate().to_string()).unwrap_or_default();
    let piece = |op: &'a Op| {
        let looked_at = files.remove(op.name.as_str()).unwrap_or_default().into_iter().collect();
        let own = records.remove(&op.name).unwrap_or_default();
        Piece::new(&op.name, op.place.line, looked_at, &[of_all.as_slice(), &own].concat())
    };
    Ok(session.spec.ops.iter().map(piece).collect())
}
