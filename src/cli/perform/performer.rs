//! The performer: on another machine, actions of bundles are performed one after another as a build there would, and their results written as exports. Servers that one
//! started are there for the next.
//!
//! Nothing of a bundle is believed: the key is made anew of what is here. Where it is another one the machine does not fit, and nothing runs. It does not know where bundles
//! are from.

use std::cell::RefCell;
use std::env;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use serde_json::{Map, Value, json};
use t2t_host::cores;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{DeviceClass, Phase};
use t2t_model::bundle::Bundle;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_model::manifest::Manifest;
use t2t_model::record::{Outcome, Record};
use t2t_plan::dispatcher::measures;
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
use super::super::running::{Running, stop_on_signal};
use super::super::{BuildArguments, Common, context, setup};
use super::{BLOBS, read};
use crate::engine::{self, Control, InFlight, Settings};
use crate::session::{DeviceChoice, KeptServers, Options, Probing, Session};

mod calibrated;

/// The format of the document that is printed; a change that readers must know gives another number. 1: first.
const VERSION: u32 = 1;

/// What one action leaves to the next: a session whose servers run, and lanes with nothing in them.
struct Left {
    session: Session,
    in_flight: InFlight,
}

/// What performs, in one place of this machine.
pub(super) struct Performer<'a> {
    common: &'a Common,
    node: Node,
    /// The slots of the CPU lane.
    jobs: Option<usize>,
    place: Place,
    interrupt: Interrupt,
    running: Running,
    left: Option<Left>,
}

/// What came of a bundle: the document that says it, and the exit code.
pub(super) struct Performed {
    pub(super) document: Value,
    pub(super) exit: u8,
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

impl<'a> Performer<'a> {
    /// Takes signals and a place of the node's, for as long as this is held.
    pub(super) fn new(common: &'a Common, node: Node, jobs: Option<usize>) -> Result<Self, CliError> {
        let interrupt = Interrupt::default();
        let running = stop_on_signal(&interrupt)?;
        // What cannot be removed only takes space, until somebody may remove it.
        let _ = node.shed();
        let place = node.place(&env::args().collect::<Vec<_>>().join(" ")).map_err(|error| no_place(&error))?;
        Ok(Self { common, node, jobs, place, interrupt, running, left: None })
    }

    /// Returns whether it was told to stop.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    /// Performs the action of the bundle in `folder`, and writes its result to the file `result`. `say` is told what people should know meanwhile.
    pub(super) fn perform(
        &mut self,
        folder: &Path,
        result: &Path,
        say: &mut dyn FnMut(String),
    ) -> Result<Performed, CliError> {
        let bundle = read(folder)?;
        self.lay_out(folder, &bundle)?;
        let options = options(self.common, &bundle, &self.place);
        let (session, mut in_flight) = self.open(&options)?;
        let unfit = |why: String| Ok((End::Unfit(vec![why]), None));
        let end = match (session.inventory.device.class == bundle.device, session.graph.find(&bundle.target)) {
            (false, _) => {
                unfit(format!("the device here is {}, and not {}", session.inventory.device.class, bundle.device))
            }
            (true, None) => unfit(format!("there is no action `{}` here", bundle.target)),
            (true, Some(index)) => self.performed(&session, (&bundle, index), &mut in_flight, say),
        };
        let written = end.and_then(|ended| {
            if let (End::Kept(record), _) = &ended {
                write(record, &session, result)?;
            }
            Ok(ended)
        });
        // However it ended: servers that the next action cannot have are not to wait for it.
        match in_flight {
            Some(in_flight) => self.left = Some(Left { session, in_flight }),
            None => session.pool.stop(),
        }
        let (end, calibration) = written?;
        let exit = match &end {
            End::Kept(record) => u8::from(record.outcome.is_rejection()),
            End::Lost(_) | End::Unfit(_) => 3,
        };
        Ok(Performed { document: document(&bundle, &end, calibration), exit })
    }

    /// Opens the place's workspace, with the servers that the action before left if they are the right ones, and with what was in flight there. Others are ended.
    fn open(&mut self, options: &Options) -> Result<(Session, Option<InFlight>), CliError> {
        let kept = self.left.as_ref().map(|left| KeptServers::of(&left.session));
        let session = KeptServers::open(kept.as_ref(), &self.place.root, options, &self.interrupt)?;
        let left = self.left.take();
        if let Some(left) = left {
            if Arc::ptr_eq(&left.session.pool, &session.pool) {
                return Ok((session, Some(left.in_flight)));
            }
            left.session.pool.stop();
        }
        self.running.let_go();
        self.running.hold(&session.pool);
        Ok((session, None))
    }

    /// Lays out a workspace with what the bundle names, and takes what of that lies beside it.
    fn lay_out(&self, folder: &Path, bundle: &Bundle) -> Result<(), CliError> {
        let lacking = self.node.take(bundle, &folder.join(BLOBS)).context("cannot take what the bundle names")?;
        if let Some(first) = lacking.first() {
            let message = format!("of what the bundle names {} are lacking, the first is {first}", lacking.len());
            return Err(CliError::misuse(
                message,
                "`t2t perform lacks FOLDER` lists them; bring each as `blobs/DIGEST`",
            ));
        }
        self.node.lay_out(&self.place, bundle).map_err(|error| no_place(&error))
    }

    /// Performs the action if its key is the bundle's and nothing else has to run. Returns how it ended, and of one that depends on how fast its device is the device's calibration.
    fn performed(
        &self,
        session: &Session,
        (bundle, index): (&Bundle, Index),
        in_flight: &mut Option<InFlight>,
        say: &mut dyn FnMut(String),
    ) -> Result<(End, Option<Value>), CliError> {
        let selection = Selection { targets: vec![bundle.target.to_string()], ..Selection::default() };
        let wanted = pick(&session.graph, &selection, Force::Stale)?;
        let arguments = BuildArguments { jobs: self.jobs, ..BuildArguments::default() };
        let settings = setup::settings(self.common, &arguments, session, &OpenedRemote::default())?;
        // Whoever sent the bundle has asked the remote cache, and leaves there what is worth it.
        let settings = Settings { remote: None, ..settings };
        let in_flight = in_flight.get_or_insert_with(|| engine::in_flight(session, &settings));
        let objections = objections(&self.node, session, (bundle, index), &wanted)?;
        if !objections.is_empty() {
            return Ok((End::Unfit(objections), None));
        }
        cores::keep_off_devices(&settings.shares);
        let opened = (session, &settings);
        let before = if measures(bundle.target.phase) { self.calibration(opened, in_flight, say)? } else { None };
        let end = self.built(opened, (&wanted, index), in_flight, say)?;
        let calibration = match &end {
            End::Kept(record) if bundle.target.phase == Phase::Calibrate => self.keep_calibration(session, record),
            _ => before,
        };
        Ok((end, calibration))
    }

    /// Runs the one action that is `wanted`.
    fn built(
        &self,
        (session, settings): (&Session, &Settings),
        (wanted, index): (&Wanted, Index),
        in_flight: &mut InFlight,
        say: &mut dyn FnMut(String),
    ) -> Result<End, CliError> {
        let lost = RefCell::new(None);
        let mut tell = |event| match event {
            Event::Warning { text } => say(format!("warning: {text}")),
            Event::Waiting { what, holder } => say(format!("waiting: {what}, held by {holder}")),
            Event::ActionLost { reason, .. } => _ = lost.replace(Some(reason)),
            _ => {}
        };
        let report =
            engine::build_on(session, wanted, settings, &self.interrupt, in_flight, &mut Control::None, &mut tell)?;
        if report.interrupted {
            return Err(CliError::Interrupted);
        }
        let settled = report.settled.get(index.number()).and_then(Option::as_ref);
        Ok(match settled.and_then(Settled::record) {
            Some(record) => End::Kept(Box::new(record.clone())),
            None => End::Lost(lost.take().unwrap_or_else(|| "the build ended without it".to_owned())),
        })
    }

    /// Returns the digests that this machine lacks of those that the bundle in `folder` names.
    pub(super) fn lacks(&self, folder: &Path) -> Result<Vec<Digest>, CliError> {
        super::lacking(&self.node, folder)
    }

    /// Has the servers that it has get ready for the next action.
    pub(super) fn get_ready(&self) {
        if let Some(left) = &self.left {
            engine::get_ready(&left.session, Some(&left.in_flight), None);
        }
    }
}

fn no_place(error: &NoPlace) -> CliError {
    match error {
        NoPlace::Records(_) => CliError::misuse(error.to_string(), "pack it again, with the t2t that is to perform it"),
        NoPlace::Blob(_) | NoPlace::Full | NoPlace::Io(_) => {
            CliError::machine(format!("cannot lay out what the bundle names: {error}"))
        }
    }
}

/// Returns what a session is opened with in which the action is what it is where the bundle is from, if the machine is. What analyzes or compiles for a device needs none.
fn options(common: &Common, bundle: &Bundle, place: &Place) -> Options {
    let options = context::options(common, &place.root, Probing::Allowed);
    let (device, as_device) = match &bundle.device {
        DeviceClass::Interpreter => (DeviceChoice::Cpu, None),
        DeviceClass::Cuda(model) if matches!(bundle.target.phase, Phase::Analyze | Phase::Compile) => {
            (DeviceChoice::Auto, Some(model.clone()))
        }
        DeviceClass::Cuda(_) => (DeviceChoice::Cuda, None),
    };
    Options {
        device,
        as_device,
        architectures: bundle.architectures.clone(),
        configurations: if bundle.all_configurations { Configurations::All } else { Configurations::First },
        takes_kernels_as_they_are: true,
        ..options
    }
}

/// Returns in words why the action here is not that of the bundle; nothing where it is.
fn objections(
    node: &Node,
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
    let there = node.blob(bundle.key).ok().and_then(|bytes| Manifest::decode(&bytes));
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

fn document(bundle: &Bundle, end: &End, calibration: Option<Value>) -> Value {
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
    told.extend(calibration.map(|calibration| ("calibration".to_owned(), calibration)));
    Value::Object(told)
}
