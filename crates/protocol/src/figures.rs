//! Figures: the times of one subject at one size, and how measuring it ended.
//!
//! Times are in milliseconds unless a name says otherwise. It does not know clocks, nor what was timed.

use serde::{Deserialize, Serialize};

/// The times of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The 20th percentile.
    pub p20: f64,
    /// The 80th percentile.
    pub p80: f64,
}

/// One size of one subject: the mean over the runs of each of their facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// The runs.
    pub runs: Vec<Run>,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The 20th percentile.
    pub p20: f64,
    /// The 80th percentile.
    pub p80: f64,
    /// The coefficient of variation of the runs' means.
    pub cv: f64,
    /// How many runs were made in the place of an interrupted one.
    #[serde(default)]
    pub repeated: u64,
    /// Half the width of the mean's interval, where measuring ended by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub within: Option<f64>,
    /// The host's time of a call in µs, of what torch compiled on a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub host_us: Option<f64>,
    /// How much of it clearing the cache hides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub hidden_us: Option<f64>,
}

/// The end of a size whose number of runs was not fixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stopped {
    /// How many runs, each a tenth of one of the protocol, were made of each subject.
    pub runs: u64,
    /// How many there would have been at most.
    pub most: u64,
    /// Why there were no more.
    pub why: StopReason,
}

/// Why a size was measured enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// All figures are known closely.
    Precise,
    /// It is decided which subject is faster.
    Decided,
    /// Runs vary so much that all of them would neither make a figure known closely nor decide.
    Varies,
    /// No run was left.
    Runs,
}
