//! A fault as the readers of ops.yaml note it: a place, a message, a remedy.
//!
//! It becomes a [`Problem`](t2t_model::problem::Problem) once the file's name and lines are at hand; until then nothing is copied from the file.

use t2t_model::problem::{Listing, Position, Problem};

/// How many problems of one file are shown.
const PROBLEM_LIMIT: usize = 100;

/// Something wrong at a place of the file being read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fault {
    pub(crate) place: Position,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(place: Position, message: impl Into<String>) -> Fault {
        Fault { place, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }
}

/// Turns faults into problems, ordered by place, each one once. A closing problem says how many are left out.
pub(super) fn problems(file: &str, text: &str, mut faults: Vec<Fault>) -> Vec<Problem> {
    faults.sort();
    faults.dedup();
    let listing = Listing::new(file, text);
    let shown = faults
        .iter()
        .take(PROBLEM_LIMIT)
        .map(|fault| Problem { hint: fault.hint.clone(), ..listing.problem(fault.place, fault.message.clone()) });
    let left_out = faults.get(PROBLEM_LIMIT).map(|next| {
        let count = faults.len() - PROBLEM_LIMIT;
        listing.problem(next.place, format!("{count} more problems from here on"))
    });
    shown.chain(left_out).collect()
}
