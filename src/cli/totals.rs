//! The totals of a build's report: how many actions ended how, and the exit code.
//!
//! It does not know what was requested.

use t2t_host::interrupt::INTERRUPTED;
use t2t_model::event::Tally;
use t2t_model::record::Outcome;
use t2t_plan::schedule::Settled;

use crate::engine::Report;

/// Adds what settled to a tally.
pub(crate) fn count(report: &Report, tally: &mut Tally) {
    for settled in report.settled.iter().flatten() {
        match settled {
            Settled::Fresh(_) => tally.fresh += 1,
            Settled::Restored(_) => tally.restored += 1,
            Settled::Ran(_) => tally.ran += 1,
            Settled::Skipped(_) | Settled::Withheld(_) => tally.skipped += 1,
            // What was running when the user stopped it failed for no fault of the machine; an earlier loss was told of.
            Settled::Lost(_) if report.interrupted => {}
            Settled::Lost(_) => tally.lost += 1,
            Settled::Planned | Settled::Missing | Settled::NotNeeded => {}
        }
    }
    tally.again += report.again;
    for settled in standing(report) {
        let outcome = settled.record().map(|record| &record.outcome);
        tally.rejected += usize::from(outcome.is_some_and(Outcome::is_rejection));
        tally.not_judged += usize::from(outcome.is_some_and(Outcome::is_not_judged));
    }
}

/// Returns what became of actions that is a word on their variants: not of attempts in whose place later ones were made.
pub(crate) fn standing(report: &Report) -> impl Iterator<Item = &Settled> {
    let ends = report.settled.iter().enumerate().filter_map(|(number, settled)| Some((number, settled.as_ref()?)));
    ends.filter(|(number, _)| !report.is_replaced(*number)).map(|(_, settled)| settled)
}

/// Returns whether it settled with a rejection.
pub(crate) fn is_rejected(settled: &Settled) -> bool {
    settled.record().is_some_and(|record| record.outcome.is_rejection())
}

/// The exit code describes the state of the requested actions, not what ran.
pub(crate) fn exit_code(report: &Report) -> u8 {
    let settled = || report.settled.iter().flatten();
    if report.interrupted {
        INTERRUPTED
    } else if settled().any(|settled| matches!(settled, Settled::Lost(_))) {
        3
    } else {
        let is_withheld = settled().any(|settled| matches!(settled, Settled::Withheld(_)));
        u8::from(report.stopped || is_withheld || !report.missing.is_empty() || standing(report).any(is_rejected))
    }
}
