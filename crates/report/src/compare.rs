//! Comparing: the benches of two sides, figure by figure. It makes the document `comparison`, which docs/reference/results.md describes.
//!
//! A ratio is A's time over B's: above 1, B is faster. It does not know where the benches come from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};
use t2t_protocol::{Bench, Binding, Figure};

use crate::figures;
use crate::rank::bootstrap::{Interval, Pairing};
use crate::rank::is_unstable_at;
use crate::rank::ratio::{self, Runs};

/// The version of the document. 1: first.
pub(crate) const VERSION: u32 = 1;

/// The mean of an op's sizes, as a row of its own.
pub(crate) const FINAL: &str = "Final";

/// By how many percent of A's time B may take longer before that is a regression, where nobody says otherwise.
pub const THRESHOLD: f64 = 5.0;

/// Differences below this share are `same`, whatever their interval: two processes that run equal code differ by as much.
const NOISE: f64 = 0.01;

/// Sizes that are not to be relied on shake their mean where they make up more than this share of it.
const SHAKES: f64 = 0.1;

/// One side of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// Op → what was measured.
    pub ops: BTreeMap<String, Measurements>,
}

/// What was measured of an op.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurements {
    /// The variant that was selected, where that is known.
    pub chosen: Option<String>,
    /// Variant → its document `bench`.
    pub benches: BTreeMap<String, Bench>,
}

/// What a ratio says of B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// B takes less time.
    Faster,
    /// B takes more time.
    Slower,
    /// They cannot be told apart.
    Same,
    /// One of the two is not to be relied on, or a single run a size says nothing of its scatter.
    Unstable,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Unstable => "unstable",
        })
    }
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The op.
    pub(crate) op: String,
    /// The variant on each side: two names where the selected one changed.
    pub(crate) variants: [String; 2],
    /// Whether it is the selected variant on both sides.
    pub(crate) selected: bool,
    /// The size, or [`FINAL`].
    pub(crate) size: String,
    /// Its time on each side, in milliseconds.
    pub(crate) ms: [f64; 2],
    /// A's time over B's.
    pub(crate) ratio: f64,
    /// The 95 % interval of the ratio, where there are two runs or more.
    pub(crate) interval: Option<Interval>,
    /// The same ratio of torch's times, measured beside: what the machine itself changed.
    pub(crate) torch: Option<f64>,
    /// What it says.
    pub(crate) verdict: Verdict,
    /// Whether B is slower by more than the threshold, the whole interval beyond it.
    pub(crate) is_regression: bool,
}

/// Two sides, compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// What the sides are called.
    pub(crate) names: [String; 2],
    /// By how much B may take longer, as a share of A's time.
    pub(crate) threshold: f64,
    /// The figures that both have.
    pub rows: Vec<Row>,
    /// What only one side has: ops, `op/variant`, or `op/variant at size`.
    pub only: [Vec<String>; 2],
    /// What both have and cannot be compared, with the reason.
    pub incomparable: Vec<(String, String)>,
}

impl Comparison {
    /// Returns how many rows are regressions.
    #[must_use]
    pub fn regressions(&self) -> usize {
        self.rows.iter().filter(|row| row.is_regression).count()
    }

    /// Returns how many rows have this verdict.
    #[must_use]
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        let incomparable = self.incomparable.iter().map(|(what, why)| json!({"what": what, "why": why}));
        json!({
            "version": VERSION,
            "a": self.names[0],
            "b": self.names[1],
            "threshold": self.threshold,
            "rows": self.rows.iter().map(Row::document).collect::<Vec<_>>(),
            "only_a": self.only[0],
            "only_b": self.only[1],
            "incomparable": incomparable.collect::<Vec<_>>(),
            "regressions": self.regressions(),
        })
    }
}

impl Row {
    fn document(&self) -> Value {
        json!({
            "op": self.op,
            "variant_a": self.variants[0],
            "variant_b": self.variants[1],
            "selected": self.selected,
            "size": self.size,
            "a_ms": self.ms[0],
            "b_ms": self.ms[1],
            "ratio": self.ratio,
            "interval": self.interval.map(Interval::bounds),
            "torch_ratio": self.torch,
            "verdict": self.verdict.to_string(),
            "regression": self.is_regression,
        })
    }
}

/// Compares two sides: every variant that both have, and the selected variants of an op where they differ. B may take longer by the share
/// `threshold` before that is a regression. Two sides of one bench each are compared whatever their variants are called.
#[must_use]
pub fn compare(a: &Side, b: &Side, threshold: f64) -> Comparison {
    let names = [a.name.clone(), b.name.clone()];
    let mut comparison = Comparison { names, threshold, ..Comparison::default() };
    let ops: BTreeSet<&String> = a.ops.keys().chain(b.ops.keys()).collect();
    for op in ops {
        match (a.ops.get(op), b.ops.get(op)) {
            (Some(ours), Some(theirs)) => comparison.add_op(op, ours, theirs),
            (Some(_), None) => comparison.only[0].push(op.clone()),
            _ => comparison.only[1].push(op.clone()),
        }
    }
    comparison
}

impl Comparison {
    fn add_op(&mut self, op: &str, a: &Measurements, b: &Measurements) {
        let pairs = pairs(a, b);
        for (ours, theirs) in &pairs {
            self.add_pair(op, [ours, theirs], [a, b]);
        }
        let left = |side: &Measurements, at: fn(&(String, String)) -> &String| -> Vec<String> {
            let paired: BTreeSet<&String> = pairs.iter().map(at).collect();
            side.benches.keys().filter(|name| !paired.contains(name)).map(|name| format!("{op}/{name}")).collect()
        };
        self.only[0].extend(left(a, |pair| &pair.0));
        self.only[1].extend(left(b, |pair| &pair.1));
    }

    fn add_pair(&mut self, op: &str, variants: [&String; 2], sides: [&Measurements; 2]) {
        let [a, b] = [&sides[0].benches[variants[0]], &sides[1].benches[variants[1]]];
        let what = if variants[0] == variants[1] {
            format!("{op}/{}", variants[0])
        } else {
            format!("{op}/{} and {op}/{}", variants[0], variants[1])
        };
        if a.clock != b.clock {
            let why = format!("the clocks are {:?} and {:?}", a.clock, b.clock);
            self.incomparable.push((what, why));
            return;
        }
        if a.protocol.passes != b.protocol.passes {
            let [ours, theirs] = [a, b].map(|bench| bench.protocol.passes.map_or("the forward pass", figures::passes));
            self.incomparable.push((what, format!("what was timed is {ours} and {theirs}")));
            return;
        }
        let selected = (0..2).all(|side| sides[side].chosen.as_ref() == Some(variants[side]));
        let pair = Pair { op, variants, selected, threshold: self.threshold };
        let common = self.common_sizes(&what, a, b);
        let all = common.len() == a.sizes.len() && common.len() == b.sizes.len();
        self.rows.extend(common.iter().filter_map(|size| pair.row(size, &[size], a, b)));
        if all && common.len() > 1 {
            self.rows.extend(pair.row(FINAL, &common, a, b));
        }
    }

    /// Returns the sizes that can be compared, the smallest first, and notes the others.
    fn common_sizes<'a>(&mut self, what: &str, a: &'a Bench, b: &Bench) -> Vec<&'a str> {
        let mut common = Vec::new();
        for (size, ours) in &a.sizes {
            let what = format!("{what} at {size}");
            let Some(theirs) = b.sizes.get(size) else {
                self.only[0].push(what);
                continue;
            };
            if ours.binding != theirs.binding {
                let [ours, theirs] = [ours, theirs].map(|size| json!(size.binding));
                self.incomparable.push((what, format!("the binding is {ours} and {theirs}")));
            } else if ours.dtype != theirs.dtype {
                self.incomparable.push((what, format!("the dtype is {:?} and {:?}", ours.dtype, theirs.dtype)));
            } else {
                common.push((size.as_str(), volume(&ours.binding)));
            }
        }
        let missing = b.sizes.keys().filter(|size| !a.sizes.contains_key(*size));
        self.only[1].extend(missing.map(|size| format!("{what} at {size}")));
        common.sort_by(|(_, left), (_, right)| left.total_cmp(right));
        common.into_iter().map(|(size, _)| size).collect()
    }
}

/// Returns the variants to compare: those that both have, and the selected ones where they differ.
fn pairs(a: &Measurements, b: &Measurements) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = a
        .benches
        .keys()
        .filter(|name| b.benches.contains_key(*name))
        .map(|name| (name.clone(), name.clone()))
        .collect();
    let chosen = a.chosen.as_ref().zip(b.chosen.as_ref());
    let alone =
        || (a.benches.len() == 1 && b.benches.len() == 1).then(|| a.benches.keys().next().zip(b.benches.keys().next()));
    if let Some((ours, theirs)) = chosen.or_else(|| alone().flatten())
        && ours != theirs
        && a.benches.contains_key(ours)
        && b.benches.contains_key(theirs)
    {
        pairs.push((ours.clone(), theirs.clone()));
    }
    pairs
}

/// Two benches of an op, and how their figures are judged.
struct Pair<'a> {
    op: &'a str,
    variants: [&'a String; 2],
    selected: bool,
    threshold: f64,
}

impl Pair<'_> {
    /// Returns the row of one size, or of the mean of several. None where one has no figure.
    fn row(&self, name: &str, sizes: &[&str], a: &Bench, b: &Bench) -> Option<Row> {
        let ms = [time(a, sizes, own)?, time(b, sizes, own)?];
        let torch = time(a, sizes, torch).zip(time(b, sizes, torch)).map(|(ours, theirs)| ours / theirs);
        let runs = [runs(a, sizes), runs(b, sizes)];
        let [above, below] = [&runs[0], &runs[1]].map(|runs| runs.iter().collect::<Vec<_>>());
        let interval = ratio::ratio(&above, &below, Pairing::Independent);
        let ratio = ms[0] / ms[1];
        let verdict = verdict(ratio, interval, is_unstable(a, sizes) || is_unstable(b, sizes));
        let beyond = interval.is_some_and(|interval| interval.high < 1.0 / (1.0 + self.threshold));
        Some(Row {
            op: self.op.to_owned(),
            variants: self.variants.map(Clone::clone),
            selected: self.selected,
            size: name.to_owned(),
            ms,
            ratio,
            interval,
            torch,
            verdict,
            is_regression: verdict == Verdict::Slower && beyond,
        })
    }
}

fn verdict(ratio: f64, interval: Option<Interval>, is_unstable: bool) -> Verdict {
    let within_noise = (1.0 / (1.0 + NOISE)..=1.0 + NOISE).contains(&ratio);
    match interval {
        _ if is_unstable => Verdict::Unstable,
        None if !within_noise => Verdict::Unstable,
        Some(interval) if !within_noise && !interval.holds_one() => {
            if ratio > 1.0 {
                Verdict::Faster
            } else {
                Verdict::Slower
            }
        }
        _ => Verdict::Same,
    }
}

/// Returns whether the mean of these sizes cannot be relied on.
fn is_unstable(bench: &Bench, sizes: &[&str]) -> bool {
    let time = |size: &&str| own(bench, size).map_or(0.0, |figure| figure.mean);
    let shaken: f64 = sizes.iter().filter(|size| is_unstable_at(bench, size)).map(time).sum();
    shaken > SHAKES * sizes.iter().map(time).sum::<f64>()
}

/// Returns the product of a size's dims: what orders sizes.
#[expect(clippy::cast_precision_loss, reason = "it orders sizes")]
fn volume(binding: &Binding) -> f64 {
    binding.values().map(|length| *length as f64).product()
}

/// Returns the figure of the variant at a size.
fn own<'a>(bench: &'a Bench, size: &str) -> Option<&'a Figure> {
    bench.sizes.get(size)?.variant.as_ref()
}

/// Returns the figure of torch beside the variant at a size.
fn torch<'a>(bench: &'a Bench, size: &str) -> Option<&'a Figure> {
    bench.sizes.get(size)?.torch.as_ref()
}

/// Returns the mean over sizes of what a subject took.
#[expect(clippy::cast_precision_loss, reason = "there are fewer sizes than 2^52")]
fn time(bench: &Bench, sizes: &[&str], subject: for<'a> fn(&'a Bench, &str) -> Option<&'a Figure>) -> Option<f64> {
    let times: Option<Vec<f64>> = sizes.iter().map(|size| Some(subject(bench, size)?.mean)).collect();
    times.map(|times| times.iter().sum::<f64>() / times.len() as f64)
}

fn runs(bench: &Bench, sizes: &[&str]) -> Vec<Runs> {
    sizes.iter().map(|size| own(bench, size).map(Runs::from).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests;
