//! The page of a build: the selections of all ops, and what a summary template and a terminal see of them.
//!
//! It chooses nothing and measures nothing. Times are sums that it is given.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use t2t_protocol::{Calibration, MeasuredDevice};

use crate::figures;
use crate::rank::{Found, Published, PublishedPlace, Selection};
use crate::render::ceilings::{self, Rates};

mod closing;

pub use self::closing::closing_table;

/// All that the summary of a build is made from.
#[derive(Clone, Debug)]
pub struct BuildPage<'a> {
    /// The ops, in the order of names.
    pub ops: Vec<&'a OpSummary>,
    /// Workspace paths of the files that the build made for people, in the order of names.
    pub files: Vec<String>,
    /// The document `calibration`.
    pub calibration: &'a Found<Calibration>,
    /// The sum over the records it stands on: how long actions ran.
    pub wall: Duration,
    /// The sum over the records it stands on: how long actions held a device.
    pub device: Duration,
}

/// What a page of many ops says of one: little, so that it can be kept and told again without the documents that it was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpSummary {
    row: OpRow,
    /// Whether Triton's interpreter ran its kernels.
    is_interpreted: bool,
    /// The device that measured it, as JSON; none where there was none.
    device: Option<String>,
}

/// What a summary template sees.
#[derive(Debug, Serialize)]
pub(crate) struct SummaryContext<'a> {
    ops: Vec<&'a OpRow>,
    interpreter: bool,
    /// By which device what is published of the ops was, where any is shown.
    published: Option<&'a PublishedPlace>,
    device: Option<MeasuredDevice>,
    ceilings: Option<Rates>,
    speedups: Speedups,
    kernels: Kernels,
    files: &'a [String],
    wall_ms: u64,
    device_ms: u64,
}

/// One op in the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpRow {
    op: String,
    chosen: Option<String>,
    /// How long the interpreter took for one call at each size, in all; none on a device.
    interpreter_ms: Option<f64>,
    final_ms: Option<f64>,
    torch_final_ms: Option<f64>,
    speedup: Option<f64>,
    geomean_speedup: Option<f64>,
    against_torch: Option<String>,
    comparable: bool,
    success: bool,
    unstable: bool,
    ties: Vec<String>,
    passed: u64,
    rejected: u64,
    not_judged: u64,
    skipped: u64,
    /// How many attempts a generator made at its kernels.
    attempts: u64,
    why: String,
    note: String,
    /// What is published of its kernels by a device, where the interpreter ran them.
    published: Option<PublishedRow>,
}

/// What a device's published results say of an op.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PublishedRow {
    place: PublishedPlace,
    chosen: Option<String>,
    final_ms: Option<f64>,
    torch_final_ms: Option<f64>,
    speedup: Option<f64>,
    geomean_speedup: Option<f64>,
    note: String,
}

/// Speedups over the ops whose figures say something about a GPU.
#[derive(Debug, Serialize)]
struct Speedups {
    compared: usize,
    successes: usize,
    mean: Option<f64>,
    geomean: Option<f64>,
    success_rate: Option<f64>,
}

/// Variants over all ops. What was not judged counts in no rate; what was not reached, as where it does not compile, is not right.
#[derive(Debug, Serialize)]
struct Kernels {
    passed: u64,
    rejected: u64,
    not_judged: u64,
    skipped: u64,
    attempts: u64,
    pass_rate: Option<f64>,
}

impl BuildPage<'_> {
    /// Returns what a template sees. docs/reference/log-templates.md describes it.
    #[must_use]
    pub(crate) fn context(&self) -> SummaryContext<'_> {
        let ops: Vec<&OpRow> = self.ops.iter().map(|op| &op.row).collect();
        let device = self.ops.iter().find_map(|op| op.device.as_deref());
        SummaryContext {
            interpreter: is_interpreted(&self.ops),
            published: self.ops.iter().find_map(|op| op.row.published.as_ref()).map(|row| &row.place),
            device: device.and_then(|device| serde_json::from_str(device).ok()),
            ceilings: self.calibration.document().and_then(ceilings::rates),
            speedups: Speedups::of(&ops),
            kernels: Kernels::of(&ops),
            ops,
            files: &self.files,
            wall_ms: milliseconds(self.wall),
            device_ms: milliseconds(self.device),
        }
    }
}

impl PublishedRow {
    fn of(published: &Published) -> Self {
        let figures = published.figures.as_ref();
        Self {
            place: published.place.clone(),
            chosen: published.chosen.clone(),
            final_ms: figures.map(|figures| figures.final_ms),
            torch_final_ms: figures.and_then(|figures| figures.torch_final_ms),
            speedup: figures.and_then(|figures| figures.speedup),
            geomean_speedup: figures.and_then(|figures| figures.geomean_speedup),
            note: published_note(published),
        }
    }
}

impl OpSummary {
    /// Returns what is said of `op`, by its document `selection`, or by why there is none.
    #[must_use]
    pub fn of(op: &str, found: &Found<Selection>) -> Self {
        let selection = found.document();
        let device = selection.and_then(|selection| selection.device.as_ref());
        Self {
            row: row(op, found),
            is_interpreted: selection.is_some_and(|selection| selection.interpreter),
            device: device.and_then(|device| serde_json::to_string(device).ok()),
        }
    }

    /// Returns the same of an op whose kernels a generator made in so many attempts.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u64) -> Self {
        self.row.attempts = attempts;
        self
    }

    /// Returns the op.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.row.op
    }
}

fn row(op: &str, found: &Found<Selection>) -> OpRow {
    let selection = found.document();
    let figures = selection.and_then(|selection| selection.figures.as_ref());
    let counts = selection.map(|selection| selection.counts).unwrap_or_default();
    let ties: Vec<&str> = selection.into_iter().flat_map(|selection| &selection.ties).map(String::as_str).collect();
    OpRow {
        op: op.to_owned(),
        chosen: selection.and_then(|selection| selection.chosen.clone()),
        interpreter_ms: selection.and_then(interpreter_ms),
        final_ms: figures.map(|figures| figures.final_ms),
        torch_final_ms: figures.and_then(|figures| figures.torch_final_ms),
        speedup: figures.and_then(|figures| figures.speedup),
        geomean_speedup: figures.and_then(|figures| figures.geomean_speedup),
        against_torch: selection.and_then(|selection| selection.against_torch.clone()),
        comparable: selection.is_some_and(|selection| selection.comparable),
        success: selection.is_some_and(|selection| selection.success),
        unstable: figures.is_some_and(|figures| figures.unstable),
        passed: counts.passed as u64,
        rejected: counts.rejected as u64,
        not_judged: counts.not_judged as u64,
        skipped: (counts.skipped + counts.lost) as u64,
        attempts: 0,
        why: selection.map_or_else(|| missing(found), |selection| selection.why.clone()),
        note: selection.map_or_else(|| missing(found), |selection| note(selection, &ties)),
        ties: ties.into_iter().map(str::to_owned).collect(),
        published: selection.and_then(|selection| selection.published.as_ref()).map(PublishedRow::of),
    }
}

/// Returns what a reader must know beside the figures.
fn note(selection: &Selection, ties: &[&str]) -> String {
    let mut notes = Vec::new();
    if selection.chosen.is_none() {
        notes.push(selection.why.clone());
    }
    notes.extend(selection.note.clone().filter(|_| !selection.interpreter));
    notes.extend(compared(selection.against_torch.as_deref(), ties));
    let chosen = selection.variants.iter().find(|one| Some(&one.name) == selection.chosen.as_ref());
    if let Some(chosen) = chosen.filter(|chosen| !chosen.allowed.is_empty()) {
        notes.push(format!("torch computes {} for it", chosen.allowed.join(", ")));
    }
    if selection.figures.as_ref().is_some_and(|figures| figures.unstable) {
        notes.push("unstable".to_owned());
    }
    notes.join("; ")
}

/// Returns what a reader must know beside published figures.
fn published_note(published: &Published) -> String {
    let ties: Vec<&str> = published.ties.iter().map(String::as_str).collect();
    let unstable = published.figures.as_ref().is_some_and(|figures| figures.unstable).then(|| "unstable".to_owned());
    let compared = compared(published.against_torch.as_deref(), &ties);
    published.why.clone().into_iter().chain(compared).chain(unstable).collect::<Vec<_>>().join("; ")
}

/// Returns how the chosen kernel compares with torch and with other kernels.
fn compared(against_torch: Option<&str>, ties: &[&str]) -> Vec<String> {
    let torch = match against_torch {
        Some("ties") => Some("ties with torch".to_owned()),
        Some("slower") => Some("slower than torch".to_owned()),
        _ => None,
    };
    let others = (!ties.is_empty()).then(|| format!("ties with {}", ties.join(", ")));
    torch.into_iter().chain(others).collect()
}

/// Returns the sum of the times of all sizes, none where there is no time.
fn interpreter_ms(selection: &Selection) -> Option<f64> {
    let times: Vec<f64> = selection.interpreter_ms.as_ref()?.values().copied().flatten().collect();
    (!times.is_empty()).then(|| times.iter().sum())
}

fn time(ms: f64) -> String {
    figures::time(Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default())
}

fn missing(found: &Found<Selection>) -> String {
    found.reason().unwrap_or_else(|| "no reason is recorded".to_owned())
}

fn is_interpreted(ops: &[&OpSummary]) -> bool {
    ops.iter().any(|op| op.is_interpreted)
}

impl Speedups {
    fn of(ops: &[&OpRow]) -> Self {
        let compared: Vec<f64> = ops.iter().filter(|row| row.comparable).filter_map(|row| row.speedup).collect();
        let successes = ops.iter().filter(|row| row.success).count();
        let logarithms: Vec<f64> = compared.iter().map(|speedup| speedup.ln()).collect();
        Self {
            successes,
            mean: mean(&compared),
            geomean: mean(&logarithms).map(f64::exp),
            success_rate: mean(&compared).map(|_| share(successes as u64, compared.len() as u64)),
            compared: compared.len(),
        }
    }
}

impl Kernels {
    fn of(ops: &[&OpRow]) -> Self {
        let sum = |count: fn(&OpRow) -> u64| ops.iter().map(|row| count(row)).sum::<u64>();
        let (passed, rejected, skipped) = (sum(|row| row.passed), sum(|row| row.rejected), sum(|row| row.skipped));
        let judged = passed + rejected + skipped;
        Self {
            passed,
            rejected,
            not_judged: sum(|row| row.not_judged),
            skipped,
            attempts: sum(|row| row.attempts),
            pass_rate: (judged > 0).then(|| share(passed, judged)),
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer kernels than 2^52")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
