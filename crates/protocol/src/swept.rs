//! What a sweep says: all variants of an op, timed over many sizes.
//!
//! Times are in milliseconds. It does not know where it is drawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Binding, Protocol, Snapshot};

/// All variants of an op over many sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sweep {
    /// The op.
    pub op: String,
    /// `cuda-events` or `host`.
    pub clock: String,
    /// How a size was measured.
    pub protocol: Protocol,
    /// The device class.
    pub model: String,
    /// `GB/s`, `TFLOP/s`, or `ms in the interpreter`.
    pub unit: String,
    /// Baselines, then variants.
    pub subjects: Vec<String>,
    /// The sizes.
    pub points: Vec<SweepPoint>,
    /// Why one has no figure.
    pub reasons: BTreeMap<String, String>,
    /// What the device was doing.
    pub telemetry: Option<Snapshot>,
}

/// One size of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SweepPoint {
    /// The lengths of its dims.
    pub binding: Binding,
    /// Its dtype.
    pub dtype: String,
    /// Bytes that are read and written at least.
    pub bytes: u64,
    /// Operations of products.
    pub flop: u64,
    /// The times of each subject; null where it could not be called.
    pub ms: BTreeMap<String, Option<SweepTime>>,
    /// Its rate.
    pub rate: BTreeMap<String, Option<f64>>,
}

/// The times of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepTime {
    /// The median.
    pub median: f64,
    /// The 20th percentile.
    pub p20: f64,
    /// The 80th percentile.
    pub p80: f64,
}
