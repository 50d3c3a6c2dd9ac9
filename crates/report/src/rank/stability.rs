//! Stability: which figures of a document `bench` can be relied on, and why others cannot.
//!
//! What varied or was disturbed is the bench's word; that the host was behind the device is seen here, in runs that are over. It measures nothing again.

use serde_json::Value;

/// The largest coefficient of variation of a figure that counts as stable, as in the harness (`statistics.STEADY`).
pub(crate) const STEADY: f64 = 0.05;

/// The calls of one run take a device nearly equally long: where the 80th percentile is above this many times the 20th, the host was behind (docs/reference/measuring.md, "Unstable
/// figures").
const SPREAD: f64 = 1.2;

/// How many times as long torch may take beside a variant as alone. Two processes on one slow host differ by less.
const SLOWED: f64 = 1.5;

/// Those whose figures a size has.
const SUBJECTS: [&str; 2] = ["variant", "torch"];

/// Returns whether a figure of `bench` cannot be relied on.
#[must_use]
pub(crate) fn is_unstable(bench: &Value) -> bool {
    bench["unstable"] == true || sizes_of(bench).any(|(_, size)| is_behind(bench, size))
}

/// Returns why figures of `bench` cannot be relied on: what it says itself, and where the host was behind the device. None where neither says anything.
#[must_use]
pub(crate) fn why_unstable(bench: &Value) -> Option<String> {
    let own = bench["why_unstable"].as_str().map(str::to_owned);
    let behind = sizes_of(bench).filter(|(_, size)| is_behind(bench, size)).map(|(name, size)| {
        let told = SUBJECTS.map(|who| format!("{who} {:.0} %", 100.0 * (spread(&size[who]).unwrap_or(1.0) - 1.0)));
        format!("{name}: the host was behind the device (p20 to p80 of a run: {})", told.join(", "))
    });
    let told: Vec<String> = own.into_iter().chain(behind).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Returns where torch took much longer beside the variant than alone, in `baseline`, a process that no kernel ran in: the variant's module may have slowed it down. None
/// where it did not at any size.
#[must_use]
pub(crate) fn slowed_torch(bench: &Value, baseline: &Value) -> Option<String> {
    let times = |size: (&String, &Value)| {
        let beside = size.1["torch"]["median"].as_f64()?;
        let alone = baseline["sizes"][size.0]["torch"]["median"].as_f64()?;
        (beside > SLOWED * alone)
            .then(|| format!("{}: torch took {:.1} times as long beside it as alone", size.0, beside / alone))
    };
    let told: Vec<String> = sizes_of(bench).filter_map(times).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Returns whether the figures of `bench` at a size cannot be relied on: they vary, the host was behind, or the bench was disturbed, which is no size's own.
#[must_use]
pub(crate) fn is_unstable_at(bench: &Value, size: &str) -> bool {
    let varies = |size: &Value| SUBJECTS.iter().any(|of| size[of]["cv"].as_f64().is_some_and(|cv| cv > STEADY));
    let is_disturbed = || !sizes_of(bench).any(|(_, size)| varies(size));
    let size = &bench["sizes"][size];
    is_behind(bench, size) || bench["unstable"] == true && (varies(size) || is_disturbed())
}

/// Returns whether a size's figure of a device is the host's, which made its calls more slowly than the device did their work: runs can agree on that.
fn is_behind(bench: &Value, size: &Value) -> bool {
    bench["clock"] != "host" && SUBJECTS.iter().any(|who| spread(&size[who]).is_some_and(|spread| spread > SPREAD))
}

/// Returns how many times as long a call at the 80th percentile takes as one at the 20th.
fn spread(figure: &Value) -> Option<f64> {
    let (low, high) = figure["p20"].as_f64().zip(figure["p80"].as_f64())?;
    Some(high / low)
}

fn sizes_of(bench: &Value) -> impl Iterator<Item = (&String, &Value)> {
    bench["sizes"].as_object().into_iter().flatten()
}
