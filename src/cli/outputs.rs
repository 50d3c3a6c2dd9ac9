//! A build's output for people and programs: lines or bars, and the requested files and annotations.
//!
//! Files are made before anything runs, so that one that cannot be written is known then. It does not know how the build goes.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use console::Term;
use t2t_host::cores;
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_model::foreign;
use t2t_model::record::{Outcome, Record};
use t2t_plan::graph::{Index, Wanted};
use t2t_plan::schedule::Settled;
use t2t_protocol::{Evidence, Failure, PrintedOutput, read};
use t2t_store::fs;
use t2t_store::store::cas::Cas;

use super::error::CliError;
use super::{BuildArguments, Common, Service, context, streams};
use crate::engine::{Report, evidence};
use crate::reporter::{
    Annotations, Case, Events, Moment, Reporter, Screen, Trace, Verbosity, Verdict, junit, reporter,
};
use crate::session::{self, Session};

/// The readers of a build's events, and the files that they go to.
pub(crate) struct Outputs {
    /// None once the screen was given back.
    screen: Option<Box<dyn Reporter>>,
    trace: Option<(Trace, PathBuf)>,
    events: Option<(Events<File>, PathBuf)>,
    junit: Option<PathBuf>,
    annotations: Option<Annotations>,
}

impl Outputs {
    /// Returns the outputs that `arguments` ask for, their files made.
    pub(crate) fn open(common: &Common, arguments: &BuildArguments) -> Result<Self, CliError> {
        are_apart(arguments)?;
        let environment = |name: &str| env::var_os(name);
        let screen = Screen::of(&Term::stderr(), &environment);
        let verbosity = if common.quiet { Verbosity::Quiet } else { Verbosity::Normal };
        Ok(Self {
            screen: Some(reporter(verbosity, screen)),
            trace: arguments.trace.as_deref().map(open_trace).transpose()?,
            junit: arguments.junit.as_deref().map(open_junit).transpose()?,
            events: arguments.events.as_deref().map(|path| open_events(path, arguments)).transpose()?,
            annotations: is_asked_for(arguments.annotations).then(|| Annotations::new(&folder())),
        })
    }

    /// Writes the trace, if one was requested.
    pub(crate) fn write_trace(&mut self) -> Result<(), CliError> {
        let Some((trace, path)) = self.trace.take() else { return Ok(()) };
        let bytes = foreign::json(&trace.finish(cores::monotonic()).to_string());
        written(&path, bytes.as_bytes(), "the trace")
    }

    /// Writes the state of the selected actions as test cases, if that was requested.
    pub(crate) fn write_junit(&mut self, session: &Session, wanted: &Wanted, report: &Report) -> Result<(), CliError> {
        let Some(path) = self.junit.take() else { return Ok(()) };
        let device = session.inventory.device.class.to_string();
        let text = junit(Some(&device), &cases(session, wanted, report));
        written(&path, text.as_bytes(), "the JUnit file")
    }

    /// Gives the screen back: bars are gone.
    pub(crate) fn close_screen(&mut self) {
        self.screen = None;
    }

    /// Prints the annotations of rejections, once.
    pub(crate) fn print_annotations(&mut self) {
        if let Some(annotations) = self.annotations.take() {
            streams::print(&annotations.text());
        }
    }

    /// Writes what is left to write of a build that `error` ended.
    pub(crate) fn fail(&mut self, error: &CliError) {
        self.close_screen();
        let text = error.text();
        if let Some((events, _)) = &mut self.events {
            events.fail(error.code(), &text, now());
        }
        if let Some(path) = self.junit.take() {
            let text = junit(None, &[Case::of_stopped(&text)]);
            if let Err(error) = written(&path, text.as_bytes(), "the JUnit file") {
                error.print();
            }
        }
        if let (CliError::Spec(problems), Some(annotations)) = (error, &mut self.annotations) {
            for problem in problems {
                annotations.fault(problem);
            }
        }
        self.print_annotations();
    }

    /// Returns whether all events could be written.
    pub(crate) fn close(&mut self) -> Result<(), CliError> {
        let Some((mut events, path)) = self.events.take() else { return Ok(()) };
        match events.failure() {
            None => Ok(()),
            Some(error) => Err(CliError::machine(format!("cannot write the events to `{}`: {error}", path.display()))),
        }
    }
}

impl Reporter for Outputs {
    fn report(&mut self, event: &Event) {
        if let Some((trace, _)) = &mut self.trace {
            trace.take(event, cores::monotonic());
        }
        if let Some((events, _)) = &mut self.events {
            events.take(event, now());
        }
        if let Some(annotations) = &mut self.annotations {
            annotations.take(event);
        }
        if let Some(screen) = &mut self.screen {
            screen.report(event);
        }
    }
}

fn open_trace(path: &Path) -> Result<(Trace, PathBuf), CliError> {
    let begin = cores::monotonic();
    let empty = Trace::new(begin).finish(begin).to_string();
    Ok((Trace::new(begin), made(path, empty.as_bytes(), "the trace")?))
}

/// Fails where two of the requested files are one, in which the last one written would be left.
fn are_apart(arguments: &BuildArguments) -> Result<(), CliError> {
    let asked = [("--trace", &arguments.trace), ("--events", &arguments.events), ("--junit", &arguments.junit)];
    let asked: Vec<(&str, PathBuf)> =
        asked.into_iter().filter_map(|(flag, path)| Some((flag, context::absolute(path.as_deref()?)))).collect();
    for (place, (flag, path)) in asked.iter().enumerate() {
        if let Some((other, _)) = asked[..place].iter().find(|(_, earlier)| earlier == path) {
            return Err(CliError::misuse(
                format!("`{other}` and `{flag}` name one file, `{}`", path.display()),
                "give each a file of its own",
            ));
        }
    }
    Ok(())
}

fn open_junit(path: &Path) -> Result<PathBuf, CliError> {
    made(path, junit(None, &[]).as_bytes(), "the JUnit file")
}

fn open_events(path: &Path, arguments: &BuildArguments) -> Result<(Events<File>, PathBuf), CliError> {
    let path = context::absolute(path);
    may_be_replaced(&path, "the events", OF_BUILD)?;
    let file = fs::open_to_write(&path).map_err(|error| unfit(&path, "the events", &error.to_string()))?;
    Ok((Events::start(file, &arguments.targets.written(), now()), path))
}

/// Makes a file that is written whole at the end.
fn made(path: &Path, empty: &[u8], what: &str) -> Result<PathBuf, CliError> {
    let path = context::absolute(path);
    may_be_written(&path, what, OF_BUILD)?;
    fs::write(&path, empty).map_err(|error| unfit(&path, what, &error.to_string()))?;
    Ok(path)
}

/// How the files of a build begin, which are XML and JSON.
const OF_BUILD: &[&str] = &["<", "{", "["];

/// How a page or a picture begins.
pub(super) const MARKUP: &[&str] = &["<"];

/// Fails where a file that is written whole would take the place of a folder, a device or a pipe, or of what [`may_be_replaced`] keeps.
pub(super) fn may_be_written(path: &Path, what: &str, begins: &[&str]) -> Result<(), CliError> {
    if path.exists() && !path.is_file() {
        return Err(unfit(path, what, "it is no file"));
    }
    may_be_replaced(path, what, begins)
}

/// Fails where a file has something in it that begins as none of what is written there: it is an `ops.yaml` or a kernel whose name was written in the wrong place.
pub(super) fn may_be_replaced(path: &Path, what: &str, begins: &[&str]) -> Result<(), CliError> {
    // A pipe that is opened to be read would wait for a writer.
    if !path.is_file() {
        return Ok(());
    }
    let longest = begins.iter().map(|begin| begin.len()).max().unwrap_or_default();
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(longest as u64).read_to_end(&mut first));
    if read.is_ok() && !first.is_empty() && !begins.iter().any(|begin| first.starts_with(begin.as_bytes())) {
        return Err(CliError::misuse(
            format!("cannot write {what} to `{}`: something else is in it", path.display()),
            "name another file, or remove that one first",
        ));
    }
    Ok(())
}

fn unfit(path: &Path, what: &str, why: &str) -> CliError {
    let message = format!("cannot write {what} to `{}`: {why}", path.display());
    CliError::misuse(message, "name a file in a folder that can be written")
}

fn written(path: &Path, bytes: &[u8], what: &str) -> Result<(), CliError> {
    let written = fs::write(path, bytes);
    Ok(written.with_context(|| format!("cannot write {what} to `{}`", path.display()))?)
}

fn now() -> Moment {
    Moment { calendar: fs::now(), monotonic: cores::monotonic() }
}

pub(super) fn is_asked_for(service: Service) -> bool {
    match service {
        Service::Auto => env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
        Service::Github => true,
        Service::None => false,
    }
}

/// Returns the workspace's folder in the checkout of a GitHub job, whose paths annotations have; empty where it is no other.
fn folder() -> String {
    let inside = || {
        let root = session::workspace(&env::current_dir().ok()?)?.canonicalize().ok()?;
        let checkout = PathBuf::from(env::var_os("GITHUB_WORKSPACE")?).canonicalize().ok()?;
        Some(root.strip_prefix(checkout).ok()?.to_string_lossy().into_owned())
    };
    inside().unwrap_or_default()
}

/// Returns the test cases of the wanted checks and benches, and of other actions that failed.
fn cases(session: &Session, wanted: &Wanted, report: &Report) -> Vec<Case> {
    let cas = session.cas();
    let missing: BTreeMap<Index, &[String]> =
        report.missing.iter().map(|(index, why)| (*index, why.as_slice())).collect();
    let indices = session.graph.indices().filter(|index| wanted.wanted[index.number()]);
    let indices = indices.filter(|index| {
        let is_needed = report.settled[index.number()] != Some(Settled::NotNeeded);
        is_needed && !report.is_replaced(index.number())
    });
    let case = |index: Index| {
        let target = session.graph.action(index).target();
        let settled = report.settled[index.number()].as_ref();
        let verdict = match settled {
            Some(Settled::Fresh(record) | Settled::Restored(record) | Settled::Ran(record)) => {
                return case_of(&cas, target, record);
            }
            Some(Settled::Skipped(on)) => Verdict::Skipped { reason: format!("after {on}") },
            Some(Settled::Withheld(reason)) => Verdict::Skipped { reason: reason.clone() },
            Some(Settled::Lost(_)) | None if report.interrupted => {
                Verdict::Skipped { reason: "the build was interrupted".to_owned() }
            }
            Some(Settled::Lost(reason)) => Verdict::Error { kind: "lost", message: reason.clone() },
            Some(Settled::Planned | Settled::Missing) => Verdict::Error {
                kind: "missing",
                message: missing.get(&index).map(|why| why.join("; ")).unwrap_or_default(),
            },
            Some(Settled::NotNeeded) | None => Verdict::Skipped { reason: "the build stopped before it".to_owned() },
        };
        Case::of(target, verdict)
    };
    let is_told = |case: &(Phase, Case)| {
        let is_bad = match case.1.verdict {
            // Pages are written anew where their results are: the gate does not ask for them.
            Verdict::Error { kind: "missing", .. } => !matches!(case.0, Phase::Log | Phase::Summary),
            Verdict::Failure { .. } | Verdict::Error { .. } => true,
            Verdict::Passed | Verdict::Skipped { .. } => false,
        };
        matches!(case.0, Phase::Check | Phase::Bench) || is_bad
    };
    let all = indices.map(|index| (session.graph.action(index).target().phase, case(index)));
    all.filter(is_told).map(|(_, case)| case).collect()
}

fn case_of(cas: &Cas, target: &Target, record: &Record) -> Case {
    let bytes = |digest: Digest| cas.get(digest);
    let named = |name: &str| bytes(record.outputs.get(name)?.digest).ok();
    let verdict = match &record.outcome {
        Outcome::Rejected { class } => {
            // What is not in the store any more says nothing.
            let failure = evidence::failure(record, bytes).unwrap_or_default();
            let message = evidence::fault(class, &failure, target).message;
            Verdict::Failure { class: class.clone(), message, text: evidence::text(&failure, target) }
        }
        Outcome::NotJudged { reason } => Verdict::Skipped { reason: format!("not judged: {reason}") },
        Outcome::Passed | Outcome::Lost { .. } => Verdict::Passed,
    };
    let evidence = named("evidence").and_then(|bytes| read::document::<Evidence>(&bytes).ok());
    let failure = named("failure").and_then(|bytes| read::document::<Failure>(&bytes).ok());
    let printed = [evidence.map(|evidence| evidence.output), failure.and_then(|failure| failure.output)];
    let stream = |of: fn(&PrintedOutput) -> &String| {
        printed.iter().flatten().map(of).find(|text| !text.is_empty()).cloned().unwrap_or_default()
    };
    let seconds = std::time::Duration::from_millis(record.wall_ms).as_secs_f64();
    Case {
        seconds,
        stdout: stream(|output| &output.stdout),
        stderr: stream(|output| &output.stderr),
        ..Case::of(target, verdict)
    }
}
