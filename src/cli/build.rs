//! `t2t build`: brings what was asked for up to date, and ends with the table of the ops.
#![expect(clippy::disallowed_methods, reason = "the command line owns the environment and the clock of a build")]

use std::collections::BTreeMap;
use std::env;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::Context;
use console::Term;

use super::error::CliError;
use super::{BuildArguments, Common, context};
use crate::action::{DeviceClass, Phase, Target};
use crate::device;
use crate::engine::{self, AfterRejection, Report, Settings};
use crate::event::{Event, Tally};
use crate::graph::Wanted;
use crate::graph::pick::{Force, pick};
use crate::interrupt::{Interrupt, Then};
use crate::pool::Pool;
use crate::rank::Found;
use crate::record::Outcome;
use crate::render::build_page::closing_table;
use crate::reporter::{Reporter, Screen, Verbosity, reporter};
use crate::schedule::Settled;
use crate::session::{Probing, Session};
use crate::store::cas::Cas;
use crate::store::lock::Lock;

/// Runs the command.
pub fn build(common: &Common, arguments: &BuildArguments) -> Result<u8, CliError> {
    let start = Instant::now();
    let environment = |name: &str| env::var_os(name);
    let screen = Screen::of(&Term::stderr(), &environment);
    let mut reporter = reporter(if common.quiet { Verbosity::Quiet } else { Verbosity::Normal }, screen);
    let root = context::workspace()?;
    let interrupt = Interrupt::default();
    let running = stop_on_signal(&interrupt)?;
    let command = env::args().collect::<Vec<_>>().join(" ");
    let _lock = Lock::take(&root.join("cache"), &command, |holder| {
        let what = "the workspace's lock, cache/lock".to_owned();
        reporter.report(&Event::Waiting { what, holder: holder.to_owned() });
    })
    .context("cannot lock the store `cache/`")?;
    let session = context::open(common, Probing::Allowed, &interrupt)?;
    let _ = running.set(Arc::clone(&session.pool));
    let force = if arguments.force { Force::Named } else { Force::Stale };
    let wanted = pick(&session.graph, &arguments.targets.selection(), force)?;
    introduce(common, &session, reporter.as_mut());
    let settings = settings(arguments);
    reporter.report(&started(&session, &wanted, &settings));
    let mut tally = Tally::default();
    let built = engine::build(&session, &wanted, &settings, &interrupt, &mut |event| reporter.report(&event));
    if let Err(error) = session.sources.save() {
        reporter.report(&Event::Warning { text: format!("cannot keep what is known of the sources: {error}") });
    }
    let report = built?;
    count(&report, &mut tally);
    reporter.report(&Event::Finished { tally, wall: start.elapsed() });
    drop(reporter);
    close(&session, &report);
    Ok(exit_code(&report))
}

/// Takes signals from here on. Before the returned cell holds the servers, nothing runs and a signal ends the process; then it stops them.
fn stop_on_signal(interrupt: &Interrupt) -> Result<Arc<OnceLock<Arc<Pool>>>, CliError> {
    let running: Arc<OnceLock<Arc<Pool>>> = Arc::default();
    let cell = Arc::clone(&running);
    let stop = move || match cell.get() {
        Some(pool) => {
            pool.stop();
            Then::EndsItself
        }
        None => Then::EndHere,
    };
    interrupt.on_signal(stop).context("cannot take signals")?;
    Ok(running)
}

/// Says which interpreter was taken, and what runs the kernels.
fn introduce(common: &Common, session: &Session, reporter: &mut dyn Reporter) {
    if let Some(python) = context::python(common, session.root.clone()) {
        let versions = session.toolchain.as_ref().map(|toolchain| &toolchain.versions);
        let version = |name: &str| versions.and_then(|versions| versions.get(name)).cloned().unwrap_or_default();
        let text = format!(
            "python {} at {} ({}), torch {}, triton {}",
            version("python"),
            python.path.display(),
            python.found,
            version("torch"),
            version("triton"),
        );
        reporter.report(&Event::Note { text });
    }
    let text = match &session.inventory.device.class {
        DeviceClass::Interpreter => {
            "no CUDA device is used: kernels run in Triton's interpreter on the CPU, at the sizes of the cpu profile"
                .to_owned()
        }
        DeviceClass::Cuda(model) => format!("kernels run on {} × {model}", session.devices.len()),
    };
    reporter.report(&Event::Note { text });
}

fn settings(arguments: &BuildArguments) -> Settings {
    let cores = available_parallelism().map_or(1, usize::from);
    Settings {
        jobs: arguments.jobs.unwrap_or(cores).max(1),
        cores,
        after_rejection: if arguments.fail_fast { AfterRejection::Stop } else { AfterRejection::GoOn },
        locks: device::lock_folder(env::var("T2T_LOCK_DIR").ok().as_deref()),
    }
}

fn started(session: &Session, wanted: &Wanted, settings: &Settings) -> Event {
    let cpu = ("cpu".to_owned(), settings.jobs);
    let devices = session.devices.iter().enumerate().map(|(number, _)| (format!("cuda:{number}"), 1));
    let lanes: BTreeMap<String, usize> = std::iter::once(cpu).chain(devices).collect();
    Event::BuildStarted { actions: wanted.wanted.iter().filter(|wanted| **wanted).count(), lanes }
}

fn count(report: &Report, tally: &mut Tally) {
    for settled in report.settled.iter().flatten() {
        match settled {
            Settled::Fresh(_) => tally.fresh += 1,
            Settled::Restored(_) => tally.restored += 1,
            Settled::Ran(_) => tally.ran += 1,
            Settled::Skipped(_) => tally.skipped += 1,
            Settled::Lost(_) => tally.lost += 1,
            Settled::Planned => {}
        }
        if is_rejected(settled) {
            tally.rejected += 1;
        }
    }
}

fn is_rejected(settled: &Settled) -> bool {
    settled.record().is_some_and(|record| matches!(record.outcome, Outcome::Rejected { .. }))
}

/// Prints the table of the ops that were selected.
fn close(session: &Session, report: &Report) {
    let cas = Cas::open(&session.cache);
    let found = |op: &str| {
        let index = session.graph.find(&Target::of_op(op, Phase::Select))?;
        let record = report.settled[index.number()].as_ref()?.record()?;
        let bytes = cas.get(record.outputs.get("selection")?.digest).ok()?;
        serde_json::from_slice(&bytes).ok().map(Found::Document)
    };
    let selections: Vec<(&str, Found)> =
        session.spec.ops.iter().filter_map(|op| Some((op.name.as_str(), found(&op.name)?))).collect();
    if selections.is_empty() {
        return;
    }
    let rows: Vec<(&str, &Found)> = selections.iter().map(|(op, found)| (*op, found)).collect();
    let environment = |name: &str| env::var_os(name);
    let width = Screen::of(&Term::stdout(), &environment).width;
    context::print(&closing_table(&rows, width));
}

/// The exit code describes the state of what was asked for, not what ran.
fn exit_code(report: &Report) -> u8 {
    let settled = || report.settled.iter().flatten();
    if report.interrupted {
        130
    } else if settled().any(|settled| matches!(settled, Settled::Lost(_))) {
        3
    } else {
        u8::from(report.stopped || settled().any(is_rejected))
    }
}
