//! `t2t improve`: an author is asked for a better kernel, round by round. What may be faster is measured by the full protocol; the best keeps its place.
//!
//! A candidate is judged as any kernel is, in a copy of the workspace. It does not know how.

use std::time::{Duration, Instant};

use serde_json::Value;
use t2t_host::cores;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::record::{KERNEL, Outcome};
use t2t_protocol::{Analysis, Bench, Calibration, Failure, Resources, Screen, ScreenReason, read};
use t2t_report::figures;
use t2t_report::rank::Found;
use t2t_report::render::attempts::{Attempt, Cause};
use t2t_report::render::rounds::{End, Measured, Round, Screened, share};
use t2t_store::fs;

mod subject;
mod kept;
mod asking;

use self::asking::{Last, Told};
use self::kept::{Kept, Placed};
use self::subject::Subject;
use super::arguments::ImproveArguments;
use super::error::CliError;
use super::trial::{Beside, Built, JUDGED, MEASURED, Refused, Trial};
use super::{Common, context, streams};
use crate::engine::perform::{self, Performed};
use crate::engine::{ATTEMPT, Spent};
use crate::session::{DeviceChoice, Session};

/// Runs the command.
pub(crate) fn improve(common: &Common, arguments: &ImproveArguments) -> Result<u8, CliError> {
    let (_lock, interrupt, session) = context::open_locked(common, "candidates are timed on a device that is here")?;
    is_measurable(common, &session)?;
    let subject = Subject::of(&session, &arguments.target, arguments.generator.as_deref())?;
    cores::keep_off_devices(&cores::shares(session.devices.len()));
    let kept = Kept::open(&subject, arguments.overwrite)?;
    introduce(&subject, &kept, arguments);
    let root = session.cache.join("improve").join(&subject.op.name).join("trial");
    let trial = Trial::make(subject.kernel(), root, common, &interrupt)?;
    let mut climb = Climb::begin(&subject, &trial, kept, &interrupt)?;
    let ended = climb.rounds(arguments);
    if let Err(error) = trial.remove() {
        streams::say(&format!("warning: cannot remove the copy of the workspace: {error}"));
    }
    climb.tell();
    ended.map(|()| 0)
}

/// Fails where no kernel can be timed that says anything, unless the interpreter was asked for by name.
fn is_measurable(common: &Common, session: &Session) -> Result<(), CliError> {
    let is_interpreter = session.inventory.device.class == DeviceClass::Interpreter;
    if is_interpreter && common.device != DeviceChoice::Cpu {
        let message = "this machine has no CUDA device, and times of Triton's interpreter say nothing about a GPU";
        let hint =
            "with `--device cpu` rounds are gone through all the same, to try an author, and no kernel is replaced";
        return Err(CliError::misuse(message, hint));
    }
    Ok(())
}

fn introduce(subject: &Subject<'_>, kept: &Kept<'_>, arguments: &ImproveArguments) {
    let class = &subject.session.inventory.device.class;
    let (place, generator, rounds) = (subject.place(), &subject.generator, arguments.rounds);
    streams::say(&format!("improving {place} on {class}: {generator} is asked, {rounds} rounds at most"));
    if *class == DeviceClass::Interpreter {
        streams::say(
            "note: these are timings of Triton's interpreter: they say nothing about a GPU, and no kernel is replaced",
        );
    } else if !kept.may_place() {
        streams::say(&format!(
            "note: {} is a person's: a better kernel is kept in cache/improve; `--overwrite` replaces the file",
            subject.file
        ));
    }
}

/// The kernel to beat.
struct Incumbent {
    source: Vec<u8>,
    bench: Bench,
    resources: Option<Resources>,
    beside: Beside,
}

/// The rounds of one command.
struct Climb<'a> {
    subject: &'a Subject<'a>,
    trial: &'a Trial<'a>,
    kept: Kept<'a>,
    interrupt: &'a Interrupt,
    incumbent: Incumbent,
    analysis: Option<Analysis>,
    calibration: Found<Calibration>,
    last: Last,
    spent: Spent,
    /// How many rounds there were before.
    before: usize,
}

/// What came of a candidate, and of what it left.
#[derive(Default)]
struct Tried {
    end: End,
    refused: Option<Refused>,
    screened: Option<Screened>,
    measured: Option<Measured>,
    resources: Option<Resources>,
    /// What takes the place of the kernel to beat.
    better: Option<Incumbent>,
}

impl<'a> Climb<'a> {
    /// Brings the kernel to beat up to date. Fails where that is not right.
    fn begin(
        subject: &'a Subject<'a>,
        trial: &'a Trial<'a>,
        kept: Kept<'a>,
        interrupt: &'a Interrupt,
    ) -> Result<Self, CliError> {
        let analyze = Target::of_op(&subject.op.name, Phase::Analyze).to_string();
        let on_device = subject.session.inventory.device.class != DeviceClass::Interpreter;
        let calibrate = Target::calibrate().to_string();
        let others = [Some(analyze.as_str()), on_device.then_some(calibrate.as_str())];
        let built = trial.build(&subject.source, &MEASURED, &others.into_iter().flatten().collect::<Vec<_>>())?;
        if let Some(Refused { phase, failure }) = built.refused(&MEASURED)? {
            let Failure { class, message, .. } = failure;
            let place = subject.place();
            return Err(CliError::Missing {
                message: format!("{place} is not right, so there is nothing to improve: {message} ({class}, {phase})"),
                hint: format!("`t2t build {place}` says more"),
            });
        }
        let incumbent = Incumbent::of(subject.source.clone(), &built)?;
        let (analysis, calibration) = asking::facts(subject, &built);
        let (last, spent, before) = (Last::default(), Spent::default(), kept.rounds().len());
        Ok(Self { subject, trial, kept, interrupt, incumbent, analysis, calibration, last, spent, before })
    }

    /// Goes through the rounds that may be made.
    fn rounds(&mut self, arguments: &ImproveArguments) -> Result<(), CliError> {
        let end = arguments.minutes.map(|minutes| Instant::now() + minutes);
        for _ in 0..arguments.rounds {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                streams::say("no further round begins: the time of `--minutes` is over");
                break;
            }
            if let Some(reason) = self.spent.reached(&self.subject.session.spec.authors.budget, Instant::now()) {
                streams::say(&format!("no further round begins: {reason}"));
                break;
            }
            self.round(left)?;
        }
        Ok(())
    }

    /// Asks once, and judges the answer. `left` is how long the author may take at most.
    fn round(&mut self, left: Option<Duration>) -> Result<(), CliError> {
        let (start, began) = (Instant::now(), figures::moment(fs::now()));
        let number = u32::try_from(self.kept.rounds().len() + 1).unwrap_or(u32::MAX);
        streams::say(&format!("round {number}: asking {}", self.subject.generator));
        self.spent.begin(start);
        let performed = self.ask(number, left)?;
        let document = |name: &str| performed.documents.get(name);
        let attempt: Attempt =
            document(ATTEMPT).and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
        self.spent.add_tokens(attempt.usage.as_ref().and_then(|usage| usage.tokens).unwrap_or(0));
        let kernel = document(KERNEL).cloned();
        let tried = match &kernel {
            Some(kernel) => self.tried(kernel)?,
            None => Tried { refused: Some(refused_answer(&performed)), ..Tried::default() },
        };
        let Tried { end, refused, screened, measured, resources, better } = tried;
        let cause = refused.as_ref().map(|Refused { phase, failure }| Cause {
            phase: (*phase).to_owned(),
            class: failure.class.clone(),
            message: failure.message.clone(),
            case: failure.case.clone(),
            given: failure.given.clone(),
        });
        let mut round = Round {
            round: number,
            began,
            generator: self.subject.generator.clone(),
            device: self.subject.session.inventory.device.class.to_string(),
            before: Digest::of(&self.incumbent.source).to_string(),
            kernel: kernel.as_deref().map(|kernel| Digest::of(kernel).to_string()),
            change: attempt.change,
            end,
            cause,
            screened,
            measured,
            usage: attempt.usage,
            ..Round::default()
        };
        let source = kernel.map(|kernel| String::from_utf8_lossy(&kernel).into_owned());
        self.last = Last { source: source.filter(|_| better.is_none() && end != End::Same), refused, resources };
        if let Some(better) = better {
            round.placed = self.place(&better.source)?;
            self.incumbent = better;
        }
        round.seconds = start.elapsed().as_secs_f64();
        let told = line(&round) + "\n";
        self.kept.add(round)?;
        streams::print(&told);
        Ok(())
    }

    fn ask(&self, number: u32, left: Option<Duration>) -> Result<Performed, CliError> {
        let source = String::from_utf8_lossy(&self.incumbent.source);
        let told = Told {
            source: &source,
            bench: &self.incumbent.bench,
            resources: self.incumbent.resources.as_ref(),
            analysis: self.analysis.as_ref(),
            calibration: &self.calibration,
        };
        let asking = asking::asking(self.subject, &told, (number, self.kept.rounds()), &self.last, left)?;
        let performed = perform::ask(&asking, &|| self.interrupt.is_set());
        match &performed.outcome {
            _ if self.interrupt.is_set() => Err(CliError::Interrupted),
            Some(Outcome::Lost { reason }) => Err(CliError::machine(reason.clone())),
            _ => Ok(performed),
        }
    }

    /// Judges a candidate: it is checked as any kernel is, screened beside the kernel to beat, and, where it may win, measured.
    fn tried(&self, kernel: &[u8]) -> Result<Tried, CliError> {
        if self.is_known(kernel) {
            return Ok(Tried { end: End::Same, ..Tried::default() });
        }
        let built = self.trial.build(kernel, &JUDGED, &[])?;
        let resources: Option<Resources> = built.document(Phase::Compile, "resources");
        let of = |refused| Tried { refused: Some(refused), resources: resources.clone(), ..Tried::default() };
        if let Some(refused) = built.refused(&JUDGED)? {
            return Ok(of(refused));
        }
        let screen: Screen = match self.trial.screen(&built, &self.incumbent.beside)? {
            Ok(screen) => screen,
            Err(refused) => return Ok(of(refused)),
        };
        if self.interrupt.is_set() {
            return Err(CliError::Interrupted);
        }
        let tried = Tried { screened: Some(Screened::from(&screen)), resources: resources.clone(), ..Tried::default() };
        let is_interpreter = self.subject.session.inventory.device.class == DeviceClass::Interpreter;
        // There is no bench on the interpreter that compares anything.
        let is_over = !screen.may_win || (is_interpreter && screen.why != ScreenReason::Faster);
        if is_over {
            return Ok(Tried { end: End::of(screen.why), ..tried });
        }
        let built = self.trial.build(kernel, &MEASURED, &[])?;
        if let Some(refused) = built.refused(&MEASURED)? {
            return Ok(of(refused));
        }
        let better = Incumbent::of(kernel.to_vec(), &built)?;
        let measured = if is_interpreter { None } else { Measured::of(&self.incumbent.bench, &better.bench) };
        if is_interpreter || measured.as_ref().is_some_and(Measured::is_faster) {
            return Ok(Tried { end: End::Better, measured, better: Some(better), ..tried });
        }
        Ok(Tried { end: End::NotBetter, measured, ..tried })
    }

    /// Returns whether a kernel is the one to beat, but for comments, or lost to it, or to one before it, in an earlier round.
    fn is_known(&self, kernel: &[u8]) -> bool {
        let meaning = |bytes: &[u8]| t2t_python::read(bytes).meaning;
        let (digest, beaten) = (Some(Digest::of(kernel).to_string()), Digest::of(&self.incumbent.source).to_string());
        let class = self.subject.session.inventory.device.class.to_string();
        let own = |(place, round): &(usize, &Round)| {
            *place >= self.before || (round.before == beaten && round.device == class && round.end != End::Better)
        };
        let mut rounds = self.kept.rounds().iter().enumerate().filter(own);
        meaning(kernel) == meaning(&self.incumbent.source) || rounds.any(|(_, round)| round.kernel == digest)
    }

    /// Has a better kernel take the place of the variant's. Returns whether it did.
    fn place(&mut self, source: &[u8]) -> Result<bool, CliError> {
        let is_interpreter = self.subject.session.inventory.device.class == DeviceClass::Interpreter;
        let not = is_interpreter.then_some("times of the interpreter say nothing about a GPU");
        match self.kept.place(source, not)? {
            Placed::There(replaced) => {
                let kept = replaced.map(|kept| format!("; what a person wrote there is kept in {kept}"));
                streams::say(&format!("{} is the better kernel now{}", self.subject.file, kept.unwrap_or_default()));
                Ok(true)
            }
            Placed::Elsewhere { place, why } => {
                streams::say(&format!("the better kernel is kept in {place}: {why}"));
                Ok(false)
            }
        }
    }

    /// Says what the rounds of this command came to, and what is to be done next.
    fn tell(&self) {
        let rounds = &self.kept.rounds()[self.before..];
        let better = rounds.iter().filter(|round| round.end == End::Better).count();
        let op = &self.subject.op.name;
        streams::say(&format!("{better} of {} rounds gave a better kernel", rounds.len()));
        if !rounds.is_empty() {
            streams::say(&format!("note: `t2t build {op}` brings the log up to date: it has all rounds"));
        }
    }
}

impl Incumbent {
    /// Returns a kernel that was built as one to beat.
    fn of(source: Vec<u8>, built: &Built) -> Result<Self, CliError> {
        let bench = built.document(Phase::Bench, "bench");
        let bench: Bench = bench.ok_or_else(|| CliError::machine("the document `bench` cannot be read"))?;
        let tune: Option<Value> = built.document(Phase::Tune, "tune");
        let beside = Beside { source: source.clone(), tune: tune.unwrap_or_default(), archive: built.archive() };
        Ok(Self { source, bench, resources: built.document(Phase::Compile, "resources"), beside })
    }
}

/// Returns why an answer is no kernel.
fn refused_answer(performed: &Performed) -> Refused {
    let failure = performed.documents.get("failure").and_then(|bytes| read::document(bytes).ok());
    Refused { phase: Phase::Generate.name(), failure: failure.unwrap_or_else(|| Failure::new("no-kernel", "")) }
}

/// Returns a round in one line.
fn line(round: &Round) -> String {
    let screened = round.screened.as_ref().map(|screened| {
        let ratio = share(screened.ratio, screened.interval);
        format!("  {} pairs: {ratio} of the time", screened.pairs)
    });
    let measured = round.measured.as_ref().map(|measured| {
        let ratio = share(measured.ratio, measured.interval);
        format!("  bench: {ratio}, {:.4} ms after {:.4} ms", measured.ms, measured.before_ms)
    });
    let usage = round.usage.as_ref().and_then(|usage| usage.tokens).map(|tokens| format!("  {tokens} tokens"));
    let time = figures::time(Duration::from_secs_f64(round.seconds));
    let more: String = [screened, measured, usage].into_iter().flatten().collect();
    format!("round {}  {}  {}{more}  {time}", round.round, round.generator, round.line())
}
