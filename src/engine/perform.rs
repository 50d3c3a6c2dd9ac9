//! Performing: an action that runs Python, as calls of harness functions in children, from its request to its documents.
//!
//! It runs on a thread of its own and writes nothing but its scratch folder: what comes of it is for the engine to keep.
#![expect(clippy::disallowed_methods, reason = "how long an action ran is measured here")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use t2t_protocol::{End, Fault, Finished, Limits, Request, Reserve, Sandbox, ServerKind};

use super::ready;
use crate::action::{Phase, Target};
use crate::cores;
use crate::fs;
use crate::imports;
use crate::manifest::canonical_json;
use crate::pool::{Cancel, NoCall, Pool};
use crate::record::Outcome;
use crate::spans::{ChildSpan, DeviceSpan, Doing, Span, Times};

mod end;

use self::end::{conclude, described, has_passed, replied, unjudged};

/// How many bytes of memory a child that runs kernel code on the CPU may take.
const CPU_MEMORY: u64 = 2 << 30;

/// How many bytes more it may take for each further process that it compiles in.
const PROCESS_MEMORY: u64 = 1 << 30;

/// How much longer than its CPU time an action on the CPU lane may take by the clock: other work shares the cores.
const PATIENCE: u32 = 4;

/// How far above an action's scratch folder lies that of all builds: theirs come and go.
const ABOVE: usize = 2;

/// What a child on a device is told of children that are ready there: they hold memory of it, and do nothing.
const READY: &str = "ready";

/// Everything that performing one action needs.
#[derive(Debug, Clone)]
pub struct Job {
    /// Which action.
    pub target: Target,
    /// The server that its children are forked from.
    pub kind: ServerKind,
    /// What every request of it holds.
    pub arguments: Map<String, Value>,
    /// Files and folders that its children may read, beside what every child may.
    pub read: Vec<PathBuf>,
    /// The workspace.
    pub root: PathBuf,
    /// An empty folder of its own.
    pub scratch: PathBuf,
    /// How long it may take.
    pub deadline: Duration,
    /// How many threads a child's arithmetic may use.
    pub threads: usize,
    /// The device that its children see.
    pub device: Option<String>,
    /// The cores that its children run on. None where they run on whichever they get.
    pub cores: Option<Vec<usize>>,
    /// How much they give way to others.
    pub nice: Option<i32>,
    /// How many processes a child may use to compile.
    pub processes: usize,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Performed {
    /// How it ended; none where nothing was said, which is for the caller to avoid.
    pub outcome: Option<Outcome>,
    /// Artifact name → bytes.
    pub documents: BTreeMap<String, Vec<u8>>,
    /// Artifact name → file.
    pub files: BTreeMap<String, PathBuf>,
    /// Workspace files that children opened or looked for.
    pub opened: BTreeSet<String>,
    /// Whether the documents cite source lines.
    pub cites: bool,
    /// From start to end.
    pub wall: Duration,
    /// When its children ran and its device worked.
    pub times: Times,
}

impl Performed {
    /// Returns the end of an action that the machine failed.
    #[must_use]
    pub fn lost(reason: impl Into<String>) -> Self {
        Self { outcome: Some(Outcome::Lost { reason: reason.into() }), ..Self::default() }
    }

    /// Returns the end of an action whose kernel was rejected, with its documents.
    #[must_use]
    pub fn rejected(class: &str, documents: &[(&str, Value)]) -> Self {
        let documents = documents.iter().map(|(name, value)| ((*name).to_owned(), canonical_json(value).into_bytes()));
        let outcome = Some(Outcome::Rejected { class: class.to_owned() });
        Self { outcome, documents: documents.collect(), cites: true, ..Self::default() }
    }

    fn is_lost(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Lost { .. }))
    }
}

/// Performs `job`, and once more where the machine failed it. Once `cancel` is set nothing more is called.
#[must_use]
pub fn perform(job: &Job, pool: &Pool, cancel: &Cancel) -> Performed {
    let start = Instant::now();
    let calls = Calls { pool, cancel, times: RefCell::default() };
    let mut performed = attempt(job, &calls);
    if performed.is_lost() && !cancel.is_set() {
        let again = attempt(job, &calls);
        performed = if again.is_lost() { performed } else { again };
    }
    performed.wall = start.elapsed();
    performed.times = calls.times.into_inner();
    performed
}

/// The calls of one action: how they are made, and when they were.
struct Calls<'a> {
    pool: &'a Pool,
    cancel: &'a Cancel,
    times: RefCell<Times>,
}

impl Calls<'_> {
    fn call(&self, kind: ServerKind, request: Request, reserves: &[Reserve]) -> Result<Finished, NoCall> {
        let function = request.function.trim_start_matches("t2t_harness.").to_owned();
        let begin = cores::monotonic();
        let finished = self.pool.call(kind, request, reserves, self.cancel)?;
        let span = Span { begin, end: cores::monotonic() };
        let mut times = self.times.borrow_mut();
        if let End::Reply(reply) = &finished.end {
            times.device.extend(device_spans(reply, span));
        }
        times.children.push(ChildSpan { function, span });
        Ok(finished)
    }
}

/// Returns when the device worked, as a child's reply says; what is no span, or lies outside of the child's own time, does not count.
fn device_spans(reply: &Value, child: Span) -> Vec<DeviceSpan> {
    let span = |told: &Value| {
        let (begin, end) = (told[0].as_u64()?, told[1].as_u64()?);
        let doing = if told[2] == "timing" { Doing::Timing } else { Doing::Work };
        Some(DeviceSpan { span: Span { begin, end }.within(child)?, doing })
    };
    reply["device_spans"].as_array().into_iter().flatten().filter_map(span).collect()
}

/// Times all variants of an op over many sizes. The job is that of a bench of the op, its request changed to what a sweep is told.
#[must_use]
pub fn sweep(job: &Job, pool: &Pool) -> Performed {
    if let Some(lost) = no_scratch(job) {
        return lost;
    }
    let step = Step { job, name: "main", function: "sweep:sweep", more: Map::new(), read: Vec::new(), trusted: false };
    match step.run(&Calls { pool, cancel: &Cancel::default(), times: RefCell::default() }) {
        Ok(finished) => conclude(&step.folder(), finished),
        Err(error) => Performed::lost(error.to_string()),
    }
}

/// Makes the job's folder anew, and returns its end where that fails.
fn no_scratch(job: &Job) -> Option<Performed> {
    let made = fs::remove(&job.scratch).and_then(|()| fs::make_folder(&job.scratch));
    made.err().map(|error| Performed::lost(format!("cannot make `{}`: {error}", job.scratch.display())))
}

fn attempt(job: &Job, calls: &Calls) -> Performed {
    if let Some(lost) = no_scratch(job) {
        return lost;
    }
    match job.target.phase {
        Phase::Check => check(job, calls),
        Phase::Calibrate => single(job, calls, "calibrate:calibrate"),
        Phase::Analyze => single(job, calls, "analyze:analyze"),
        Phase::Compile => single(job, calls, "compile:compile_variant"),
        Phase::Tune => single(job, calls, "tune:tune"),
        Phase::Baseline => single(job, calls, "baseline:baseline"),
        Phase::Bench => bench(job, calls),
        Phase::Generate | Phase::Select | Phase::Log | Phase::Summary => Performed::lost("not performed by a child"),
    }
}

/// Runs an action that is one child.
fn single(job: &Job, calls: &Calls, function: &str) -> Performed {
    let step =
        Step { job, name: "main", function, more: Map::new(), read: Vec::new(), trusted: job.target.variant.is_none() };
    match step.run(calls) {
        Ok(finished) => conclude(&step.folder(), finished),
        Err(error) => Performed::lost(error.to_string()),
    }
}

/// Runs a check: the inputs of the op's own cases are prepared, where it has any, the candidate runs, its outputs are judged, by children that share nothing but folders.
fn check(job: &Job, calls: &Calls) -> Performed {
    let prepare =
        Step { job, name: "prepare", function: "prepare:prepare", more: Map::new(), read: Vec::new(), trusted: true };
    let mut prepared = None;
    if has_own_cases(job) {
        match prepare.run(calls) {
            Ok(finished) if has_passed(&finished) => prepared = Some((prepare.folder(), finished.opened)),
            // The op's `cases.py` is at fault, or took too long.
            Ok(finished) => return conclude(&prepare.folder(), finished),
            Err(error) => return Performed::lost(error.to_string()),
        }
    }
    let (folder, opened) = prepared.unzip();
    let candidate = Step {
        job,
        name: "candidate",
        function: "candidate:run",
        more: object(json!({"inputs": folder.as_deref().map(text)})),
        read: folder.clone().into_iter().collect(),
        trusted: false,
    };
    let ran = match candidate.run(calls) {
        Ok(finished) => finished,
        Err(error) => return Performed::lost(error.to_string()),
    };
    if let Some(Fault::Machine(reason)) = ran.end.fault() {
        return Performed::lost(reason);
    }
    let judge = Step {
        job,
        name: "judge",
        function: "judge:judge",
        more: object(json!({
            "prepared": folder.as_deref().map(text),
            "candidate": text(&candidate.folder()),
            "end": described(&ran),
        })),
        read: folder.into_iter().chain([candidate.folder()]).collect(),
        trusted: true,
    };
    let judged = match judge.run(calls) {
        Ok(finished) => finished,
        Err(error) => return Performed::lost(error.to_string()),
    };
    let mut performed = if replied(&judged) { conclude(&judge.folder(), judged) } else { unjudged(judged) };
    performed.opened.extend(opened.into_iter().flatten().chain(ran.opened));
    performed
}

/// Returns whether the op has a `cases.py`. All other cases are made of their names alone, by whoever needs them.
fn has_own_cases(job: &Job) -> bool {
    job.arguments.get("op").is_some_and(|op| !op["cases"].is_null())
}

/// Runs a bench: the variant is measured, and one output of a timed call is judged by a child that never saw the kernel.
fn bench(job: &Job, calls: &Calls) -> Performed {
    let measure =
        Step { job, name: "main", function: "bench:bench", more: Map::new(), read: Vec::new(), trusted: false };
    let measured = match measure.run(calls) {
        Ok(finished) => finished,
        Err(error) => return Performed::lost(error.to_string()),
    };
    let mut performed = conclude(&measure.folder(), measured);
    if performed.outcome != Some(Outcome::Passed) {
        return performed;
    }
    let bench = performed.documents.get("bench").and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let judge = Step {
        job,
        name: "judge",
        function: "sample:judge_sample",
        more: object(json!({"sample": text(&measure.folder()), "bench": bench})),
        read: vec![measure.folder()],
        trusted: true,
    };
    let mut judged = match judge.run(calls) {
        Ok(finished) if replied(&finished) => conclude(&judge.folder(), finished),
        Ok(finished) => return unjudged(finished),
        Err(error) => return Performed::lost(error.to_string()),
    };
    judged.opened.append(&mut performed.opened);
    judged
}

/// One child of an action.
struct Step<'a> {
    job: &'a Job,
    name: &'a str,
    function: &'a str,
    more: Map<String, Value>,
    read: Vec<PathBuf>,
    /// Whether it runs no kernel code.
    trusted: bool,
}

impl Step<'_> {
    fn folder(&self) -> PathBuf {
        self.job.scratch.join(self.name)
    }

    fn run(&self, calls: &Calls) -> Result<Finished, NoCall> {
        let folder = self.folder();
        if let Err(error) = fs::make_folder(&folder) {
            return Ok(Finished::bare(0, End::Refused(format!("cannot make `{}`: {error}", folder.display()))));
        }
        let mut request = self.request(&folder);
        let reserves = ready::of_device(self.job, self.function);
        if self.job.device.is_some() {
            request.arguments[READY] = ready::beside(calls.pool, self.job, self.function, &reserves).into();
        }
        calls.call(self.job.kind, request, &reserves)
    }

    fn request(&self, folder: &Path) -> Request {
        let mut arguments = self.job.arguments.clone();
        arguments.insert("root".to_owned(), text(&self.job.root).into());
        arguments.insert("scratch".to_owned(), text(folder).into());
        arguments.extend(self.more.clone());
        Request {
            id: 0,
            function: format!("t2t_harness.{}", self.function),
            arguments: Value::Object(arguments),
            scratch: text(folder),
            environment: self.environment(folder),
            limits: self.limits(),
            sandbox: Some(self.sandbox()),
            watch_under: (!self.stays()).then(|| text(&self.job.root)),
            reserve: ready::key(self.job, self.function),
            stays: self.stays(),
            undisturbed: ready::is_timed(self.function),
            needs: imports::needed(self.function, self.job.device.is_some()).map(str::to_owned),
        }
    }

    /// Returns whether the child serves other actions, too. It opens no sources.
    fn stays(&self) -> bool {
        ready::stays(self.function)
    }

    fn environment(&self, folder: &Path) -> BTreeMap<String, String> {
        let threads = self.job.threads.to_string();
        [
            ("TRITON_CACHE_DIR", text(&folder.join("triton"))),
            ("TRITON_DISABLE_LINE_INFO", "1".to_owned()),
            ("CUDA_CACHE_PATH", text(&folder.join("cuda"))),
            ("CUDA_VISIBLE_DEVICES", self.job.device.clone().unwrap_or_default()),
            ("TORCHINDUCTOR_CACHE_DIR", text(&folder.join("inductor"))),
            ("OMP_NUM_THREADS", threads.clone()),
            ("MKL_NUM_THREADS", threads),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// On the CPU lane a deadline counts CPU time: how fast the clock runs beside it is the machine's doing.
    fn limits(&self) -> Limits {
        let deadline = milliseconds(self.job.deadline);
        let (cores, nice) = (self.job.cores.clone(), self.job.nice);
        if self.job.device.is_some() {
            return Limits { cores, nice, ..Limits::wall(deadline) };
        }
        let wall = deadline.saturating_mul(PATIENCE.into());
        let more = self.job.processes.saturating_sub(1) as u64 * PROCESS_MEMORY;
        let memory_bytes = (!self.trusted).then_some(CPU_MEMORY + more);
        Limits { cpu_ms: Some(deadline), memory_bytes, cores, nice, ..Limits::wall(wall) }
    }

    fn sandbox(&self) -> Sandbox {
        let kernels = self.job.root.join("kernels");
        let device = self.job.device.is_some();
        if self.stays() {
            // What it is to judge lies in the folders of actions to come.
            let all = self.job.scratch.ancestors().nth(ABOVE).unwrap_or(&self.job.scratch);
            return Sandbox { read: vec![text(&kernels)], write: vec![text(all)], device };
        }
        let read = [kernels].iter().chain(&self.job.read).chain(&self.read).map(|path| text(path)).collect();
        Sandbox { read, write: Vec::new(), device }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
