//! `t2t profile OP/VARIANT`: what each kernel of a call takes on the device, and what bounds it. What was recorded is kept under the key of the bench, the size, the dtype and
//! the profile's own code, and is not recorded again while that stands.
//!
//! It does not know what bounds a kernel.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use t2t_host::cores::{self, Shares};
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::record::{Outcome, Record};
use t2t_plan::graph::expand::profile as profile_of;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_protocol::{Analysis, Calibration, Declaration, Failure, Profile, Resources, read};
use t2t_report::render::counters;
use t2t_report::render::profile::{Beside, profiled, text};
use t2t_spec::{Op, Variant};
use t2t_store::harness::Harness;
use t2t_store::{fs, kept};

use self::nsight::{Counted, Program};
use super::alone::{self, ARCHIVE};
use super::arguments::ProfileArguments;
use super::error::CliError;
use super::plan::{Plan, plans, standing};
use super::{Common, context, streams};
use crate::engine::job::Job;
use crate::engine::perform::{self, Performed};
use crate::engine::request::{Given, Requests, told};
use crate::session::{Probing, Session};

mod nsight;

/// The version of kept profiles, and of what `--json` prints. 1: first.
const VERSION: u32 = 1;

/// The module of the harness that records.
const MODULE: &str = "profile";

/// So many profiles of an op stay, those that were made last: four variants at three sizes in two dtypes, four times.
const KEPT: usize = 96;

/// What is profiled, with the results that stand.
struct Subject<'a> {
    session: &'a Session,
    op: &'a Op,
    variant: &'a Variant,
    declaration: Declaration,
    plans: Vec<Plan>,
    /// `OP/VARIANT`.
    place: String,
    size: String,
    dtype: String,
}

/// Runs the command.
pub(crate) fn profile(common: &Common, arguments: &ProfileArguments) -> Result<u8, CliError> {
    if common.as_device.is_some() {
        if arguments.counters {
            return Err(CliError::misuse(
                "counters are read on the device itself",
                "leave out `--as-device`, or `--counters`",
            ));
        }
        let session = context::open(common, Probing::Never, &Interrupt::default())?;
        let subject = subject(&session, arguments)?;
        let path = subject.path()?;
        let found = kept::read(&path, VERSION).ok_or_else(|| {
            let message = format!(
                "no profile of {} at `{}` in {} is kept for {}",
                subject.place, subject.size, subject.dtype, session.inventory.device.class
            );
            CliError::misuse(message, "record it where the device is, and leave out `--as-device` there")
        })?;
        return subject.print(&found, None, arguments.json);
    }
    let version = if arguments.counters { Some(nsight::version()?) } else { None };
    let (_lock, interrupt, session) = context::open_locked(common, "a profile needs its device here")?;
    if session.inventory.device.class == DeviceClass::Interpreter {
        return Err(CliError::misuse(
            "a profile needs a CUDA device, and kernels run in Triton's interpreter here",
            "run it where there is one; `--as-device nvidia-h200` prints one that is kept",
        ));
    }
    let subject = subject(&session, arguments)?;
    let Some(found) = subject.profile(&interrupt)? else { return Ok(1) };
    let counted = match version {
        Some(version) => {
            let python = context::python(common, context::workspace()?).expect("it recorded the profile");
            Some(subject.counters(&python.path, version, found.limits.capability, &interrupt)?)
        }
        None => None,
    };
    subject.print(&found, counted.as_ref(), arguments.json)
}

/// Returns what is named. Fails where it is not declared, and where its bench does not stand.
fn subject<'a>(session: &'a Session, arguments: &ProfileArguments) -> Result<Subject<'a>, CliError> {
    let example = "name one variant, as in `t2t profile softmax/v2_tiling`";
    let written = &arguments.target;
    let unnamed = || CliError::misuse(format!("`{written}` names no variant"), example);
    let (op, variant) = written.split_once('/').ok_or_else(unnamed)?;
    let op = session.spec.op(op).ok_or_else(|| CliError::misuse(format!("`{op}` is no op"), example))?;
    let names: Vec<&str> = op.variants.iter().map(|variant| variant.name.as_str()).collect();
    let variant = op.variant(variant).ok_or_else(|| {
        CliError::misuse(format!("{} has no variant `{variant}`", op.name), format!("it has {}", names.join(", ")))
    })?;
    let place = format!("{}/{}", op.name, variant.name);
    let declaration: Declaration = told(&op.declaration(profile_of(&session.inventory.device.class)));
    let lengths =
        |name: &str| declaration.sizes[name].values().map(|length| u128::from(*length)).fold(1, u128::saturating_mul);
    let sizes: Vec<&str> = declaration.sizes.keys().map(String::as_str).collect();
    let largest = sizes.iter().copied().max_by_key(|name| lengths(name));
    let size = chosen(arguments.size.as_deref().or(largest), &sizes, "size", &op.name)?;
    let dtypes: Vec<&str> = declaration.dtypes.iter().map(String::as_str).collect();
    let dtype = chosen(arguments.dtype.as_deref().or(dtypes.first().copied()), &dtypes, "dtype", &op.name)?;
    let mut targets = vec![
        Target::of_variant(&op.name, &variant.name, Phase::Bench).to_string(),
        Target::of_op(&op.name, Phase::Analyze).to_string(),
    ];
    if session.graph.find(&Target::calibrate()).is_some() {
        targets.push(Target::calibrate().to_string());
    }
    let wanted = pick(&session.graph, &Selection { targets, ..Selection::default() }, Force::Stale)?;
    let plans = plans(session, &wanted)?;
    Ok(Subject { session, op, variant, declaration, plans, place, size, dtype })
}

/// Returns the harness that children import.
fn harness() -> Result<Harness, CliError> {
    let folder = env::var_os("T2T_HARNESS").map(PathBuf::from);
    Ok(Harness::open(folder.as_deref()).context("cannot read `$T2T_HARNESS`")?)
}

/// Keeps what was made of an op, and removes what was made long before.
fn keep<T: Serialize>(path: &Path, found: &T) -> Result<(), CliError> {
    kept::write(path, VERSION, found).with_context(|| format!("cannot write `{}`", path.display()))?;
    kept::keep_newest(path.parent().unwrap_or(path), KEPT);
    Ok(())
}

/// Returns what is named of the known ones.
fn chosen(name: Option<&str>, known: &[&str], what: &str, op: &str) -> Result<String, CliError> {
    match name {
        Some(name) if known.contains(&name) => Ok(name.to_owned()),
        name => Err(CliError::misuse(
            format!("{op} has no {what} `{}`", name.unwrap_or_default()),
            format!("it has {}", known.join(", ")),
        )),
    }
}

impl Subject<'_> {
    fn target(&self, phase: Phase) -> Target {
        let target = Target::of_variant(&self.op.name, &self.variant.name, phase);
        standing(self.session, &self.plans, &target)
    }

    fn result(&self, target: &Target) -> Option<&Record> {
        let index = self.session.graph.find(target)?;
        self.plans.iter().find(|plan| plan.index == index)?.settled.record()
    }

    fn document<T: DeserializeOwned>(&self, target: &Target, name: &str) -> Option<T> {
        let blob = self.result(target)?.outputs.get(name)?;
        read::document(&self.session.cas().get(blob.digest).ok()?).ok()
    }

    /// Returns the profile that is kept, else one that is recorded now, and kept; None where the kernel was rejected, which is said.
    fn profile(&self, interrupt: &Interrupt) -> Result<Option<Profile>, CliError> {
        let path = self.path()?;
        if let Some(found) = kept::read(&path, VERSION) {
            return Ok(Some(found));
        }
        let performed = self.record(interrupt)?;
        if interrupt.is_set() {
            return Err(CliError::Interrupted);
        }
        let Some(found) = self.said(&performed)? else { return Ok(None) };
        // What shows nothing is not kept.
        if found.calls.iter().any(|call| !call.is_empty()) {
            keep(&path, &found)?;
        }
        Ok(Some(found))
    }

    /// Returns the counters that are kept, else those that are read now, and kept.
    fn counters(
        &self,
        python: &Path,
        version: String,
        capability: [u64; 2],
        interrupt: &Interrupt,
    ) -> Result<Counted, CliError> {
        let metrics = counters::metrics(capability);
        let path = self.path_of(nsight::MODULE, &["ncu", &version, &metrics.join(",")])?;
        if let Some(found) = kept::read(&path, VERSION) {
            return Ok(found);
        }
        let harness = harness()?;
        let placed = harness.place(&self.session.cache).context("cannot write the harness")?;
        let withheld: Vec<String> = self.session.spec.authors.variables().map(str::to_owned).collect();
        let program = Program { python, harness: &placed, withheld: &withheld };
        streams::say(&format!("counters of {} at `{}` in {}", self.place, self.size, self.dtype));
        let shares = cores::shares(self.session.devices.len());
        let job = self.job(&alone::requests(self.session, &shares), &shares);
        let who = format!("counters of {}", self.place);
        let counted = alone::locked(&job, (&who, &self.session.root), interrupt, || {
            nsight::counted(&job, &program, version, &metrics, interrupt)
        });
        let _ = fs::remove(job.scratch.parent().unwrap_or(&job.scratch));
        let found = counted??;
        keep(&path, &found)?;
        Ok(found)
    }

    /// Returns where the profile is kept. Fails where no bench that passed stands.
    fn path(&self) -> Result<PathBuf, CliError> {
        self.path_of(MODULE, &["cupti"])
    }

    /// Returns where what a module of the harness made with a profiler is kept. Fails where no bench that passed stands.
    fn path_of(&self, module: &str, profiler: &[&str]) -> Result<PathBuf, CliError> {
        let hint = format!("run `t2t build {}:bench`", self.place);
        let bench = self.result(&self.target(Phase::Bench)).filter(|record| record.outcome == Outcome::Passed);
        let bench = bench.ok_or_else(|| CliError::Missing {
            message: format!("a profile is of a measured kernel, and no bench of {} stands that passed", self.place),
            hint,
        })?;
        let lacking = || CliError::machine(format!("the harness has no `{module}.py`"));
        let code = harness()?.meaning_of(module).ok_or_else(lacking)?;
        let facts =
            json!([VERSION, bench.key.to_string(), code.to_string(), profiler.join(" "), self.size, self.dtype]);
        let key = Digest::of(facts.to_string().as_bytes());
        Ok(self.session.cache.join("profile").join(&self.op.name).join(format!("{key}.json")))
    }

    /// Has the calls recorded, under the lock of the device.
    fn record(&self, interrupt: &Interrupt) -> Result<Performed, CliError> {
        let session = self.session;
        let shares = cores::shares(session.devices.len());
        cores::keep_off_devices(&shares);
        let job = self.job(&alone::requests(session, &shares), &shares);
        streams::say(&format!("profile of {} at `{}` in {}", self.place, self.size, self.dtype));
        let who = format!("profile of {}", self.place);
        let performed = alone::performed(&job, &session.pool, (&who, &session.root), interrupt, perform::profile);
        let _ = fs::remove(job.scratch.parent().unwrap_or(&job.scratch));
        performed
    }

    /// Returns the job of a bench at the one size and dtype.
    fn job(&self, requests: &Requests<'_>, shares: &Shares) -> Job {
        let session = self.session;
        let archive = self.result(&self.target(Phase::Compile)).and_then(|record| record.outputs.get(ARCHIVE));
        let given = Given {
            warm: archive.map(|blob| session.cas().path(blob.digest)).into_iter().collect(),
            device: session.devices.first().map(|device| device.uuid.clone()),
            cores: shares.devices.first().cloned(),
            tune: self.document::<Value>(&self.target(Phase::Tune), "tune"),
            ..Given::default()
        };
        let index = session.graph.find(&self.target(Phase::Bench)).expect("a variant has a bench");
        let scratch = session.cache.join("scratch").join(context::process().to_string()).join("profile");
        let mut job = requests.job(session.graph.action(index), &given, scratch);
        if let Some(op) = &mut job.arguments.op {
            op.sizes.retain(|name, _| *name == self.size);
            op.dtypes = vec![self.dtype.clone()];
        }
        job
    }

    /// Returns the document of a profile; None where the kernel was rejected, which is said.
    fn said(&self, performed: &Performed) -> Result<Option<Profile>, CliError> {
        match &performed.outcome {
            Some(Outcome::Passed) => {}
            Some(Outcome::Rejected { class }) => {
                let bytes = performed.documents.get("failure");
                let failure: Option<Failure> = bytes.and_then(|bytes| read::document(bytes).ok());
                let message = failure.map_or_else(|| class.clone(), |failure| failure.message);
                streams::say(&format!("error: {}: {message} ({class})", self.place));
                return Ok(None);
            }
            Some(Outcome::Lost { reason } | Outcome::NotJudged { reason }) => {
                return Err(CliError::machine(reason.clone()));
            }
            None => return Err(CliError::machine("the profile ended without an outcome")),
        }
        let found: Option<Profile> = performed.documents.get("profile").and_then(|bytes| read::document(bytes).ok());
        found.map(Some).ok_or_else(|| CliError::machine("the profile left no document"))
    }

    /// Prints what a profile comes to beside the results that stand, and what was counted.
    fn print(&self, profile: &Profile, counted: Option<&Counted>, is_json: bool) -> Result<u8, CliError> {
        let analysis: Option<Analysis> = self.document(&Target::of_op(&self.op.name, Phase::Analyze), "analysis");
        let calibration: Option<Calibration> = self.document(&Target::calibrate(), "calibration");
        let resources: Option<Resources> = self.document(&self.target(Phase::Compile), "resources");
        let precision = self.declaration.precision.name();
        let beside = Beside {
            analysis: analysis.as_ref(),
            calibration: calibration.as_ref(),
            resources: resources.as_ref(),
            precision,
        };
        let found = profiled(profile, &beside).ok_or_else(|| CliError::Machine {
            message: "CUPTI recorded no work of the device".to_owned(),
            hint: Some("`t2t doctor` says what torch and the driver are; another profiler may hold CUPTI".to_owned()),
        })?;
        if is_json {
            let document = json!({
                "version": VERSION,
                "target": self.place,
                "size": profile.size,
                "binding": profile.binding,
                "dtype": profile.dtype,
                "device": profile.model,
                "profiler": {"name": profile.profiler, "torch": profile.version},
                "limits": profile.limits,
                "telemetry": profile.telemetry,
                "profile": found,
                "counters": counted,
            });
            streams::print(&format!("{document:#}\n"));
        } else {
            streams::print(&text(&self.place, profile, &found, streams::width()));
            if let Some(Counted { version, kernels }) = counted {
                streams::print(&format!("\n{}", counters::text(kernels, version, streams::width())));
            }
        }
        Ok(0)
    }
}
