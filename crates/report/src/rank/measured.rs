//! A measured variant: the figures of its document `bench` that ranking needs.
//!
//! It does not know the other variants, nor whether the kernel is right.

use std::collections::BTreeMap;

use t2t_protocol::{Bench, BenchSize, CaseVerdict};

use crate::rank::bootstrap::{Interval, Pairing};
use crate::rank::ratio::{Runs, ratio};
use crate::rank::selection::{SelectedFigures, SelectedSize};
use crate::rank::stability::{is_unstable, is_unstable_at, why_unstable};

/// The figures of one bench. Times in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    /// The mean of the sizes' figures.
    pub(crate) final_ms: f64,
    torch_final_ms: Option<f64>,
    speedup: Option<f64>,
    geomean_speedup: Option<f64>,
    sizes: BTreeMap<String, Size>,
    unstable: bool,
    why_unstable: Option<String>,
    interval: Option<Interval>,
}

/// Why two variants cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tie {
    /// The interval of the ratio of their Finals holds 1; none where a size has one run, and nothing is known of its scatter.
    Level(Option<Interval>),
    /// It does not, but would, or would lie below, had the slower one, which is unstable, taken as long as its fastest run each time.
    Unstable,
}

#[derive(Clone, Debug, PartialEq)]
struct Size {
    ms: Option<f64>,
    torch_ms: Option<f64>,
    runs: Runs,
    torch_runs: Runs,
    interval: Option<Interval>,
    is_unstable: bool,
}

impl Measured {
    /// Returns the figures of a document `bench`, None where it has no Final, or at some size no output of a timed call that was judged right.
    #[must_use]
    pub(crate) fn of(bench: &Bench) -> Option<Self> {
        if !is_judged(bench) {
            return None;
        }
        let sizes = bench.sizes.iter();
        let mut measured = Self {
            final_ms: bench.final_ms?,
            torch_final_ms: bench.torch_final_ms,
            speedup: bench.speedup,
            geomean_speedup: bench.geomean_speedup,
            sizes: sizes.map(|(name, size)| (name.clone(), Size::of(size, is_unstable_at(bench, name)))).collect(),
            unstable: is_unstable(bench),
            why_unstable: why_unstable(bench),
            interval: None,
        };
        measured.interval = ratio(&measured.torch_runs(), &measured.runs(), Pairing::Interleaved);
        Some(measured)
    }

    /// Returns it, unstable for that reason too where there is one.
    #[must_use]
    pub(crate) fn doubted(mut self, reason: Option<String>) -> Self {
        if let Some(reason) = reason {
            self.unstable = true;
            let told: Vec<String> = self.why_unstable.take().into_iter().chain([reason]).collect();
            self.why_unstable = Some(told.join("; "));
        }
        self
    }

    /// Returns the interval of the ratio of this Final to another variant's.
    #[must_use]
    pub(crate) fn ratio_to(&self, other: &Self) -> Option<Interval> {
        ratio(&self.runs(), &other.runs(), Pairing::Independent)
    }

    /// Returns why this one, whose Final is no lower, cannot be told from another variant; None where it can.
    #[must_use]
    pub(crate) fn ties_with(&self, other: &Self) -> Option<Tie> {
        let Some(interval) = self.ratio_to(other) else { return Some(Tie::Level(None)) };
        if interval.holds_one() {
            return Some(Tie::Level(Some(interval)));
        }
        if !self.unstable {
            return None;
        }
        let fastest: Vec<Runs> = self.sizes.values().map(Size::at_best).collect();
        let fastest: Vec<&Runs> = fastest.iter().collect();
        let interval = ratio(&fastest, &other.runs(), Pairing::Independent)?;
        (interval.low <= 1.0).then_some(Tie::Unstable)
    }

    /// Returns whether a figure cannot be relied on.
    #[must_use]
    pub(crate) fn is_unstable(&self) -> bool {
        self.unstable
    }

    /// Returns the names of its sizes, in the order of names.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = &String> {
        self.sizes.keys()
    }

    /// Returns how many times as long another variant takes at a size, and the interval of that ratio. None where one was not measured there.
    #[must_use]
    pub(crate) fn gain_over(&self, other: &Self, size: &str) -> Option<(f64, Option<Interval>)> {
        let (own, base) = (self.sizes.get(size)?, other.sizes.get(size)?);
        let interval = ratio(&[&base.runs], &[&own.runs], Pairing::Independent);
        Some((base.ms? / own.ms?, interval))
    }

    /// Returns whether the figures of a size cannot be relied on.
    #[must_use]
    pub(crate) fn is_unstable_at(&self, size: &str) -> bool {
        self.sizes.get(size).is_some_and(|size| size.is_unstable)
    }

    /// Returns whether it is at least as fast as torch, as far as that can be told: the speedup or its interval reaches 1.
    #[must_use]
    pub(crate) fn reaches_torch(&self) -> bool {
        let reached = self.interval.map(|interval| interval.high).into_iter().chain(self.speedup);
        reached.fold(0.0, f64::max) >= 1.0
    }

    /// Returns how it compares with torch: `faster`, `ties` or `slower`.
    #[must_use]
    pub(crate) fn against_torch(&self) -> Option<&'static str> {
        let speedup = self.speedup?;
        let interval = self.interval.unwrap_or(Interval { low: speedup, high: speedup });
        Some(match speedup {
            _ if interval.holds_one() => "ties",
            _ if speedup > 1.0 => "faster",
            _ => "slower",
        })
    }

    /// Returns the figures as the document `selection` holds them.
    #[must_use]
    pub(crate) fn document(&self) -> SelectedFigures {
        SelectedFigures {
            final_ms: self.final_ms,
            torch_final_ms: self.torch_final_ms,
            speedup: self.speedup,
            interval: self.interval.map(Interval::bounds),
            geomean_speedup: self.geomean_speedup,
            sizes: self.sizes.iter().map(|(name, size)| (name.clone(), size.document())).collect(),
            unstable: self.unstable,
            why_unstable: self.why_unstable.clone(),
        }
    }

    fn runs(&self) -> Vec<&Runs> {
        self.sizes.values().map(|size| &size.runs).collect()
    }

    fn torch_runs(&self) -> Vec<&Runs> {
        self.sizes.values().map(|size| &size.torch_runs).collect()
    }
}

/// Returns whether outputs of timed calls were right at every size.
fn is_judged(bench: &Bench) -> bool {
    let judged = |name: &String| bench.judged.as_ref()?.get(name);
    bench.sizes.keys().all(|name| judged(name).is_some_and(|judged| judged.verdict == CaseVerdict::Passed))
}

impl Size {
    fn of(size: &BenchSize, is_unstable: bool) -> Self {
        let (own, torch) = (size.variant.as_ref(), size.torch.as_ref());
        let [runs, torch_runs] = [own, torch].map(|figure| figure.map(Runs::from).unwrap_or_default());
        Self {
            ms: own.map(|figure| figure.mean),
            torch_ms: torch.map(|figure| figure.mean),
            interval: ratio(&[&torch_runs], &[&runs], Pairing::Interleaved),
            is_unstable,
            runs,
            torch_runs,
        }
    }

    /// Returns the runs; where they are unstable, the fastest of them for each.
    fn at_best(&self) -> Runs {
        if !self.is_unstable {
            return self.runs.clone();
        }
        let Runs { means, within } = &self.runs;
        let fastest = means.iter().copied().fold(f64::INFINITY, f64::min);
        Runs { means: vec![fastest; means.len()], within: within.map(|_| 0.0) }
    }

    fn document(&self) -> SelectedSize {
        SelectedSize {
            ms: self.ms,
            torch_ms: self.torch_ms,
            speedup: self.torch_ms.zip(self.ms).map(|(torch, ms)| torch / ms),
            interval: self.interval.map(Interval::bounds),
            unstable: self.is_unstable,
        }
    }
}
