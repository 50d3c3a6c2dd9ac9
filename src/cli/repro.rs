//! `t2t repro`: one case of a check as a Python file that runs without t2t, and a run of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use clap::ValueEnum as _;
use serde::de::DeserializeOwned;
use t2t_host::cores;
use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_model::record::Outcome;
use t2t_plan::graph::Index;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_protocol::{Binding, CaseVerdict, Evidence, OfRepro, Part, Reached, Repro, Taken, read};
use t2t_spec::names::nearest;
use t2t_store::fs;
use t2t_store::secrets;

use super::arguments::Sanitizer;
use super::error::CliError;
use super::plan::{plans, standing};
use super::{Common, ReproArguments, context, streams};
use crate::engine::evidence;
use crate::engine::job::Job;
use crate::engine::perform::{self, Performed};
use crate::engine::request::{Given, Requests};
use crate::session::Session;

/// Where the files are written in a workspace.
const FOLDER: &str = "logs/repro";

/// The file that runs the case.
const SCRIPT: &str = "repro.py";

/// The edge cases whose lengths a rehearsal of the kernel found: `WORD` of `cases/capped.py` and of `cases/programs.py`.
const TOLD_EDGES: [&str; 2] = ["grid", "programs"];

/// Runs the command. The exit code is the case's: 0 if nothing differs, 1 if something does.
pub(crate) fn repro(common: &Common, arguments: &ReproArguments) -> Result<u8, CliError> {
    if arguments.sanitizer.is_some() {
        require_sanitizer()?;
    }
    let Written { folder, secrets: of_authors, rejected, is_left_out } = written(common, arguments)?;
    let script = folder.join(SCRIPT);
    streams::say(&format!("wrote {}", script.display()));
    if arguments.no_run {
        return Ok(0);
    }
    let python = context::python(common, context::workspace()?).expect("it wrote the file");
    let mut command = match arguments.sanitizer {
        Some(tool) => sanitized(tool, &python.path),
        None => Command::new(&python.path),
    };
    secrets::withhold(&mut command);
    // Kernel code gets no author's key.
    for name in of_authors {
        command.env_remove(name);
    }
    if arguments.pdb {
        command.args(["-m", "pdb", "-c", "continue"]);
    }
    let program = command.get_program().to_owned();
    let status = command.arg(&script).status().with_context(|| format!("cannot start `{}`", program.display()))?;
    if status.success()
        && let Some(Rejected { class, reason }) = rejected
    {
        let hint = format!("`t2t explain {class}` says what it means");
        streams::say(&format!(
            "note: the last check rejected this case as `{class}`, which one call alone does not show: {reason}\nhint: {hint}"
        ));
    }
    if is_left_out {
        streams::say(
            "note: the last check left this case out: what the interpreter may do for probes was used up (docs/reference/judging.md#limits)",
        );
    }
    Ok(u8::from(!status.success()))
}

/// The program that watches each load, store and barrier of a device.
const SANITIZER: &str = "compute-sanitizer";

/// Fails where compute-sanitizer is not there.
fn require_sanitizer() -> Result<(), CliError> {
    let is_there = Command::new(SANITIZER).arg("--version").output().is_ok_and(|told| told.status.success());
    let hint = "it comes with CUDA's toolkit: put its folder on `PATH`";
    if is_there { Ok(()) } else { Err(CliError::misuse(format!("`{SANITIZER}` was not found"), hint)) }
}

/// Returns the interpreter's command under a tool of compute-sanitizer, which ends it with an error where the tool found one.
fn sanitized(tool: Sanitizer, python: &Path) -> Command {
    let name = tool.to_possible_value().expect("no tool is hidden").get_name().to_owned();
    let mut command = Command::new(SANITIZER);
    command.args(["--tool", &name, "--error-exitcode", "1"]).arg(python);
    // torch takes memory in large pieces, within which nothing is out of bounds, and the tool tells lines where they were compiled in.
    command.env("PYTORCH_NO_CUDA_MEMORY_CACHING", "1").env("TRITON_DISABLE_LINE_INFO", "0");
    command
}

/// A case as files.
struct Written {
    /// Their folder.
    folder: PathBuf,
    /// The variables of authors, which kernel code does not get.
    secrets: Vec<String>,
    /// How the last check rejected the case, if it did.
    rejected: Option<Rejected>,
    /// Whether the last check did not run the case.
    is_left_out: bool,
}

/// A rejection of one case.
struct Rejected {
    class: String,
    reason: String,
}

/// Writes the files of the case. Nothing of t2t is left running, and its lock is free.
fn written(common: &Common, arguments: &ReproArguments) -> Result<Written, CliError> {
    let (_lock, interrupt, session) = context::open_locked(common, "a case runs on the device that is here")?;
    if arguments.sanitizer.is_some() && session.inventory.device.class == DeviceClass::Interpreter {
        let hint =
            "run it where there is one; the interpreter's check tells of stores and loads out of bounds by itself";
        return Err(CliError::misuse(
            "compute-sanitizer needs a CUDA device, and kernels run in Triton's interpreter here",
            hint,
        ));
    }
    let target = target(&session, &arguments.target)?;
    let (case, mut checked) = known(&session, &target, arguments.case.as_deref().or(arguments.named.as_deref()))?;
    let (mut rejections, left_out) = (std::mem::take(&mut checked.rejections), std::mem::take(&mut checked.left_out));
    let job = job(&session, &target, case.as_deref(), checked);
    let performed = perform::repro(&job, &session.pool);
    let left = job.scratch.parent().unwrap_or(&job.scratch).to_owned();
    if interrupt.is_set() {
        let _ = fs::remove(&left);
        return Err(CliError::Interrupted);
    }
    let kept = kept(&session, &target, &performed, case.as_deref(), arguments.out.as_deref());
    let _ = fs::remove(&left);
    let (folder, found) = kept?;
    let secrets = session.spec.authors.variables().map(str::to_owned).collect();
    Ok(Written { folder, secrets, rejected: rejections.remove(&found), is_left_out: left_out.contains(&found) })
}

/// Returns the check of the variant that `text` names.
fn target(session: &Session, text: &str) -> Result<Target, CliError> {
    let place = text.split(':').next().unwrap_or(text);
    let Some((op, variant)) = place.split_once('/') else {
        let hint = "write it as in `t2t repro softmax/v4_optimized`";
        return Err(CliError::misuse(format!("`{text}` names no variant"), hint));
    };
    if variant.contains('#') {
        let hint = "`t2t attempts OP/VARIANT#2 --show` prints the kernel of an attempt";
        return Err(CliError::misuse("a case runs the kernel that lies in its place, and no other attempt", hint));
    }
    let target = Target::of_variant(op, variant, Phase::Check);
    let selection = Selection { targets: vec![target.to_string()], ..Selection::default() };
    pick(&session.graph, &selection, Force::Stale)?;
    Ok(target)
}

/// The last check's findings, on which a variant's cases depend. Blank before there was one.
#[derive(Default)]
struct Checked {
    /// The constants of the kernel's first launch.
    constants: BTreeMap<String, i64>,
    /// The cases that reach what measured sizes launch.
    reached: Vec<Reached>,
    /// The smallest integers of an autotuner's configurations, where there is one.
    least: Option<BTreeMap<String, i64>>,
    /// The lengths that cases had, by name.
    bindings: BTreeMap<String, Binding>,
    /// The cases that it rejected, by name.
    rejections: BTreeMap<String, Rejected>,
    /// The cases that it did not run.
    left_out: Vec<String>,
    /// What the values of its inputs depend on.
    salt: String,
    /// The lengths that torch takes, as the op's analysis found out.
    lengths: BTreeMap<String, Taken>,
}

impl Checked {
    /// Returns what the document `evidence` says of it: nothing of what another t2t wrote otherwise.
    fn of(evidence: Evidence) -> Self {
        let rejections = evidence.cases.iter().filter(|row| row.verdict == CaseVerdict::Rejected).filter_map(|row| {
            let rejected = Rejected { class: row.class.clone()?, reason: row.reason.clone()? };
            Some((row.name.clone(), rejected))
        });
        let rejections = rejections.collect();
        let bindings: BTreeMap<String, Binding> =
            evidence.cases.into_iter().map(|row| (row.name, row.binding)).collect();
        let reached = bindings.iter().filter_map(|(name, binding)| {
            let (kind, (size, _)) =
                name.split_once('/').and_then(|(kind, rest)| Some((kind, rest.split_once('[')?)))?;
            let is_told = kind == "reach" || kind == "edge" && TOLD_EDGES.contains(&size);
            is_told.then(|| Reached { size: size.to_owned(), binding: binding.clone() })
        });
        let constants = evidence.constants.iter().map(|(name, value)| Some((name.clone(), value.as_i64()?)));
        Self {
            salt: evidence.salt.unwrap_or_default(),
            constants: constants.collect::<Option<_>>().unwrap_or_default(),
            least: evidence.configurations.least,
            reached: reached.collect(),
            bindings,
            rejections,
            left_out: evidence.left_out.unwrap_or_default(),
            lengths: BTreeMap::new(),
        }
    }
}

/// Returns the case: the one that was named, else the one that was rejected last; and what a check found out of all of them.
fn known(session: &Session, target: &Target, named: Option<&str>) -> Result<(Option<String>, Checked), CliError> {
    let selection = Selection { targets: vec![target.to_string()], ..Selection::default() };
    let wanted = pick(&session.graph, &selection, Force::Stale)?;
    let plans = plans(session, &wanted)?;
    let index = session.graph.find(&standing(session, &plans, target));
    let stands = plans.iter().find(|plan| Some(plan.index) == index).and_then(|plan| plan.settled.record().cloned());
    let history = super::plan::history(session)?;
    let last = |index: Index| history.last(&session.graph.action(index).identity).map(|record| (**record).clone());
    let cas = session.cas();
    let analysis = session.graph.find(&Target::of_op(&target.op, Phase::Analyze)).and_then(last);
    let lengths = analysis.and_then(|record| cas.get(record.outputs.get("lengths")?.digest).ok());
    let lengths = lengths.and_then(|bytes| read::document(&bytes).ok()).unwrap_or_default();
    // An edit since then changes neither most names of cases nor, most often, the blocks.
    let Some(record) = stands.or_else(|| index.and_then(last)) else {
        return Ok((named.map(str::to_owned), Checked { lengths, ..Checked::default() }));
    };
    let failed = || evidence::failure(&record, |digest| cas.get(digest)).ok()?.case;
    let bytes = record.outputs.get("evidence").and_then(|blob| cas.get(blob.digest).ok());
    let evidence: Evidence = bytes.and_then(|bytes| read::document(&bytes).ok()).unwrap_or_default();
    Ok((named.map(str::to_owned).or_else(failed), Checked { lengths, ..Checked::of(evidence) }))
}

/// Returns the job: that of the check, with the case in its request.
fn job(session: &Session, target: &Target, case: Option<&str>, checked: Checked) -> Job {
    let shares = cores::shares(session.devices.len());
    let requests = Requests {
        spec: &session.spec,
        inventory: &session.inventory,
        root: &session.root,
        catalogue: &session.catalogue,
        shares: &shares,
        readable: session.readable(),
        jobs: 1,
        salt: &checked.salt,
    };
    let on_device = session.inventory.device.class != DeviceClass::Interpreter;
    let device = session.devices.first().filter(|_| on_device).map(|device| device.uuid.clone());
    let index = session.graph.find(target).expect("it was picked");
    let scratch = session.cache.join("scratch").join(std::process::id().to_string()).join("repro");
    let given = Given { device, lengths: checked.lengths, ..Given::default() };
    let mut job = requests.job(session.graph.action(index), &given, scratch);
    job.arguments.part = Part::Repro(OfRepro {
        salt: checked.salt,
        case: case.map(str::to_owned),
        constants: checked.constants,
        least: checked.least,
        reached: checked.reached,
        bindings: checked.bindings,
    });
    job
}

/// Moves what the child wrote to where it is to be, and returns that folder, and the case.
fn kept(
    session: &Session,
    target: &Target,
    performed: &Performed,
    case: Option<&str>,
    out: Option<&Path>,
) -> Result<(PathBuf, String), CliError> {
    match &performed.outcome {
        Some(Outcome::Passed) => {}
        Some(Outcome::Lost { reason } | Outcome::NotJudged { reason }) => {
            return Err(CliError::machine(reason.clone()));
        }
        _ => {
            let evidence: Option<Evidence> = document(performed, "evidence");
            let failure = evidence.and_then(|evidence| evidence.failure);
            let message = failure.map_or_else(|| "the case cannot be made".to_owned(), |failure| failure.message);
            return Err(CliError::Use { message, hint: None });
        }
    }
    let told: Repro = document(performed, "repro").unwrap_or_default();
    let Some(found) = &told.case else {
        let names: Vec<&str> = told.cases.iter().map(String::as_str).collect();
        return Err(unknown(target, case.unwrap_or_default(), &names));
    };
    if let Some(refused) = told.refused {
        return Err(CliError::misuse(format!("case `{found}`: {refused}"), "name another case"));
    }
    let place = format!("{}-{}-{}", target.op, target.variant.as_deref().unwrap_or_default(), file_name(found));
    let folder = out.map_or_else(|| session.root.join(FOLDER).join(place), context::absolute);
    for (name, bytes) in &performed.files {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok((folder, found.clone()))
}

fn document<T: DeserializeOwned>(performed: &Performed, name: &str) -> Option<T> {
    read::document(performed.documents.get(name)?).ok()
}

fn unknown(target: &Target, case: &str, names: &[&str]) -> CliError {
    let hint = match nearest(case, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the cases are {}", names.join(", ")),
    };
    CliError::misuse(format!("{target} has no case `{case}`"), hint)
}

fn file_name(case: &str) -> String {
    case.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}
