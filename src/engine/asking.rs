//! What an author is asked, as a value, and what is kept of an attempt at a kernel.
//!
//! It does not know where that comes from, nor how anybody is asked.

use t2t_host::author::Question;
use t2t_model::action::Phase;
use t2t_protocol::Failure;
use t2t_report::render::attempts::{Attempt, Cause};

/// The artifact of a generate action that says how it made the kernel, and after what.
pub(crate) const ATTEMPT: &str = "attempt";

/// What an author is asked for one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    /// The question.
    pub(crate) question: Question,
    /// What is kept of the attempt, but for what the answer says.
    pub(crate) attempt: Attempt,
    /// The kernel of the attempt before.
    pub(crate) before: Option<String>,
}

/// Returns why an attempt failed, as the next one has it.
pub(super) fn cause(phase: Phase, failure: Failure) -> Cause {
    let Failure { class, message, case, given, .. } = failure;
    Cause { phase: phase.name().to_owned(), class, message, case, given }
}
