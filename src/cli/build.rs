//! `t2t build`: brings what was asked for up to date, and ends with the table of the ops.

use std::collections::BTreeMap;
use std::env;
use std::mem;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::Context;
use t2t_host::interrupt::{INTERRUPTED, Interrupt};
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::event::{Event, Tally, Vouched};
use t2t_model::publication::PAGE;
use t2t_model::record::Record;
use t2t_model::signature::Signer;
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_report::render::build_page::{OpSummary, closing_table};
use t2t_store::results;
use t2t_store::store::lock::Lock;
use t2t_store::store::noop_cache::NoopCache;

use super::answer::{self, Told};
use super::cluster::Joined;
use super::edit::{self, Ahead, Edited};
use super::error::CliError;
use super::outputs::Outputs;
use super::remote::OpenedRemote;
use super::running::{Running, stop_on_signal};
use super::unchanged::{self, Since};
use super::{BuildArguments, Common, add, context, measured, models, streams, totals};
use crate::engine::{self, Report, Settings};
use crate::reporter::Reporter;
use crate::session::{HeadStart, Probing, Session};

mod round;

use self::round::{Built, Looked};

/// Runs the command.
pub(crate) fn build(common: &Common, arguments: &BuildArguments) -> Result<u8, CliError> {
    let mut going = Going::default();
    models::each(common, arguments, |common| {
        let mut outputs = Outputs::open(common, arguments)?;
        let ended = build_and_tell(common, arguments, &mut going, &mut outputs);
        if let Err(error) = &ended {
            outputs.fail(error);
        }
        going.end();
        ended
    })
}

fn build_and_tell(
    common: &Common,
    arguments: &BuildArguments,
    going: &mut Going,
    outputs: &mut Outputs,
) -> Result<u8, CliError> {
    let start = Instant::now();
    let root = context::workspace().map_err(|error| add::hinted(error, &arguments.targets))?;
    let command = env::args().collect::<Vec<_>>().join(" ");
    let _lock = Lock::take(&root.join("cache"), &command, |holder| {
        // Where it cannot be taken now that is said below.
        let _ = going.running();
        let what = "the workspace's lock, cache/lock".to_owned();
        outputs.report(&Event::Waiting { what, holder: holder.to_owned() });
    })
    .context("cannot lock the store `cache/`")?;
    let options = context::options(common, &root, Probing::Known);
    let key = unchanged::key(common, arguments, &options);
    let place = key.map(|key| NoopCache::of(&root.join(answer::CACHE), key));
    let bytes = place.as_ref().map(NoopCache::bytes).unwrap_or_default();
    let head_start = OnceLock::new();
    let begin = || drop(head_start.set(HeadStart::begin(&root, &options, &going.interrupt)));
    let since = unchanged::since_last(place.as_ref(), &bytes, &root, &begin);
    if let Since::Nothing(told) = &since {
        return Ok(unchanged::tell_again(told, outputs, start));
    }
    let running = going.running()?;
    let head_start = head_start.into_inner().flatten();
    if let Some(begun) = &head_start {
        running.hold(&begun.pool);
    }
    let edited = match (since, &place) {
        (Since::Edits(edits), Some(place)) if !arguments.fail_fast => {
            let within = (&going.interrupt, &running, &going.remote, head_start.as_ref());
            edit::build(common, arguments, *edits, place, outputs, within, start)?
        }
        _ => Edited::Part(Ahead::default()),
    };
    let ahead = match edited {
        Edited::Whole(exit_code) => {
            outputs.close()?;
            return Ok(exit_code);
        }
        Edited::Part(ahead) => ahead,
    };
    drop(bytes);
    build_whole((common, arguments), going, outputs, Looked { root, place, head_start, ahead, start })
}

/// Looks at the whole workspace, builds it, and tells what that came to. Where files change while it runs it is looked at anew.
fn build_whole(
    (common, arguments): (&Common, &BuildArguments),
    going: &mut Going,
    outputs: &mut Outputs,
    mut looked: Looked,
) -> Result<u8, CliError> {
    let running = going.running()?;
    if going.interrupt.is_set() {
        let (tally, wall) = (looked.ahead.tally(), looked.start.elapsed());
        outputs.report(&Event::Finished { tally, wall, exit_code: INTERRUPTED });
        return Ok(INTERRUPTED);
    }
    let mut rounds = 1;
    let built = loop {
        let built = round::round((common, arguments), going, outputs, &mut looked)?;
        let changed = built.report.changed.as_ref().filter(|_| !built.report.interrupted && !built.report.stopped);
        // What is asked for by force would run once more, too.
        let Some(path) = changed.filter(|_| rounds < ROUNDS && !arguments.force && !arguments.regenerate) else {
            break built;
        };
        let text = format!("`{path}` changed while it was built: what reads it is built again");
        outputs.report(&Event::Note { text });
        looked.ahead.add(&built.session, &built.report);
        rounds += 1;
    };
    running.end_beside();
    let Built { session, wanted, settings, mut told, report, failures, own: _own } = built;
    engine::drain_remote(&settings, &going.interrupt, &mut |event| outputs.report(&event));
    let traced = outputs.write_trace();
    if let Some(vouched) = vouched(&session, &report, &settings, arguments) {
        outputs.report(&vouched);
    }
    let mut tally = Tally::default();
    totals::count(&report, &mut tally);
    looked.ahead.correct(&mut tally, &|target| is_fresh(&session, &report, target));
    let written = traced.and(outputs.write_junit(&session, &wanted, &report));
    let exit_code =
        written.as_ref().map_or_else(CliError::code, |()| totals::exit_code(&report).max(unjudged(&report, arguments)));
    outputs.report(&Event::Finished { tally, wall: looked.start.elapsed(), exit_code });
    outputs.close_screen();
    tell_outdated_pages(&session, &report);
    let missing = missing(&session, &report, arguments);
    let summaries = answer::summaries(&session, &report);
    let figures = arguments.figures.then(|| measured::figures(&session, &wanted, &report));
    let table = table(&summaries) + &figures.unwrap_or_default();
    streams::print(&table);
    // What is told of nodes is not said again by a build that asks none.
    if let Some(place) = looked.place.as_ref().filter(|_| settings.nodes.is_none()) {
        told.extend(answer::told_again(&session, &report, &failures));
        let summary = answer::summary(&session, &report);
        answer::keep(place, &session, &report, Told { events: told, table, exit_code, summary }, summaries);
    }
    outputs.print_annotations();
    if let Some(error) = missing {
        error.print();
    }
    session.leave();
    mem::forget(report);
    written.and(outputs.close())?;
    Ok(exit_code)
}

/// How often a workspace is looked at whose files change while it is built.
const ROUNDS: usize = 3;

/// What builds of one command share.
#[derive(Default)]
struct Going {
    joined: Joined,
    remote: OpenedRemote,
    interrupt: Interrupt,
    /// What a signal stops, once signals are taken.
    running: Option<Running>,
}

impl Going {
    /// Takes signals from here on, and returns what they stop.
    fn running(&mut self) -> Result<Running, CliError> {
        let running = self.running.take().map_or_else(|| stop_on_signal(&self.interrupt), Ok)?;
        Ok(self.running.insert(running).clone())
    }

    /// Ends what runs, once a build is over.
    fn end(&self) {
        self.running.iter().for_each(Running::end);
    }
}

/// Says who signed the results that were taken from elsewhere. Pages are made of them, and are nobody's. None where nobody asked, and nothing is from elsewhere.
fn vouched(session: &Session, report: &Report, settings: &Settings, arguments: &BuildArguments) -> Option<Event> {
    if !session.is_elsewhere && !arguments.require_signed {
        return None;
    }
    let signer = |record: &Record| -> Option<Signer> {
        let published = session.published.iter().find_map(|published| published.signer_of(record)).cloned();
        published.or_else(|| settings.remote.as_ref()?.signer_of(record))
    };
    let mut signers: BTreeMap<Signer, usize> = BTreeMap::new();
    let mut unsigned = 0;
    for settled in report.settled.iter().flatten() {
        let (Settled::Fresh(record) | Settled::Restored(record)) = settled else { continue };
        if is_page(record.identity.target.phase) {
            continue;
        }
        match signer(record) {
            Some(signer) => *signers.entry(signer).or_default() += 1,
            None => unsigned += 1,
        }
    }
    let of = |(signer, results): (Signer, usize)| Vouched { name: signer.name, key: signer.key, results };
    let signers: Vec<Vouched> = signers.into_iter().map(of).collect();
    (!signers.is_empty() || unsigned > 0).then_some(Event::Vouched { signers, unsigned })
}

/// Whether a phase makes what is read by people, of documents alone.
fn is_page(phase: Phase) -> bool {
    matches!(phase, Phase::Select | Phase::Log | Phase::Summary)
}

/// Says that published pages are not those that the published records make.
fn tell_outdated_pages(session: &Session, report: &Report) {
    let entries = || session.published.iter().flat_map(|published| &published.entries);
    let published: Vec<Digest> =
        entries().filter_map(|entry| entry.record.outputs.get(PAGE)).map(|blob| blob.digest).collect();
    let settled = report.settled.iter().flatten().filter_map(Settled::record);
    let mut pages = settled.filter_map(|record| record.outputs.get(PAGE));
    if entries().next().is_some() && pages.any(|page| !published.contains(&page.digest)) {
        let (place, class) = (results::FOLDER, &session.inventory.device.class);
        streams::say(&format!(
            "note: the pages in {place}/{class}/logs differ from the published records: run `t2t publish --as-device {class}`"
        ));
    }
}

/// Prints a line for each action that has no result that stands and was not to run, and returns what that comes to.
fn missing(session: &Session, report: &Report, arguments: &BuildArguments) -> Option<CliError> {
    let target = |index| session.graph.action(index).target();
    let rows = report.missing.iter().filter(|(index, _)| !is_page(target(*index).phase));
    let mut lines: Vec<(Index, String)> =
        rows.map(|(index, why)| (*index, format!("missing   {}  {}\n", target(*index), why.join("; ")))).collect();
    lines.sort();
    if lines.is_empty() {
        return None;
    }
    streams::print(&lines.iter().map(|(_, line)| line.as_str()).collect::<String>());
    let class = &session.inventory.device.class;
    let number = match lines.len() {
        1 => "1 result".to_owned(),
        many => format!("{many} results"),
    };
    let hint = if arguments.require_signed {
        format!(
            "build where they can be measured, run `t2t publish --sign KEYFILE` there with a key that `trust` names, and keep `{}/{class}`",
            results::FOLDER
        )
    } else if session.is_elsewhere {
        format!(
            "build on a machine that has the device, run `t2t publish` there, and keep `{}/{class}`",
            results::FOLDER
        )
    } else {
        "run `t2t build`, or restore `cache/` from where it was built".to_owned()
    };
    let ask =
        if arguments.require_cached { "missing" } else { "missing, and nothing runs on a device that is not here" };
    Some(CliError::Missing {
        message: format!("{number} of {class} {} {ask}", if lines.len() == 1 { "is" } else { "are" }),
        hint,
    })
}

fn is_fresh(session: &Session, report: &Report, target: &Target) -> bool {
    let index = session.graph.find(target);
    index.is_some_and(|index| matches!(report.settled[index.number()], Some(Settled::Fresh(_))))
}

/// Returns what checks that judged too little come to: 1 where judging is required.
fn unjudged(report: &Report, arguments: &BuildArguments) -> u8 {
    let mut records = totals::standing(report).filter_map(Settled::record);
    u8::from(arguments.require_judged && records.any(|record| record.outcome.is_not_judged()))
}

/// Returns the table of the ops that were selected; nothing where none was.
fn table(summaries: &[OpSummary]) -> String {
    if summaries.is_empty() {
        return String::new();
    }
    closing_table(&summaries.iter().collect::<Vec<_>>(), streams::width())
}
