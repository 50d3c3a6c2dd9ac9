//! What a screening says: whether a candidate may be faster than the kernel that it is to replace.
//!
//! It does not know clocks.

use serde::{Deserialize, Serialize};

use crate::Snapshot;

/// Why a screening ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ScreenReason {
    /// The candidate is faster.
    Faster,
    /// It is slower.
    Slower,
    /// It gains too little to be worth a bench.
    NoGain,
    /// The last pair did not tell.
    #[default]
    Pairs,
    /// The device's time was spent before it was clear.
    Time,
}

/// The document `screen`: a candidate beside the kernel that it is to replace. Ratios are the candidate's Final over the incumbent's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Screen {
    /// `cuda-events` or `host`.
    pub clock: String,
    /// The device class.
    pub model: String,
    /// How many pairs of runs were made.
    pub pairs: u64,
    /// Why it ended.
    pub why: ScreenReason,
    /// Whether the candidate is worth a bench.
    pub may_win: bool,
    /// The geometric mean of the ratios of the pairs.
    pub ratio: f64,
    /// The lower bound of its interval; null where one pair was made.
    pub low: Option<f64>,
    /// The upper bound, likewise.
    pub high: Option<f64>,
    /// How often an interval of a screening may miss.
    pub error: f64,
    /// The incumbent's Final of each pair in ms, a sum over the sizes.
    pub incumbent_ms: Vec<f64>,
    /// The candidate's.
    pub candidate_ms: Vec<f64>,
    /// Seconds from the first call to the end, which the device was held for.
    pub device_s: f64,
    /// What the device was doing.
    pub telemetry: Option<Snapshot>,
}
