//! What a calibration says: what a device does at most.
//!
//! Times are in milliseconds. It does not know which ops such rates bound.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{MeasuredDevice, Protocol, Telemetry};

/// What a device does at most, in figures whose rates are those of the median.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Calibration {
    /// `cuda-events`.
    pub clock: String,
    /// How each was measured.
    pub protocol: Protocol,
    /// What ran it.
    pub device: MeasuredDevice,
    /// Copies of rising size.
    pub copies: Vec<CopyFigure>,
    /// The ceiling: the rate of the copy of 1 GiB.
    pub copy_gb_per_s: f64,
    /// Products of square matrices.
    pub products: BTreeMap<String, Option<ProductFigure>>,
    /// Why one has no figure.
    pub reasons: BTreeMap<String, String>,
    /// Whether the figures cannot be relied on.
    pub unstable: bool,
    /// Why.
    pub why_unstable: Option<String>,
    /// What the device was doing.
    pub telemetry: Telemetry,
}

/// A copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyFigure {
    /// Bytes read plus bytes written.
    pub bytes: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The 20th percentile.
    pub p20: f64,
    /// The 80th percentile.
    pub p80: f64,
    /// Its rate.
    pub gb_per_s: f64,
}

/// A product of square matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProductFigure {
    /// Their side.
    pub side: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The 20th percentile.
    pub p20: f64,
    /// The 80th percentile.
    pub p80: f64,
    /// Its rate.
    pub tflop_per_s: f64,
}
