//! A baseline: torch, and the functions that are timed beside it, in one child. Where that one ends without figures, torch is measured alone in another.
//!
//! It does not know what is timed, nor how.

use t2t_model::record::Outcome;
use t2t_plan::functions;
use t2t_protocol::{More, Part};

use super::step::Step;
use super::{Calls, Performed, concluded, single};
use crate::engine::job::Job;

/// How long a reason is, in characters: it stands in a log.
const LONGEST: usize = 300;

/// Measures torch and what it is measured beside. A function that ends its process costs its own figures, and no other's.
pub(super) fn baseline(job: &Job, calls: &Calls) -> Performed {
    let performed = single(job, calls, &functions::BASELINE);
    let Part::Baseline(asked) = &job.arguments.part else { return performed };
    if performed.outcome == Some(Outcome::Passed) || asked.functions.is_empty() || calls.cancel.is_set() {
        return performed;
    }
    let why = why(&performed);
    let mut alone = job.clone();
    if let Part::Baseline(asked) = &mut alone.arguments.part {
        asked.functions.iter_mut().for_each(|function| function.ended = Some(why.clone()));
    }
    let function = &functions::BASELINE;
    let step = Step { job: &alone, name: "alone", function, more: More::Nothing {}, read: Vec::new() };
    let again = concluded(&step, calls);
    // Where torch fails alone, too, no function is to blame.
    if again.outcome == Some(Outcome::Passed) {
        Performed { opened: again.opened.union(&performed.opened).cloned().collect(), ..again }
    } else {
        performed
    }
}

/// Returns how the process ended that called the functions, in a few words.
fn why(performed: &Performed) -> String {
    let told = match &performed.outcome {
        Some(Outcome::Lost { reason } | Outcome::NotJudged { reason }) => reason.lines().next().unwrap_or_default(),
        Some(Outcome::Rejected { class }) => class,
        _ => "it said nothing",
    };
    let told: String = told.chars().take(LONGEST).collect();
    format!("the process that measured the functions ended without figures: {told}")
}
