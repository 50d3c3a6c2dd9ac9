//! `t2t bench OP --sweep`: how variants, torch and torch.compile grow with the size. Its figures are in no graph and no store.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;
use t2t_host::cores::{self, Shares};
use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_model::record::Outcome;
use t2t_plan::graph::expand::profile;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_protocol::{Failure, OfSweep, Part, Sweep, read};
use t2t_report::render::sweep::{csv, svg, text};
use t2t_spec::doubling::doubled;
use t2t_spec::{Op, Variant};
use t2t_store::fs;

use super::alone::{self, ARCHIVE};
use super::error::CliError;
use super::plan::{Plan, plans, standing};
use super::{BenchArguments, Common, context, streams};
use crate::engine::job::Job;
use crate::engine::perform::{self, Performed};
use crate::engine::request::{Given, own_names, told};
use crate::session::Session;

/// Where sweeps are written in a workspace.
const FOLDER: &str = "logs/sweep";

/// Runs the command.
pub(crate) fn sweep(common: &Common, arguments: &BenchArguments) -> Result<u8, CliError> {
    let (_lock, interrupt, session) = context::open_locked(common, "a sweep needs its device here")?;
    let selection = Selection {
        targets: vec![arguments.op.clone()],
        variants: arguments.variant.clone(),
        phases: vec![Phase::Bench],
    };
    let wanted = pick(&session.graph, &selection, Force::Stale)?;
    let Some(op) = session.spec.op(&arguments.op) else {
        return Err(CliError::misuse(
            format!("`{}` is no op", arguments.op),
            "name an op, as in `t2t bench softmax --sweep`",
        ));
    };
    let plans = plans(&session, &wanted)?;
    let variants = right_ones(&session, op, &arguments.variant, &plans)?;
    let shares = cores::shares(session.devices.len());
    cores::keep_off_devices(&shares);
    let job = job(&session, op, &variants, &plans, &shares);
    introduce(&session, op, &variants, &job);
    let who = format!("sweep of {}", op.name);
    let performed = alone::performed(&job, &session.pool, (&who, &session.root), &interrupt, perform::sweep);
    let _ = fs::remove(job.scratch.parent().unwrap_or(&job.scratch));
    if interrupt.is_set() {
        return Err(CliError::Interrupted);
    }
    finish(&performed?, &arguments.out.clone().unwrap_or_else(|| session.root.join(FOLDER)), &op.name)
}

/// Returns the variants whose check passed. Those that cannot be judged here are left out; any other that has not passed is an error.
fn right_ones<'a>(
    session: &Session,
    op: &'a Op,
    named: &[String],
    plans: &[Plan],
) -> Result<Vec<&'a Variant>, CliError> {
    let mut right = Vec::new();
    let mut wrong = Vec::new();
    for variant in op.variants.iter().filter(|variant| named.is_empty() || named.contains(&variant.name)) {
        match verdict(session, &Target::of_variant(&op.name, &variant.name, Phase::Check), plans) {
            Some(Outcome::Passed) => right.push(variant),
            Some(Outcome::NotJudged { .. }) => {
                streams::say(&format!("note: {} is left out: it cannot be judged here", variant.name));
            }
            Some(_) => wrong.push(format!("{} (rejected)", variant.name)),
            None => wrong.push(format!("{} (not checked)", variant.name)),
        }
    }
    let hint = format!("run `t2t build {}:check`", op.name);
    if !wrong.is_empty() {
        let message = format!(
            "a sweep times only right kernels; {} has variants that are not known to be right: {}",
            op.name,
            wrong.join(", ")
        );
        return Err(CliError::Missing { message, hint });
    }
    if right.is_empty() {
        return Err(CliError::Missing { message: format!("{} has no variant that was judged here", op.name), hint });
    }
    Ok(right)
}

/// Returns what a check that stands says.
fn verdict(session: &Session, target: &Target, plans: &[Plan]) -> Option<Outcome> {
    let record = plan(session, target, plans)?.settled.record()?;
    Some(record.outcome.clone())
}

fn plan<'a>(session: &Session, target: &Target, plans: &'a [Plan]) -> Option<&'a Plan> {
    let index = session.graph.find(&standing(session, plans, target))?;
    plans.iter().find(|plan| plan.index == index)
}

/// Returns the job: a bench of the first variant whose request names all variants, the baselines and the sizes of the sweep.
fn job(session: &Session, op: &Op, variants: &[&Variant], plans: &[Plan], shares: &Shares) -> Job {
    let requests = alone::requests(session, shares);
    let target = |variant: &Variant, phase| Target::of_variant(&op.name, &variant.name, phase);
    let on_device = session.inventory.device.class != DeviceClass::Interpreter;
    let cas = session.cas();
    let archive = |variant: &&&Variant| {
        let record = plan(session, &target(variant, Phase::Compile), plans)?.settled.record()?;
        Some(cas.path(record.outputs.get(ARCHIVE)?.digest))
    };
    let warm = variants.iter().filter(|_| on_device).filter_map(|variant| archive(&variant)).collect();
    let device = session.devices.first().map(|device| device.uuid.clone());
    let index = session.graph.find(&target(variants[0], Phase::Bench)).expect("a variant has a bench");
    let action = session.graph.action(index);
    let scratch = session.cache.join("scratch").join(std::process::id().to_string()).join("sweep");
    let mut job = requests.job(
        action,
        &Given { warm, device, cores: shares.devices.first().cloned(), ..Given::default() },
        scratch,
    );
    let declaration = op.declaration(profile(&session.inventory.device.class));
    // Torch is timed on a device alone.
    let interpreted = session.inventory.device.class == DeviceClass::Interpreter;
    let baselines = if interpreted { Vec::new() } else { own_names(&declaration) };
    let subjects = variants.len() + baselines.len();
    let sizes = doubled(&declaration.sizes).into_iter().enumerate();
    // Names in the order of the sizes: a mapping of JSON is sorted.
    let sizes = sizes.map(|(number, size)| (format!("{number:02}"), size)).collect();
    let arguments = &mut job.arguments;
    arguments.op = arguments.op.take().map(|op| t2t_protocol::Declaration { sizes, ..op });
    arguments.variant = None;
    let variants = variants.iter().map(told).collect();
    arguments.part = Part::Sweep(OfSweep { protocol: told(&declaration.protocol), baselines, variants });
    job.deadline *= u32::try_from(subjects).unwrap_or(u32::MAX);
    job
}

fn introduce(session: &Session, op: &Op, variants: &[&Variant], job: &Job) {
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    let sizes = job.arguments.op.as_ref().map_or(0, |op| op.sizes.len());
    streams::say(&format!(
        "sweep of {}: {} at {sizes} sizes, on {}",
        op.name,
        names.join(", "),
        session.inventory.device.class
    ));
    if session.inventory.device.class == DeviceClass::Interpreter {
        streams::say("note: these are timings of Triton's interpreter: they say nothing about a GPU");
    }
}

/// Writes and prints what came of it.
fn finish(performed: &Performed, folder: &Path, op: &str) -> Result<u8, CliError> {
    match &performed.outcome {
        Some(Outcome::Passed) => {}
        Some(Outcome::Rejected { class }) => {
            let failure: Option<Failure> =
                performed.documents.get("failure").and_then(|bytes| read::document(bytes).ok());
            let message = failure.map(|failure| failure.message).filter(|message| !message.is_empty());
            let message = message.unwrap_or_else(|| class.clone());
            streams::say(&format!("error: {op}: {message} ({class})"));
            return Ok(1);
        }
        Some(Outcome::Lost { reason } | Outcome::NotJudged { reason }) => {
            return Err(CliError::machine(reason.clone()));
        }
        None => return Err(CliError::machine("the sweep ended without an outcome")),
    }
    let left = performed.documents.get("sweep").and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let left = left.ok_or_else(|| CliError::machine("the sweep left no document"))?;
    let sweep: Sweep = read::leniently(&left).map_err(|misfit| CliError::machine(format!("the sweep: {misfit}")))?;
    let picture = svg(&sweep).map_err(|error| CliError::machine(error.to_string()))?;
    let files = [("csv", csv(&sweep)), ("json", format!("{left:#}\n")), ("svg", picture)];
    for (ending, content) in files {
        let path: PathBuf = folder.join(format!("{op}.{ending}"));
        fs::write(&path, content.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))?;
        streams::say(&format!("wrote {}", path.display()));
    }
    for (what, why) in &sweep.reasons {
        streams::say(&format!("note: {what}: no figure: {why}"));
    }
    streams::print(&text(&sweep));
    Ok(0)
}
