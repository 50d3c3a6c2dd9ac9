//! Stability: which figures of a document `bench` can be relied on, and why others cannot.
//!
//! What varied or was disturbed is the bench's word; that the host was behind the device is seen here, in runs that are over. It measures nothing again.

use t2t_protocol::{Baseline, Bench, BenchSize, Figure};

/// The largest coefficient of variation of a figure that counts as stable, as in the harness (`statistics.STEADY`).
pub(crate) const STEADY: f64 = 0.05;

/// The calls of one run take a device nearly equally long: where the 80th percentile is above this many times the 20th, the host was behind (docs/reference/measuring.md, "Unstable
/// figures").
const SPREAD: f64 = 1.2;

/// How many times as long torch may take beside a variant as alone. Two processes on one slow host differ by less.
const SLOWED: f64 = 1.5;

/// Returns those whose figures a size may have, with their figures.
fn subjects(size: &BenchSize) -> [(&'static str, Option<&Figure>); 2] {
    [("variant", size.variant.as_ref()), ("torch", size.torch.as_ref())]
}

/// Returns whether a figure of `bench` cannot be relied on.
#[must_use]
pub(crate) fn is_unstable(bench: &Bench) -> bool {
    bench.unstable == Some(true) || bench.sizes.values().any(|size| is_behind(bench, size))
}

/// Returns why figures of `bench` cannot be relied on: what it says itself, and where the host was behind the device. None where neither says anything.
#[must_use]
pub(crate) fn why_unstable(bench: &Bench) -> Option<String> {
    let own = bench.why_unstable.clone().flatten();
    let behind = bench.sizes.iter().filter(|(_, size)| is_behind(bench, size)).map(|(name, size)| {
        let told =
            subjects(size).map(|(who, figure)| format!("{who} {:.0} %", 100.0 * (figure.map_or(1.0, spread) - 1.0)));
        format!("{name}: the host was behind the device (p20 to p80 of a run: {})", told.join(", "))
    });
    let told: Vec<String> = own.into_iter().chain(behind).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Returns where torch took much longer beside the variant than alone, in `baseline`, a process that no kernel ran in: the variant's module may have slowed it down. None
/// where it did not at any size.
#[must_use]
pub(crate) fn slowed_torch(bench: &Bench, baseline: &Baseline) -> Option<String> {
    let times = |(name, size): (&String, &BenchSize)| {
        let beside = size.torch.as_ref()?.median;
        let alone = baseline.sizes.get(name)?.figure("torch")?.median;
        (beside > SLOWED * alone)
            .then(|| format!("{name}: torch took {:.1} times as long beside it as alone", beside / alone))
    };
    let told: Vec<String> = bench.sizes.iter().filter_map(times).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Returns whether the figures of `bench` at a size cannot be relied on: they vary, the host was behind, or the bench was disturbed, which is no size's own.
#[must_use]
pub(crate) fn is_unstable_at(bench: &Bench, size: &str) -> bool {
    let varies =
        |size: &BenchSize| subjects(size).iter().any(|(_, figure)| figure.is_some_and(|figure| figure.cv > STEADY));
    let is_disturbed = || !bench.sizes.values().any(varies);
    let at = bench.sizes.get(size);
    at.is_some_and(|size| is_behind(bench, size))
        || bench.unstable == Some(true) && (at.is_some_and(varies) || is_disturbed())
}

/// Returns whether a size's figure of a device is the host's, which made its calls more slowly than the device did their work: runs can agree on that.
fn is_behind(bench: &Bench, size: &BenchSize) -> bool {
    bench.clock != "host"
        && subjects(size).iter().any(|(_, figure)| figure.is_some_and(|figure| spread(figure) > SPREAD))
}

/// Returns how many times as long a call at the 80th percentile takes as one at the 20th.
fn spread(figure: &Figure) -> f64 {
    figure.p80 / figure.p20
}
