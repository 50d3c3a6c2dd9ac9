//! Attempts: which of the attempts at a generated kernel stands, and which came to nothing because a later one was made.
//!
//! It does not know what an attempt is about, nor how it is made.

use t2t_model::action::{Phase, Target};

use crate::graph::{Graph, Index};
use crate::schedule::Settled;

/// Answers what became of an action, if it settled.
pub type Ends<'a> = dyn Fn(Index) -> Option<&'a Settled> + 'a;

/// Returns the attempt at the variant of `target` that stands: the last whose kernel file was made, the first where none was.
#[must_use]
pub fn standing(graph: &Graph, ends: &Ends<'_>, target: &Target) -> u32 {
    let generate = |attempt| graph.find(&Target { phase: Phase::Generate, attempt, ..target.clone() });
    let is_made = |index| ends(index).and_then(Settled::record).is_some_and(|record| record.outcome.is_pass());
    let mut standing = 1;
    for attempt in 2.. {
        match generate(attempt) {
            Some(index) if is_made(index) => standing = attempt,
            Some(_) => {}
            None => break,
        }
    }
    standing
}

/// Returns how many attempts were made at the kernels of an op.
#[must_use]
pub fn count(graph: &Graph, ends: &Ends<'_>, op: &str) -> u64 {
    let is_made = |index: &Index| {
        let is_generate = graph.action(*index).target().phase == Phase::Generate;
        is_generate && ends(*index).and_then(Settled::record).is_some_and(|record| record.outcome.is_pass())
    };
    graph.of_op(op).iter().copied().filter(is_made).count() as u64
}

/// Returns whether the action at `index` is of an attempt in whose place a later one was made: how it ended is no word on the variant. So is an attempt that made no
/// kernel, where another one did, or was asked for later.
#[must_use]
pub fn is_replaced(graph: &Graph, ends: &Ends<'_>, index: Index) -> bool {
    let target = graph.action(index).target();
    if target.variant.is_none() {
        return false;
    }
    let record = |index| ends(index).and_then(Settled::record);
    let standing = standing(graph, ends, target);
    let is_no_kernel =
        target.phase == Phase::Generate && record(index).is_some_and(|record| record.outcome.is_rejection());
    if !is_no_kernel {
        return target.attempt < standing;
    }
    let generate = |attempt| graph.find(&target.of_attempt(attempt));
    let is_made = generate(standing).and_then(record).is_some_and(|record| record.outcome.is_pass());
    is_made || generate(target.attempt + 1).and_then(record).is_some()
}
