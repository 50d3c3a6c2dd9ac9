//! What ends a command early: the message, a hint, and the exit code.

use std::io::ErrorKind;

use t2t_host::interrupt::INTERRUPTED;
use t2t_host::worker::WorkerError;
use t2t_model::problem::{self, Problem};
use t2t_plan::graph::pick::Unknown;

use super::{limit_hint, streams};
use crate::engine::EngineError;
use crate::session::{NoSession, advice};

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum CliError {
    /// Bad use: exit 2.
    Use {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A bad ops.yaml: exit 2.
    Spec(Vec<Problem>),
    /// Results are missing that were required: exit 1.
    Missing {
        /// How many.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The machine failed: exit 3.
    Machine {
        /// What failed.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The user asked to stop: exit [`INTERRUPTED`].
    Interrupted,
}

impl CliError {
    /// Returns the exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Missing { .. } => 1,
            Self::Use { .. } | Self::Spec(_) => 2,
            Self::Machine { .. } => 3,
            Self::Interrupted => INTERRUPTED,
        }
    }

    /// Prints the message to standard error. An interruption was reported when it happened.
    pub(crate) fn print(&self) {
        if !matches!(self, Self::Interrupted) {
            streams::say(&self.text());
        }
    }

    /// Returns the message with its hint, without a final newline.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Use { message, hint } | Self::Machine { message, hint } => {
                let limit = matches!(self, Self::Machine { .. }).then(|| limit_hint::hint(message)).flatten();
                let hint = limit.as_ref().or(hint.as_ref());
                let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                format!("error: {message}{hint}")
            }
            Self::Missing { message, hint } => format!("error: {message}\nhint: {hint}"),
            Self::Spec(problems) => problem::render(problems).trim_end().to_owned(),
            Self::Interrupted => "interrupted".to_owned(),
        }
    }

    /// Returns bad use with a hint.
    pub(crate) fn misuse(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Use { message: message.into(), hint: Some(hint.into()) }
    }

    /// Returns that ops.yaml, which is left as it is for the reason `why`, must be extended by hand, with the text to write there.
    pub(crate) fn by_hand(why: &str, entries: &str) -> Self {
        Self::misuse(format!("ops.yaml is left as it is: {why}"), format!("write under `ops`:\n{}", entries.trim_end()))
    }

    /// Turns a template's fault into an error.
    pub(crate) fn of_fault(fault: &EngineError) -> Self {
        let hint = match fault {
            EngineError::Template(error) => error.hint.clone(),
            _ => None,
        };
        Self::Use { message: fault.to_string(), hint }
    }

    /// Returns a failure of the machine.
    pub(crate) fn machine(message: impl Into<String>) -> Self {
        Self::Machine { message: message.into(), hint: None }
    }
}

impl From<NoSession> for CliError {
    fn from(error: NoSession) -> Self {
        let message = error.to_string();
        match error {
            NoSession::Spec(problems) => Self::Spec(problems),
            NoSession::Use { message, hint } => Self::Use { message, hint: Some(hint) },
            NoSession::Machine { message, hint } => Self::Machine { message, hint },
            NoSession::Worker(worker) if names_nothing(&worker) => {
                Self::Use { message, hint: worker.hint().map(str::to_owned) }
            }
            NoSession::Worker(worker) => Self::Machine { message, hint: worker.hint().map(str::to_owned) },
            NoSession::Interrupted => Self::Interrupted,
            NoSession::Graph(_) => Self::Machine { message, hint: Some("this is a defect of t2t".to_owned()) },
        }
    }
}

/// Whether the interpreter that was named is no program.
fn names_nothing(error: &WorkerError) -> bool {
    let no_program = [ErrorKind::NotFound, ErrorKind::PermissionDenied];
    matches!(error, WorkerError::Spawn { source, .. } if no_program.contains(&source.kind()))
}

impl From<Unknown> for CliError {
    fn from(unknown: Unknown) -> Self {
        Self::misuse(unknown.message, unknown.hint)
    }
}

/// Prints what the parser of the command line says instead of running a command: help, a version, or what is wrong with it.
pub(super) fn told(said: &clap::Error) -> Result<u8, CliError> {
    match said.print() {
        Err(error) if !said.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::machine(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(u8::try_from(said.exit_code()).unwrap_or(2)),
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::Template(error) => Self::Use { message, hint: error.hint },
            EngineError::NoTemplate { .. } => {
                Self::misuse(message, "name another template with `log: {template: …}` in ops.yaml")
            }
            EngineError::Changed(_) => Self::Machine { message, hint: Some("run the build again".to_owned()) },
            EngineError::Store(source) | EngineError::Log { source, .. } => {
                Self::Machine { message, hint: advice(&source).map(str::to_owned) }
            }
            EngineError::Vanishing(_) => Self::machine(message),
        }
    }
}

/// An error of the system, with what t2t was doing: `cannot remove `logs/add_log.md`: Permission denied`.
impl From<anyhow::Error> for CliError {
    fn from(error: anyhow::Error) -> Self {
        let hint = error.chain().find_map(|cause| cause.downcast_ref()).and_then(advice);
        Self::Machine { message: format!("{error:#}"), hint: hint.map(str::to_owned) }
    }
}
