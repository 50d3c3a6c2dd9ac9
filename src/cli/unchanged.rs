//! The answer of a build that found nothing to do, told again while nothing that it looked at has changed: no workspace is opened for it.
//!
//! It does not know what is stale: it knows what a build looked at, all of which is as it was.
#![expect(clippy::disallowed_methods, reason = "the command line owns the environment")]

use std::borrow::Cow;
use std::env;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::outputs::Outputs;
use super::{BuildArguments, Common, build, context};
use crate::action::Phase;
use crate::device;
use crate::digest::Digest;
use crate::engine::{Report, local};
use crate::event::{Event, Tally};
use crate::fs;
use crate::path::RepoPath;
use crate::record::Outcome;
use crate::reporter::Reporter;
use crate::schedule::Settled;
use crate::session::{DeviceChoice, Session};
use crate::store::answer::{self, Answer, Place};
use crate::witness::{self, Was, Witness};

/// What a build that finds nothing to do tells.
#[derive(Serialize, Deserialize)]
pub struct Told {
    /// Before its last line.
    pub events: Vec<Event>,
    /// After it, on standard output.
    pub table: String,
    /// What it ends with.
    pub exit_code: u8,
}

/// Returns the digest of what is asked and of who asks: the arguments, the binary, the interpreter, the devices, the screen. None for what is never answered
/// without a look at the store.
pub fn asked(common: &Common, arguments: &BuildArguments, root: &Path) -> Option<Digest> {
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
        (options.python?, options.search, devices, build::width()),
    );
    Some(Digest::of(format!("{facts:?}").as_bytes()))
}

/// Tells what was told last time, if all that it rests on is as it was, and returns the exit code. The caller holds the workspace's lock.
pub fn tell_again(asked: Digest, root: &Path, outputs: &mut Outputs, start: Instant) -> Option<u8> {
    let place = Place::of(&root.join("cache"), asked);
    let bytes = place.bytes();
    let kept = answer::decode(&bytes)?;
    let looked = witness::look(root, &kept.witnesses);
    if !looked.changed.is_empty() {
        return None;
    }
    let told: Told = serde_json::from_str(&kept.told).ok()?;
    for event in &told.events {
        match event {
            Event::Finished { tally, exit_code, .. } => {
                outputs.report(&Event::Finished { tally: *tally, wall: start.elapsed(), exit_code: *exit_code });
            }
            other => outputs.report(other),
        }
    }
    outputs.close_screen();
    context::print(&told.table);
    if !looked.touched.is_empty() {
        let mut renewed = kept.clone();
        looked.touched.iter().for_each(|(place, known)| renewed.witnesses[*place].was = Was::File(Some(*known)));
        place.keep(&renewed);
    }
    Some(told.exit_code)
}

/// Returns whether a build that finds nothing to do tells of this, too.
pub fn is_told_again(event: &Event) -> bool {
    matches!(event, Event::ActionSkipped { .. } | Event::Failure { .. })
}

/// Keeps what the next build tells if nothing changes. Only what settled everything is kept: what was lost, or never decided, is to be tried again.
pub fn keep(asked: Digest, session: &Session, report: &Report, mut told: Told) {
    let Some(witnesses) = witnesses(session, report) else { return };
    let Some(tally) = tally(report) else { return };
    let wall = std::time::Duration::ZERO;
    told.events.push(Event::Finished { tally, wall, exit_code: told.exit_code });
    let Ok(told) = serde_json::to_string(&told) else { return };
    Place::of(&session.cache, asked).keep(&Answer { witnesses, told });
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
                tally.rejected += usize::from(matches!(record.outcome, Outcome::Rejected { .. }));
            }
            Settled::Skipped(_) => tally.skipped += 1,
            Settled::Lost(_) | Settled::Planned => return None,
        }
    }
    Some(tally)
}

/// Returns all that the build looked at, as it was when it did, and the logs as they are now. None where that cannot be told apart later.
fn witnesses(session: &Session, report: &Report) -> Option<Vec<Witness<'static>>> {
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
    let file = |(path, known): (RepoPath, _)| Witness { path: Cow::Owned(path.into()), was: Was::File(known) };
    let mut witnesses: Vec<Witness<'static>> = sources.into_iter().map(file).collect();
    witnesses.extend(session.witnesses.clone()?);
    let cache = session.cache.strip_prefix(&session.root).ok()?.to_str()?;
    let journal = format!("{cache}/journal");
    let state = Was::State(fs::stat(&session.root.join(&journal)));
    witnesses.push(Witness { path: Cow::Owned(journal), was: state });
    witnesses.push(Witness { path: Cow::Owned(format!("{cache}/scratch")), was: Was::Empty });
    Some(witnesses)
}
