//! What the machine kept a session from, with what a person can do about it.
//!
//! It knows nothing of bad use.

use std::fmt::Display;
use std::io::{self, ErrorKind};

use super::NoSession;

/// Returns that the machine failed at `what`.
pub(super) fn machine(what: &str, error: &dyn Display) -> NoSession {
    NoSession::Machine { message: format!("{what}: {error}"), hint: None }
}

/// Returns that something cannot be written, with what helps.
pub(super) fn unwritten(what: &str, error: &io::Error) -> NoSession {
    NoSession::Machine { message: format!("{what}: {error}"), hint: advice(error).map(str::to_owned) }
}

/// Returns what helps against this error where it kept t2t from writing; None where that is not known.
pub(crate) fn advice(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "make room and build again: what was finished is kept; `t2t cache gc` removes what nothing needs"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "let the user who builds write there; what was finished is kept"
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::Unsupported => {
            "move away what lies there: t2t has another use for the place"
        }
        _ => return None,
    })
}
