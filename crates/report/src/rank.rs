//! Ranking: which variant of an op is chosen, and why. It makes the document `selection`.
//!
//! It reads documents that others made and knows no file, clock or device. Chance comes from a seed of its own, so equal documents give
//! equal bytes.

use std::collections::BTreeMap;

use t2t_protocol::{Baseline, Bench, CheckVerdict, MeasuredDevice, Verdict};

use crate::figures;
use crate::rank::bootstrap::Interval;
use crate::rank::measured::{Measured, Tie};
pub(crate) use crate::rank::selection::{AgainstFirst, Counts, Gain, Gains, SelectedFigures, VariantRow};
pub use crate::rank::selection::{Published, PublishedPlace, Selection};
pub(crate) use crate::rank::stability::{STEADY, is_unstable, is_unstable_at, slowed_torch, why_unstable};

mod against;
pub(crate) mod bootstrap;
mod measured;
pub mod published;
pub(crate) mod ratio;
mod selection;
mod stability;

/// The version of the document `selection` and of the rule that makes it. A new one selects again. 1: first. 2: each size's
/// interval and whether it is stable; every variant against the first declared one. 3: what is unstable may tie, and is not chosen where something stable ties with it.
/// 4: a figure for which the host was behind the device is unstable. 5: on the interpreter there is no figure but how long it took; what torch computed for each variant, as declared.
/// 6: no figure counts where a timed call's output was not judged right; one beside which torch took much longer than alone is unstable.
/// 7: figures whose number of runs was not fixed are compared by the intervals with which measuring ended.
pub const VERSION: u32 = 7;

/// Returns how many attempts at a kernel were judged: the records there are of its check.
#[must_use]
pub(crate) fn attempts(verdict: &Found<Verdict>) -> usize {
    usize::from(matches!(verdict, Found::Document(_) | Found::Rejected { .. }))
}

/// What there is of an artifact that a view reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<T> {
    /// The document.
    Document(T),
    /// None: the action that makes it was rejected.
    Rejected {
        /// As in `source` or `timeout`.
        class: String,
    },
    /// None: the action that makes it did not run.
    Skipped {
        /// Why, for people.
        reason: String,
    },
    /// None: the machine failed.
    Lost,
}

impl<T> Found<T> {
    /// Returns the document, if there is one.
    #[must_use]
    pub fn document(&self) -> Option<&T> {
        match self {
            Self::Document(document) => Some(document),
            _ => None,
        }
    }

    /// Returns why there is no document, None where there is one.
    #[must_use]
    pub(crate) fn reason(&self) -> Option<String> {
        match self {
            Self::Document(_) => None,
            Self::Rejected { class } => Some(format!("rejected: {class}")),
            Self::Skipped { reason } => Some(reason.clone()),
            Self::Lost => Some("the machine failed".to_owned()),
        }
    }
}

/// What is known of a variant when one is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantResult {
    /// Its name.
    pub name: String,
    /// The document `verdict` of its check.
    pub verdict: Found<Verdict>,
    /// The document `bench`.
    pub bench: Found<Bench>,
}

/// What the judging of a variant came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Every case passed, and so did the outputs of timed calls.
    Passed,
    /// The kernel is wrong, or could not be run.
    Rejected,
    /// It cannot be judged here. Neither pass nor fail.
    NotJudged,
    /// It was not reached.
    Skipped,
    /// The machine failed.
    Lost,
}

impl Status {
    /// Returns the status as documents write it.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Rejected => "rejected",
            Self::NotJudged => "not-judged",
            Self::Skipped => "skipped",
            Self::Lost => "lost",
        }
    }

    /// Returns the mark that logs show.
    #[must_use]
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Passed => "✅",
            Self::Rejected => "❌",
            Self::NotJudged | Self::Skipped | Self::Lost => "⏭",
        }
    }
}

/// A variant's status with what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The status.
    pub(crate) status: Status,
    /// The class of a rejection.
    pub(crate) class: Option<String>,
    /// Why, where it is neither passed nor rejected, or was rejected by its bench.
    pub(crate) reason: Option<String>,
}

/// Returns how a variant stands.
#[must_use]
pub(crate) fn standing(variant: &VariantResult) -> Standing {
    match (&variant.verdict, &variant.bench) {
        (Found::Document(verdict), bench) => match (judged(verdict), bench) {
            (Standing { status: Status::Passed, .. }, Found::Rejected { class }) => Standing {
                status: Status::Rejected,
                class: Some(class.clone()),
                reason: Some("while it was measured".to_owned()),
            },
            (standing, _) => standing,
        },
        (Found::Rejected { class }, _) => {
            Standing { status: Status::Rejected, class: Some(class.clone()), reason: None }
        }
        (Found::Skipped { reason }, _) => {
            Standing { status: Status::Skipped, class: None, reason: Some(reason.clone()) }
        }
        (Found::Lost, _) => {
            Standing { status: Status::Lost, class: None, reason: Some("the machine failed".to_owned()) }
        }
    }
}

fn judged(verdict: &Verdict) -> Standing {
    let status = match verdict.verdict {
        CheckVerdict::Passed => Status::Passed,
        CheckVerdict::Rejected => Status::Rejected,
        CheckVerdict::NotJudged => Status::NotJudged,
    };
    Standing { status, class: verdict.class.clone(), reason: verdict.reason.clone() }
}

/// Returns the document `selection`: the chosen variant, why, its figures, and how every variant of the op stands.
///
/// `variants` are in declared order, the simplest first. The fastest Final among those that passed is chosen, unless the 95 % bootstrap
/// interval of its ratio to an earlier one holds 1: then they tie and the earliest is, of those that are stable if one is. An unstable one that would tie by its fastest runs
/// is named with those that tie, and not chosen. Interpreter timings choose the earliest that passed.
#[must_use]
pub fn select(variants: &[VariantResult], baseline: Option<&Baseline>, lane: Lane) -> Selection {
    let interpreter = lane == Lane::Interpreter;
    let entrants: Vec<Entrant> = variants.iter().map(|variant| Entrant::of(variant, baseline, lane)).collect();
    let choice = if interpreter { earliest(&entrants) } else { fastest(&entrants) };
    let comparable = !interpreter && choice.chosen.is_some();
    let chosen = choice.chosen.map(|at| &entrants[at]);
    let measured = chosen.and_then(|entrant| entrant.measured.as_ref());
    let against_torch = measured.filter(|_| comparable).and_then(Measured::against_torch);
    Selection {
        version: VERSION,
        comparable,
        interpreter,
        note: note(variants, lane),
        device: device(variants, baseline),
        chosen: chosen.map(|entrant| entrant.name.clone()),
        why: choice.why,
        ties: choice.ties.iter().map(|&at| entrants[at].name.clone()).collect(),
        fastest: choice.fastest.map(|at| entrants[at].name.clone()),
        success: comparable && measured.is_some_and(Measured::reaches_torch),
        against_torch: against_torch.map(str::to_owned),
        figures: measured.map(Measured::document),
        interpreter_ms: chosen.and_then(|entrant| entrant.interpreter_ms.clone()),
        against: if interpreter { None } else { against::first(&entrants) },
        variants: variants.iter().zip(&entrants).map(|(variant, entrant)| entrant.document(variant)).collect(),
        counts: counts(&entrants),
        published: None,
    }
}

/// Returns what a reader must know of the figures: that they compare nothing, and what was timed where that is not the forward pass alone.
fn note(variants: &[VariantResult], lane: Lane) -> Option<String> {
    let incomparable = (lane == Lane::Interpreter).then(|| "not comparable: interpreter".to_owned());
    let mut passes = variants.iter().filter_map(|variant| variant.bench.document()?.protocol.passes);
    let timed = passes.next().map(|passes| format!("timed: {}", figures::passes(passes)));
    let told: Vec<String> = incomparable.into_iter().chain(timed).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

struct Entrant {
    name: String,
    standing: Standing,
    measured: Option<Measured>,
    /// Size → how long Triton's interpreter took for one call, in milliseconds; none on a device.
    interpreter_ms: Option<InterpreterTimes>,
}

impl Entrant {
    fn of(variant: &VariantResult, baseline: Option<&Baseline>, lane: Lane) -> Self {
        let bench = variant.bench.document();
        let slowed = bench.zip(baseline).and_then(|(bench, baseline)| slowed_torch(bench, baseline));
        let measured = bench.filter(|_| lane == Lane::Device).and_then(Measured::of);
        let measured = measured.map(|measured| measured.doubted(slowed));
        let interpreter_ms = bench.filter(|_| lane == Lane::Interpreter).map(interpreter_times);
        Self { name: variant.name.clone(), standing: standing(variant), measured, interpreter_ms }
    }

    fn has_passed(&self) -> bool {
        self.standing.status == Status::Passed
    }

    fn document(&self, variant: &VariantResult) -> VariantRow {
        VariantRow {
            name: self.name.clone(),
            status: self.standing.status.name().to_owned(),
            mark: self.standing.status.mark().to_owned(),
            class: self.standing.class.clone(),
            reason: self.standing.reason.clone(),
            attempts: attempts(&variant.verdict),
            cases: case_counts(&variant.verdict),
            figures: self.measured.as_ref().map(Measured::document),
            interpreter_ms: self.interpreter_ms.clone(),
            allowed: variant.verdict.document().and_then(|verdict| verdict.allowed.clone()).unwrap_or_default(),
        }
    }
}

/// The outcome of a rule: places among the entrants, and the reason.
struct Choice {
    chosen: Option<usize>,
    fastest: Option<usize>,
    ties: Vec<usize>,
    why: String,
}

impl Choice {
    fn none(why: &str) -> Self {
        Self { chosen: None, fastest: None, ties: Vec::new(), why: why.to_owned() }
    }
}

fn earliest(entrants: &[Entrant]) -> Choice {
    let Some(chosen) = entrants.iter().position(Entrant::has_passed) else {
        return Choice::none(nobody(entrants));
    };
    let why = format!(
        "`{}` is the earliest declared variant that passed; not comparable: interpreter timings choose nothing",
        entrants[chosen].name
    );
    Choice { chosen: Some(chosen), fastest: None, ties: Vec::new(), why }
}

fn fastest(entrants: &[Entrant]) -> Choice {
    let field: Vec<(usize, &Measured)> = entrants
        .iter()
        .enumerate()
        .filter(|(_, entrant)| entrant.has_passed())
        .filter_map(|(at, entrant)| Some((at, entrant.measured.as_ref()?)))
        .collect();
    let Some(&(first, best)) = field.iter().min_by(|(_, a), (_, b)| a.final_ms.total_cmp(&b.final_ms)) else {
        return Choice::none(nobody(entrants));
    };
    let others = field.iter().filter(|(at, _)| *at != first);
    let ties: Vec<(usize, Tie)> = others.filter_map(|(at, measured)| Some((*at, measured.ties_with(best)?))).collect();
    let level: Vec<(usize, Option<Interval>)> = ties
        .iter()
        .filter_map(|(at, tie)| if let Tie::Level(interval) = tie { Some((*at, *interval)) } else { None })
        .collect();
    let is_stable = |at: &usize| field.iter().any(|(other, measured)| other == at && !measured.is_unstable());
    let eligible = || level.iter().map(|(at, _)| *at).chain([first]);
    let chosen = eligible().filter(is_stable).min().or_else(|| eligible().min()).expect("the fastest is there");
    let named = field.iter().map(|(at, _)| *at).filter(|at| *at != chosen);
    let named = named.filter(|at| *at == first || ties.iter().any(|(other, _)| other == at)).collect();
    let why = match level.iter().find(|(at, _)| *at == chosen) {
        Some((_, interval)) => {
            let which = if chosen < first { "the simpler, declared earlier," } else { "the stable one" };
            why_tied(&entrants[chosen].name, &entrants[first].name, *interval, which)
        }
        None => why_fastest(&entrants[chosen].name, entrants, &field),
    };
    Choice { chosen: Some(chosen), fastest: Some(first), ties: named, why }
}

fn nobody(entrants: &[Entrant]) -> &'static str {
    if entrants.iter().any(Entrant::has_passed) {
        "none of the variants that passed was measured"
    } else if entrants.iter().any(|entrant| entrant.standing.status == Status::Rejected) {
        "no variant passed"
    } else {
        "no variant was judged"
    }
}

fn why_tied(chosen: &str, fastest: &str, interval: Option<Interval>, which: &str) -> String {
    let told = match interval {
        Some(interval) => format!("the 95 % interval of their ratio, {interval}, holds 1"),
        None => "one run a size tells nothing apart".to_owned(),
    };
    format!("`{chosen}` ties with `{fastest}`, the lowest Final: {told}; of two that tie {which} is chosen")
}

fn why_fastest(chosen: &str, entrants: &[Entrant], field: &[(usize, &Measured)]) -> String {
    let best = field.iter().map(|(_, measured)| measured.final_ms).fold(f64::INFINITY, f64::min);
    let told = format!("`{chosen}` has the lowest Final, {} ms", figures::milliseconds(best));
    let others = field.iter().filter(|(at, _)| entrants[*at].name != chosen);
    match others.min_by(|(_, a), (_, b)| a.final_ms.total_cmp(&b.final_ms)) {
        None => format!("{told}: it is the only variant that passed and was measured"),
        Some((at, next)) => {
            let behind = figures::ratio(next.final_ms / best);
            format!("{told}; next is `{}`, which takes {behind} as long", entrants[*at].name)
        }
    }
}

/// Where kernels were called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// In Triton's interpreter, whose times compare nothing.
    Interpreter,
    /// On a CUDA device.
    Device,
}

/// Size → how long Triton's interpreter took for one call, in milliseconds, where that is known.
type InterpreterTimes = BTreeMap<String, Option<f64>>;

/// Returns how long the interpreter took by a document `bench` of it.
fn interpreter_times(bench: &Bench) -> InterpreterTimes {
    bench.sizes.iter().map(|(name, size)| (name.clone(), size.interpreter_ms)).collect()
}

/// Returns the first device that a document names.
fn device(variants: &[VariantResult], baseline: Option<&Baseline>) -> Option<MeasuredDevice> {
    let benches = variants.iter().filter_map(|variant| variant.bench.document()).map(|bench| &bench.device);
    benches.chain(baseline.map(|baseline| &baseline.device)).find(|device| !device.model.is_empty()).cloned()
}

fn counts(entrants: &[Entrant]) -> Counts {
    let of = |status| entrants.iter().filter(|entrant| entrant.standing.status == status).count();
    Counts {
        variants: entrants.len(),
        passed: of(Status::Passed),
        rejected: of(Status::Rejected),
        not_judged: of(Status::NotJudged),
        skipped: of(Status::Skipped),
        lost: of(Status::Lost),
    }
}

fn case_counts(verdict: &Found<Verdict>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for status in verdict.document().into_iter().flat_map(|verdict| verdict.cases.values()) {
        *counts.entry(status.name().replace('-', "_")).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests;
