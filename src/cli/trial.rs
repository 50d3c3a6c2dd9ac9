//! The trial: a copy of what of a workspace counts for its kernels, in which candidates are built. Its results are kept in the workspace's own store.
//!
//! A key names no folder, so a candidate's results stand for the workspace once its file has that place. It does not know what becomes of a candidate. `t2t improve` and
//! `t2t bench --against` stand on it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde_json::Value;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_model::event::Event;
use t2t_model::record::{Outcome, Record};
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::schedule::Settled;
use t2t_protocol::{Against, Failure, OfScreen, Part, Screen, Variant as ToldVariant, read};
use t2t_spec::{Op, Variant};
use t2t_store::fs;

use super::alone::{self, ARCHIVE, Performs};
use super::error::CliError;
use super::remote::OpenedRemote;
use super::{BuildArguments, Common, context, setup, streams};
use crate::engine::perform::{self, Performed};
use crate::engine::request::{Given, told};
use crate::engine::{self, Report, Settings, evidence};
use crate::session::{Options, Probing, Session};

/// What of `assets/` no trial has: results and rounds, which count for no kernel.
const LEFT_OUT: [&str; 2] = ["results", "rounds"];

/// The phases in which a candidate can end before it is screened.
pub(super) const JUDGED: [Phase; 2] = [Phase::Compile, Phase::Check];

/// The phases of a bench that counts.
pub(super) const MEASURED: [Phase; 4] = [Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench];

/// The kernel whose versions are tried: that of a variant which has a Python file of the workspace.
#[derive(Clone, Copy)]
pub(super) struct Kernel<'a> {
    /// The workspace.
    pub(super) session: &'a Session,
    /// The op.
    pub(super) op: &'a Op,
    /// The variant.
    pub(super) variant: &'a Variant,
}

/// A trial.
pub(super) struct Trial<'a> {
    kernel: Kernel<'a>,
    root: PathBuf,
    options: Options,
    settings: Settings,
    interrupt: &'a Interrupt,
}

/// What was built of a kernel.
pub(super) struct Built {
    session: Session,
    report: Report,
    place: Target,
}

/// Why a kernel is none that can win.
#[derive(Debug)]
pub(super) struct Refused {
    /// The phase that said so, in words.
    pub(super) phase: &'static str,
    /// Why.
    pub(super) failure: Failure,
}

/// What a screening beside another kernel needs of it.
pub(super) struct Beside {
    /// Its bytes.
    pub(super) source: Vec<u8>,
    /// Its document `tune`, or null.
    pub(super) tune: Value,
    /// The archive of its compiled kernels.
    pub(super) archive: Option<PathBuf>,
}

impl<'a> Trial<'a> {
    /// Makes the trial of a kernel anew, in the folder `root`.
    pub(super) fn make(
        kernel: Kernel<'a>,
        root: PathBuf,
        common: &Common,
        interrupt: &'a Interrupt,
    ) -> Result<Self, CliError> {
        let session = kernel.session;
        mirror(session, &root).with_context(|| format!("cannot write to `{}`", root.display()))?;
        let options = Options {
            cache: Some(session.cache.clone()),
            takes_kernels_as_they_are: true,
            pool: Some(Arc::clone(&session.pool)),
            toolchain: session.toolchain.clone(),
            ..context::options(common, &session.root, Probing::Allowed)
        };
        let settings = setup::settings(common, &BuildArguments::default(), session, &OpenedRemote::default())?;
        // Most candidates are of no use to anybody else.
        let settings = Settings { remote: None, ..settings };
        Ok(Self { kernel, root, options, settings, interrupt })
    }

    /// Removes the copy of the workspace.
    pub(super) fn remove(&self) -> std::io::Result<()> {
        fs::remove(&self.root)
    }

    /// Builds these phases of the kernel whose file holds `source`, and `others` beside it.
    pub(super) fn build(&self, source: &[u8], phases: &[Phase], others: &[&str]) -> Result<Built, CliError> {
        let Kernel { op, variant, .. } = self.kernel;
        let file = self.root.join(&variant.file);
        fs::write(&file, source).with_context(|| format!("cannot write `{}`", file.display()))?;
        let session = Session::open(&self.root, &self.options, self.interrupt)?;
        session.pool.begin_build();
        let place = Target::of_variant(&op.name, &variant.name, Phase::Check);
        let named = phases.iter().map(|phase| Target { phase: *phase, ..place.clone() });
        let named = named.filter(|target| session.graph.find(target).is_some()).map(|target| target.to_string());
        let targets = named.chain(others.iter().map(|name| (*name).to_owned())).collect();
        let wanted = pick(&session.graph, &Selection { targets, ..Selection::default() }, Force::Stale)?;
        let mut tell = |event| match event {
            Event::Warning { text } => streams::say(&format!("warning: {text}")),
            Event::Waiting { what, holder } => streams::say(&format!("waiting: {what}, held by {holder}")),
            _ => {}
        };
        let report = engine::build(&session, &wanted, &self.settings, self.interrupt, &mut tell)?;
        if report.interrupted {
            return Err(CliError::Interrupted);
        }
        Ok(Built { session, report, place })
    }

    /// Times a kernel that was built beside the one to be replaced.
    pub(super) fn screen(&self, built: &Built, beside: &Beside) -> Result<Result<Screen, Refused>, CliError> {
        said(&self.paired(built, beside, perform::screen)?, "screen")
    }

    /// Times the kernel that was built last against another version of it.
    pub(super) fn against(&self, built: &Built, beside: &Beside) -> Result<Result<Against, Refused>, CliError> {
        said(&self.paired(built, beside, perform::against)?, "against")
    }

    fn paired(&self, built: &Built, beside: &Beside, perform: Performs) -> Result<Performed, CliError> {
        let file = incumbent_file(&self.kernel.variant.file);
        let path = self.root.join(&file);
        fs::write(&path, &beside.source).with_context(|| format!("cannot write `{}`", path.display()))?;
        let performed = self.perform(built, beside, file, perform);
        // No candidate finds it there when it is checked.
        let _ = fs::remove(&path);
        performed
    }

    fn perform(&self, built: &Built, beside: &Beside, file: String, perform: Performs) -> Result<Performed, CliError> {
        let (session, shares) = (&built.session, &self.settings.shares);
        let requests = alone::requests(session, shares);
        let bench = Target { phase: Phase::Bench, ..built.place.clone() };
        let action = session.graph.action(session.graph.find(&bench).expect("a variant has a bench"));
        let device = session.devices.first().map(|device| device.uuid.clone());
        let warm = match session.inventory.device.class {
            DeviceClass::Interpreter => Vec::new(),
            DeviceClass::Cuda(_) => built.archive().into_iter().chain(beside.archive.clone()).collect(),
        };
        let given = Given { warm, device, cores: shares.devices.first().cloned(), ..Given::default() };
        let scratch = session.cache.join("scratch").join(context::process().to_string()).join("screen");
        let mut job = requests.job(action, &given, scratch);
        let variant = session.spec.op(&built.place.op).and_then(|op| op.variant(built.place.variant.as_deref()?));
        let candidate: ToldVariant = told(variant.expect("the trial has the variant"));
        let Part::Bench(part) = &job.arguments.part else { return Ok(Performed::lost("a bench is told of none")) };
        let protocol = part.protocol;
        let incumbent = ToldVariant { file, ..candidate.clone() };
        let part = OfScreen { protocol, incumbent, candidate, tune: beside.tune.clone() };
        job.arguments.variant = None;
        job.arguments.part = Part::Screen(Box::new(part));
        let who = format!("screening of {}", built.place.place());
        let workspace = &self.kernel.session.root;
        alone::performed(&job, &session.pool, (&who, workspace), self.interrupt, perform)
    }
}

impl Built {
    fn settled(&self, target: &Target) -> Option<&Settled> {
        self.report.settled[self.session.graph.find(target)?.number()].as_ref()
    }

    fn record(&self, phase: Phase) -> Option<&Record> {
        self.settled(&Target { phase, ..self.place.clone() }).and_then(Settled::record)
    }

    /// Returns a document of the variant's action of this phase, where there is one.
    pub(super) fn document<T: DeserializeOwned>(&self, phase: Phase, name: &str) -> Option<T> {
        self.read(self.record(phase)?, name)
    }

    /// Returns a document of another action, likewise.
    pub(super) fn document_of<T: DeserializeOwned>(&self, target: &Target, name: &str) -> Option<T> {
        self.read(self.settled(target)?.record()?, name)
    }

    fn read<T: DeserializeOwned>(&self, record: &Record, name: &str) -> Option<T> {
        let bytes = self.session.cas().get(record.outputs.get(name)?.digest).ok()?;
        read::document(&bytes).ok()
    }

    /// Returns where the kernels of its compile lie.
    pub(super) fn archive(&self) -> Option<PathBuf> {
        let blob = self.record(Phase::Compile)?.outputs.get(ARCHIVE)?;
        Some(self.session.cas().path(blob.digest))
    }

    /// Returns why the kernel cannot win, by these phases; None where all passed. Fails where the machine did.
    pub(super) fn refused(&self, phases: &[Phase]) -> Result<Option<Refused>, CliError> {
        for phase in phases {
            let target = Target { phase: *phase, ..self.place.clone() };
            match self.settled(&target) {
                Some(Settled::Lost(reason)) => return Err(CliError::machine(format!("{target}: {reason}"))),
                Some(settled) => {
                    let Some(record) = settled.record() else { continue };
                    if let Some(failure) = self.failure(record)? {
                        return Ok(Some(Refused { phase: phase.name(), failure }));
                    }
                }
                None => {}
            }
        }
        Ok(None)
    }

    fn failure(&self, record: &Record) -> Result<Option<Failure>, CliError> {
        let cas = self.session.cas();
        Ok(match &record.outcome {
            Outcome::Rejected { class } => {
                let failure = evidence::failure(record, |digest| cas.get(digest)).context("cannot read the store")?;
                Some(Failure { class: class.clone(), ..failure })
            }
            Outcome::NotJudged { reason } => Some(Failure::new("not-judged", reason.clone())),
            Outcome::Passed | Outcome::Lost { .. } => None,
        })
    }
}

/// Returns the document of this name that pairs of runs came to. Fails where the machine did.
fn said<T: DeserializeOwned>(performed: &Performed, name: &str) -> Result<Result<T, Refused>, CliError> {
    let document = |name: &str| performed.documents.get(name);
    match &performed.outcome {
        Some(Outcome::Passed) => {
            let found: Option<T> = document(name).and_then(|bytes| read::document(bytes).ok());
            Ok(Ok(found.ok_or_else(|| CliError::machine(format!("the document `{name}` is missing")))?))
        }
        Some(Outcome::Rejected { class }) => {
            let failure: Option<Failure> = document("failure").and_then(|bytes| read::document(bytes).ok());
            let failure = Failure { class: class.clone(), ..failure.unwrap_or_default() };
            Ok(Err(Refused { phase: "screen", failure }))
        }
        Some(Outcome::Lost { reason } | Outcome::NotJudged { reason }) => Err(CliError::machine(reason.clone())),
        None => Err(CliError::machine("the process that timed both ended without an outcome")),
    }
}

/// Returns the file of the kernel to be replaced while both are in one process: beside the candidate, so that both import alike.
fn incumbent_file(file: &str) -> String {
    let stem = file.strip_suffix(".py").unwrap_or(file);
    format!("{stem}__incumbent.py")
}

/// Copies what of a workspace counts for its kernels: ops.yaml, the kernels, what they may read, the files that ops.yaml names, and assets.
fn mirror(session: &Session, to: &Path) -> std::io::Result<()> {
    let root = &session.root;
    fs::remove(to)?;
    let assets = fs::names(&root.join("assets")).into_iter().filter(|name| !LEFT_OUT.contains(&name.as_str()));
    let mut paths: BTreeSet<PathBuf> = assets.map(|name| root.join("assets").join(name)).collect();
    paths.extend(["ops.yaml", "kernels"].map(|name| root.join(name)));
    paths.extend(session.inventory.files.keys().chain(session.inventory.templates.keys()).map(|file| root.join(file)));
    // What is installed elsewhere is found there.
    paths.extend(session.readable().iter().filter(|path| path.starts_with(root)).cloned());
    for path in paths {
        let below = path.strip_prefix(root).map_err(std::io::Error::other)?;
        if fs::folder_time(&path).is_some() {
            fs::copy(&path, &to.join(below))?;
        }
    }
    Ok(())
}
