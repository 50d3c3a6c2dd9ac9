//! Performing: an action that runs Python, as calls of harness functions in children, from its request to its documents.
//!
//! It runs on a thread of its own and writes nothing but its scratch folder: what comes of it is for the engine to keep.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use t2t_host::cores;
use t2t_host::pool::{Cancel, NoCall, Pool};
use t2t_model::action::Phase;
use t2t_model::manifest::canonical_json;
use t2t_model::record::Outcome;
use t2t_model::spans::{ChildSpan, DeviceSpan, Doing, Span, Times};
use t2t_plan::functions::{self, Function, PHASES, Queues};
use t2t_plan::imports;
use t2t_protocol::{
    Failure, FaultClass, Finished, More, Reply, Request, ToRepro, ToSample, ToldDoing, ToldSpan, Variant, WarmChild,
};
use t2t_store::fs;
use t2t_store::store::at_work;

use super::asking::Asking;
use super::dispatcher::SharedDispatcher;
use super::inputs::Inputs;
use super::job::Job;
use super::nodes::Away;

mod author;
mod baseline;
mod check;
mod end;
mod step;

pub(crate) use self::step::environment;

use self::check::{has_own_cases, prepared};
use self::end::{conclude, replied, reply_of, unjudged};
use self::step::{Step, text};

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Performed {
    /// How it ended; none where nothing was said, which is for the caller to avoid.
    pub(crate) outcome: Option<Outcome>,
    /// Artifact name → bytes.
    pub documents: BTreeMap<String, Vec<u8>>,
    /// Artifact name → bytes of a file that a child left.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Workspace files that children opened or looked for.
    pub(crate) opened: BTreeSet<String>,
    /// Whether the documents cite source lines.
    pub(crate) cites: bool,
    /// The inputs of the op's own cases, where a check prepared them.
    pub(crate) inputs: Option<Inputs>,
    /// From start to end.
    pub(crate) wall: Duration,
    /// When its children ran and its device worked.
    pub(crate) times: Times,
    /// What came of it elsewhere, where a node was to perform it; nothing else counts then but the time.
    pub(crate) away: Option<Away>,
}

/// How the message of a failure begins where a device had no memory left: torch's exception.
const OF_DEVICE: &str = "OutOfMemoryError: ";

impl Performed {
    /// Returns the end of an action that the machine failed.
    #[must_use]
    pub(crate) fn lost(reason: impl Into<String>) -> Self {
        Self { outcome: Some(Outcome::Lost { reason: reason.into() }), ..Self::default() }
    }

    /// Returns the end of a bench that was rejected for memory that the variant did not ask for: it is not judged then. Any other is as it is. `reference` is the file of the op's
    /// reference; torch itself asked where no file of the workspace did and the variant is one of them.
    fn unless_torch_asked(self, reference: Option<&str>, variant: Option<&Variant>) -> Self {
        let Some(Outcome::Rejected { class }) = &self.outcome else { return self };
        let told = self.documents.get("failure").and_then(|bytes| serde_json::from_slice::<Failure>(bytes).ok());
        let Some(failure) = told.filter(|_| class == FaultClass::Memory.as_str()) else { return self };
        let who = match failure.place {
            Some(place) if Some(place.file.as_str()) == reference => {
                let line = place.line.map(|line| format!(":{line}")).unwrap_or_default();
                format!("the reference ran out of memory beside the kernel, at {}{line}", place.file)
            }
            // Of a process that was ended for its memory no line is known either.
            None if failure.message.starts_with(OF_DEVICE) && variant.is_some_and(|one| one.module.is_none()) => {
                "torch ran out of memory beside the kernel, in no line of the workspace".to_owned()
            }
            _ => return self,
        };
        let reason =
            format!("{who}; smaller sizes in `bench: {{sizes: …}}`, or a reference that needs less, can be measured");
        Self { outcome: Some(Outcome::NotJudged { reason }), documents: BTreeMap::new(), cites: false, ..self }
    }

    /// Returns the end of an action whose kernel was rejected, with its documents.
    #[must_use]
    pub(crate) fn rejected(class: &str, documents: &[(&str, Value)]) -> Self {
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
pub fn perform(job: &Job, pool: &Pool, dispatcher: &SharedDispatcher, cancel: &Cancel) -> Performed {
    let start = Instant::now();
    let calls = Calls { pool, dispatcher, cancel, times: RefCell::default() };
    let mut performed = attempt(job, &calls);
    // An author is not asked twice: that may cost somebody something.
    if performed.is_lost() && !cancel.is_set() && job.asking.is_none() {
        dispatcher.dismiss_for(job, pool);
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
    dispatcher: &'a SharedDispatcher,
    cancel: &'a Cancel,
    times: RefCell<Times>,
}

impl Calls<'_> {
    fn call(&self, job: &Job, called: (&'static Function, Queues), request: Request) -> Result<Finished, NoCall> {
        let function = request.function.trim_start_matches(PHASES).to_owned();
        let begin = cores::monotonic();
        let finished = self.dispatcher.call(self.pool, job, called, request, self.cancel)?;
        let span = Span { begin, end: cores::monotonic() };
        let mut times = self.times.borrow_mut();
        if let Some(reply) = reply_of(&finished) {
            times.device.extend(device_spans(&reply, span));
        }
        times.children.push(ChildSpan { function, span });
        Ok(finished)
    }
}

/// Returns when the device worked, as a child's reply says; what lies outside of the child's own time does not count.
fn device_spans(reply: &Reply, child: Span) -> Vec<DeviceSpan> {
    let span = |ToldSpan(begin, end, doing)| {
        let doing = match doing {
            ToldDoing::Timing => Doing::Timing,
            ToldDoing::Work => Doing::Work,
        };
        Some(DeviceSpan { span: Span { begin, end }.within(child)?, doing })
    };
    reply.spans().filter_map(span).collect()
}

/// Times all variants of an op over many sizes. The job is that of a bench of the op, its request changed to what a sweep is told.
#[must_use]
pub(crate) fn sweep(job: &Job, pool: &Pool) -> Performed {
    timed(job, pool, &functions::SWEEP)
}

/// Times a candidate beside the kernel that it is to replace. The job is that of a bench of the variant, its request changed to what a screening is told.
#[must_use]
pub(crate) fn screen(job: &Job, pool: &Pool) -> Performed {
    timed(job, pool, &functions::SCREEN)
}

/// Times two versions of a kernel beside each other. The job is the same as that of a screening.
#[must_use]
pub(crate) fn against(job: &Job, pool: &Pool) -> Performed {
    timed(job, pool, &functions::AGAINST)
}

/// Records what the device does for calls of a variant. The job is that of a bench of the variant.
#[must_use]
pub(crate) fn profile(job: &Job, pool: &Pool) -> Performed {
    timed(job, pool, &functions::PROFILE)
}

/// Performs what is no action's and one child.
fn timed(job: &Job, pool: &Pool, function: &'static Function) -> Performed {
    if let Some(lost) = no_scratch(job) {
        return lost;
    }
    let step = Step { job, name: "main", function, more: More::Nothing {}, read: Vec::new() };
    concluded(&step, &alone(pool, &SharedDispatcher::default(), &Cancel::default()))
}

/// Asks an author outside of a build, and returns what its answer comes to. Where `stops` says so, that is nothing.
#[must_use]
pub(crate) fn ask(asking: &Asking, stops: &dyn Fn() -> bool) -> Performed {
    author::performed(asking, stops)
}

/// Writes a case of a check as files that run without t2t. The job is that of the check, its request changed to what `repro.write` is told.
#[must_use]
pub(crate) fn repro(job: &Job, pool: &Pool) -> Performed {
    if let Some(lost) = no_scratch(job) {
        return lost;
    }
    let (dispatcher, cancel) = (SharedDispatcher::default(), Cancel::default());
    let calls = alone(pool, &dispatcher, &cancel);
    let folder = match has_own_cases(job).then(|| prepared(job, &calls)).transpose() {
        Ok(prepared) => prepared.map(|inputs| inputs.folder),
        Err(ended) => return *ended,
    };
    let more = More::Repro(ToRepro { prepared: folder.as_deref().map(text) });
    let read = folder.into_iter().collect();
    concluded(&Step { job, name: "main", function: &functions::REPRO, more, read }, &calls)
}

/// Returns the calls of what is no action.
fn alone<'a>(pool: &'a Pool, dispatcher: &'a SharedDispatcher, cancel: &'a Cancel) -> Calls<'a> {
    Calls { pool, dispatcher, cancel, times: RefCell::default() }
}

fn concluded(step: &Step, calls: &Calls) -> Performed {
    match step.run(calls) {
        Ok(finished) => conclude(step.function, &step.folder(), finished),
        Err(error) => Performed::lost(error.to_string()),
    }
}

/// Returns how a child gets ready for the baseline of `job`, once its folder is there: torch compiles the op in it, before the device is free for its measurement.
///
/// The job is that of the baseline, in a folder of its own.
pub(super) fn prewarm_baseline(job: &Job) -> Option<WarmChild> {
    let function = &functions::BASELINE;
    let step = Step { job, name: "main", function, more: More::Nothing {}, read: Vec::new() };
    let folder = step.folder();
    let Request { arguments, environment, reserve, .. } = step.request(&folder, function.queues, None);
    Some(WarmChild {
        key: reserve?,
        function: functions::COMPILE_AHEAD.to_owned(),
        arguments,
        scratch: Some(text(&folder)),
        environment,
        cores: job.spare.as_deref().map(cores::quarter),
        needs: Some(imports::FOR_DEVICES.to_owned()),
    })
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
    at_work::note(&job.scratch, &job.target.to_string());
    if let Some(asking) = &job.asking {
        return author::performed(asking, &|| calls.cancel.is_set());
    }
    match job.target.phase {
        Phase::Check => check::check(job, calls),
        Phase::Calibrate => single(job, calls, &functions::CALIBRATE),
        Phase::Analyze => single(job, calls, &functions::ANALYZE),
        Phase::Compile if job.is_extension => single(job, calls, &functions::COMPILE_INLINE),
        Phase::Compile if job.is_cuda() => single(job, calls, &functions::COMPILE_CUDA),
        Phase::Compile => single(job, calls, &functions::COMPILE),
        Phase::Tune => single(job, calls, &functions::TUNE),
        Phase::Baseline => baseline::baseline(job, calls),
        Phase::Bench => bench(job, calls),
        Phase::Generate | Phase::Select | Phase::Log | Phase::Summary => Performed::lost("not performed by a child"),
    }
}

/// Runs an action that is one child.
fn single(job: &Job, calls: &Calls, function: &'static Function) -> Performed {
    let step = Step { job, name: "main", function, more: More::Nothing {}, read: Vec::new() };
    match step.run(calls) {
        Ok(finished) => conclude(step.function, &step.folder(), finished),
        Err(error) => Performed::lost(error.to_string()),
    }
}

/// Runs a bench: the variant is measured, and one output of a timed call is judged by a child that never saw the kernel.
fn bench(job: &Job, calls: &Calls) -> Performed {
    let measure = Step { job, name: "main", function: &functions::BENCH, more: More::Nothing {}, read: Vec::new() };
    let measured = match measure.run(calls) {
        Ok(finished) => finished,
        Err(error) => return Performed::lost(error.to_string()),
    };
    let mut performed = conclude(measure.function, &measure.folder(), measured);
    if performed.outcome != Some(Outcome::Passed) {
        let reference = job.arguments.op.as_ref().and_then(|op| op.reference.as_ref());
        let file = reference.map(|reference| reference.file.as_str());
        return performed.unless_torch_asked(file, job.arguments.variant.as_ref());
    }
    let bench = performed.documents.get("bench").and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let judge = Step {
        job,
        name: "judge",
        function: &functions::SAMPLE,
        more: More::Sample(ToSample { sample: text(&measure.folder()), bench: bench.unwrap_or_default() }),
        read: vec![measure.folder()],
    };
    let mut judged = match judge.run(calls) {
        Ok(finished) if replied(&finished) => conclude(judge.function, &judge.folder(), finished),
        Ok(finished) => return unjudged(finished),
        Err(error) => return Performed::lost(error.to_string()),
    };
    judged.opened.append(&mut performed.opened);
    judged
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use t2t_protocol::SourcePlace;

    use super::*;

    #[test]
    fn memory_that_torch_or_the_reference_asked_for_is_not_the_kernels() {
        let file: Variant = serde_json::from_value(json!({
            "name": "v1", "file": "kernels/own/v1.py", "module": null, "entry": "own", "call": null, "lanes": [],
            "deterministic": true,
        }))
        .unwrap();
        let module = Variant { module: Some("own".to_owned()), ..file.clone() };
        let end = |class: &str, place: Option<&str>, message: &str, variant: &Variant| {
            let place = place.map(|file| SourcePlace { file: file.to_owned(), line: Some(7), column: None });
            let failure = Failure { place, ..Failure::new(class, message) };
            Performed::rejected(class, &[("failure", json!(failure))])
                .unless_torch_asked(Some("lib/own.py"), Some(variant))
        };
        let full = "OutOfMemoryError: CUDA out of memory";
        let told = "ran out of memory beside the kernel";
        for (place, who) in [
            (
                Some("lib/own.py"),
                format!("the reference {told}, at lib/own.py:7; smaller sizes in `bench: {{sizes: …}}`"),
            ),
            (None, format!("torch {told}, in no line of the workspace; smaller sizes")),
        ] {
            let spent = end("memory", place, full, &file);
            let Some(Outcome::NotJudged { reason }) = spent.outcome else { panic!("{:?}", spent.outcome) };
            assert!(reason.starts_with(&who), "{reason}");
            assert!(spent.documents.is_empty());
        }
        for (class, place, message, variant) in [
            ("memory", Some("kernels/own/v1.py"), full, &file),
            ("memory", None, full, &module),
            ("memory", None, "the process was ended for its memory", &file),
            ("exception", Some("lib/own.py"), full, &file),
        ] {
            let ended = end(class, place, message, variant);
            assert_eq!(ended.outcome, Some(Outcome::Rejected { class: class.to_owned() }), "{place:?}");
            assert!(ended.documents.contains_key("failure"));
        }
    }
}
