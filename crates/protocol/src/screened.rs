//! What a screening says: whether a candidate may be faster than the kernel that it is to replace; and how two versions of a kernel compare at each size.
//!
//! It does not know clocks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Binding, Snapshot};

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

/// What two versions of a kernel are to each other at a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AgainstVerdict {
    /// The present one is faster.
    Faster,
    /// It is slower.
    Slower,
    /// They differ by less than a hundredth.
    Same,
    /// The last pair did not tell.
    #[default]
    Open,
}

/// The document `against`: two versions of a kernel, in pairs of runs. Ratios are the other version's time over the present one's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Against {
    /// `cuda-events` or `host`.
    pub clock: String,
    /// The device class.
    pub model: String,
    /// How many pairs of runs were made at each size.
    pub pairs: u64,
    /// How often the interval of a size may miss.
    pub error: f64,
    /// The sizes.
    pub sizes: BTreeMap<String, AgainstSize>,
    /// Seconds from the first call to the end, which the device was held for.
    pub device_s: f64,
    /// What the device was doing.
    pub telemetry: Option<Snapshot>,
}

/// Two versions of a kernel at a size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgainstSize {
    /// The lengths of its dims.
    pub binding: Binding,
    /// Its dtype.
    pub dtype: String,
    /// The mean time of the present version's runs, in ms.
    pub present_ms: f64,
    /// That of the other's.
    pub other_ms: f64,
    /// The geometric mean of the ratios of the pairs.
    pub ratio: f64,
    /// The lower bound of its interval.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// What the interval tells.
    pub verdict: AgainstVerdict,
}
