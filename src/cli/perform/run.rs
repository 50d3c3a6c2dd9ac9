//! Running: on another machine, the action of a bundle is performed as a build there would, and its result written as an export.
//!
//! Nothing of it is believed: the key is made anew of what is here. Where it is another one the machine does not fit, and nothing runs. It does not know where the bundle
//! is from.

use std::cell::RefCell;
use std::env;
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value, json};
use t2t_host::cores;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::DeviceClass;
use t2t_model::bundle::Bundle;
use t2t_model::event::Event;
use t2t_model::manifest::Manifest;
use t2t_model::record::{Outcome, Record};
use t2t_plan::explain;
use t2t_plan::graph::expand::Configurations;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::graph::{Index, Wanted};
use t2t_plan::schedule::Settled;
use t2t_store::fs;
use t2t_store::node::{NoPlace, Node, Place};
use t2t_store::store::archive::{self, Artifacts};

use super::super::error::CliError;
use super::super::plan::plans;
use super::super::remote::OpenedRemote;
use super::super::running::stop_on_signal;
use super::super::{BuildArguments, Common, context, setup, streams};
use super::{BLOBS, read};
use crate::engine::{self, Settings};
use crate::session::{DeviceChoice, Options, Probing, Session};

/// The format of the document that is printed; a change that readers must know gives another number. 1: first.
const VERSION: u32 = 1;

/// What is asked.
pub(super) struct Asked<'a> {
    /// The folder of the bundle.
    pub(super) folder: &'a Path,
    /// The file for the result.
    pub(super) result: &'a Path,
    /// The slots of the CPU lane.
    pub(super) jobs: Option<usize>,
    /// Where it is performed.
    pub(super) node: Node,
}

/// How it ended.
enum End {
    /// With a result.
    Kept(Box<Record>),
    /// The machine failed it.
    Lost(String),
    /// This machine is not one on which its result would be that of the bundle: why, a line each.
    Unfit(Vec<String>),
}

/// Performs the action of a bundle, writes its result, and says in a document how it ended.
pub(super) fn run(common: &Common, asked: &Asked<'_>) -> Result<u8, CliError> {
    let interrupt = Interrupt::default();
    let running = stop_on_signal(&interrupt)?;
    let bundle = read(asked.folder)?;
    let place = place(asked, &bundle)?;
    let session = Session::open(&place.root, &options(common, &bundle, &place), &interrupt)?;
    running.hold(&session.pool);
    let unfit = |why: String| Ok(End::Unfit(vec![why]));
    let end = match (session.inventory.device.class == bundle.device, session.graph.find(&bundle.target)) {
        (false, _) => {
            unfit(format!("the device here is {}, and not {}", session.inventory.device.class, bundle.device))
        }
        (true, None) => unfit(format!("there is no action `{}` here", bundle.target)),
        (true, Some(index)) => performed(common, asked, &session, (&bundle, index), &interrupt),
    }?;
    if let End::Kept(record) = &end {
        write(record, &session, asked.result)?;
    }
    streams::print(&format!("{}\n", document(&bundle, &end)));
    Ok(match end {
        End::Kept(record) => u8::from(record.outcome.is_rejection()),
        End::Lost(_) | End::Unfit(_) => 3,
    })
}

/// Returns a workspace with what the bundle names.
fn place(asked: &Asked<'_>, bundle: &Bundle) -> Result<Place, CliError> {
    let node = &asked.node;
    let lacking = node.take(bundle, &asked.folder.join(BLOBS)).context("cannot take what the bundle names")?;
    if let Some(first) = lacking.first() {
        let message = format!("of what the bundle names {} are lacking, the first is {first}", lacking.len());
        return Err(CliError::misuse(message, "`t2t perform lacks FOLDER` lists them; bring each as `blobs/DIGEST`"));
    }
    let command = env::args().collect::<Vec<_>>().join(" ");
    node.place(bundle, &command).map_err(|error| match error {
        NoPlace::Records(_) => CliError::misuse(error.to_string(), "pack it again, with the t2t that is to perform it"),
        NoPlace::Blob(_) | NoPlace::Full | NoPlace::Io(_) => {
            CliError::machine(format!("cannot lay out what the bundle names: {error}"))
        }
    })
}

/// Returns what a session is opened with in which the action is what it is where the bundle is from, if the machine is.
fn options(common: &Common, bundle: &Bundle, place: &Place) -> Options {
    let options = context::options(common, &place.root, Probing::Allowed);
    Options {
        device: if bundle.device == DeviceClass::Interpreter { DeviceChoice::Cpu } else { DeviceChoice::Cuda },
        as_device: None,
        architectures: bundle.architectures.clone(),
        configurations: if bundle.all_configurations { Configurations::All } else { Configurations::First },
        takes_kernels_as_they_are: true,
        ..options
    }
}

/// Performs the action if its key is the bundle's and nothing else has to run.
fn performed(
    common: &Common,
    asked: &Asked<'_>,
    session: &Session,
    (bundle, index): (&Bundle, Index),
    interrupt: &Interrupt,
) -> Result<End, CliError> {
    let selection = Selection { targets: vec![bundle.target.to_string()], ..Selection::default() };
    let wanted = pick(&session.graph, &selection, Force::Stale)?;
    let objections = objections(asked, session, (bundle, index), &wanted)?;
    if !objections.is_empty() {
        return Ok(End::Unfit(objections));
    }
    let arguments = BuildArguments { jobs: asked.jobs, ..BuildArguments::default() };
    let settings = setup::settings(common, &arguments, session, &OpenedRemote::default())?;
    // Whoever sent the bundle has asked the remote cache, and leaves there what is worth it.
    let settings = Settings { remote: None, ..settings };
    cores::keep_off_devices(&settings.shares);
    let lost = RefCell::new(None);
    let mut tell = |event| match event {
        Event::Warning { text } => streams::say(&format!("warning: {text}")),
        Event::Waiting { what, holder } => streams::say(&format!("waiting: {what}, held by {holder}")),
        Event::ActionLost { reason, .. } => _ = lost.replace(Some(reason)),
        _ => {}
    };
    let report = engine::build(session, &wanted, &settings, interrupt, &mut tell)?;
    if report.interrupted {
        return Err(CliError::Interrupted);
    }
    let settled = report.settled.get(index.number()).and_then(Option::as_ref);
    Ok(match settled.and_then(Settled::record) {
        Some(record) => End::Kept(Box::new(record.clone())),
        None => End::Lost(lost.take().unwrap_or_else(|| "the build ended without it".to_owned())),
    })
}

/// Returns in words why the action here is not that of the bundle; nothing where it is.
fn objections(
    asked: &Asked<'_>,
    session: &Session,
    (bundle, index): (&Bundle, Index),
    wanted: &Wanted,
) -> Result<Vec<String>, CliError> {
    let plans = plans(session, wanted)?;
    let would_run = plans.iter().filter(|plan| plan.settled == Settled::Planned && plan.index != index);
    let first = would_run.map(|plan| {
        let target = session.graph.action(plan.index).target();
        format!("`{target}` has another key here: {}", explain::line(&plan.why))
    });
    let first: Vec<String> = first.collect();
    if !first.is_empty() {
        return Ok(first);
    }
    let plan = plans.iter().find(|plan| plan.index == index);
    let Some(here) = plan.and_then(|plan| plan.manifest.as_ref()) else {
        return Ok(vec![format!("`{}` would not run here", bundle.target)]);
    };
    if here.key() == bundle.key {
        return Ok(Vec::new());
    }
    let there = asked.node.blob(bundle.key).ok().and_then(|bytes| Manifest::decode(&bytes));
    let Some(there) = there else { return Ok(vec!["the bundle's key is of no manifest".to_owned()]) };
    Ok(explain::differences(&there, here).iter().map(ToString::to_string).collect())
}

/// Writes the result with its artifacts, whole or not at all.
fn write(record: &Record, session: &Session, to: &Path) -> Result<(), CliError> {
    let unwritable = || format!("cannot write `{}`", to.display());
    let (mut draft, ()) = fs::Draft::start(&context::absolute(to), |_| ()).with_context(unwritable)?;
    let packed = archive::pack(&session.cas(), &[record], Artifacts::All, &mut draft).with_context(unwritable)?;
    if let Some(fault) = packed.faults.first() {
        return Err(CliError::machine(format!("the result is not whole: {fault}")));
    }
    Ok(draft.finish().with_context(unwritable)?)
}

fn document(bundle: &Bundle, end: &End) -> Value {
    let mut told = Map::from_iter([
        ("version".to_owned(), json!(VERSION)),
        ("target".to_owned(), json!(bundle.target)),
        ("device".to_owned(), json!(bundle.device)),
        ("key".to_owned(), json!(bundle.key)),
    ]);
    let (name, value) = match end {
        End::Kept(record) => ("outcome", json!(record.outcome)),
        End::Lost(reason) => ("outcome", json!(Outcome::Lost { reason: reason.clone() })),
        End::Unfit(why) => ("unfit", json!(why)),
    };
    told.insert(name.to_owned(), value);
    Value::Object(told)
}
