//! What ran a measurement, and what that was doing meanwhile.
//!
//! It does not know how that is found out, nor which of it makes figures unreliable.

use serde::{Deserialize, Serialize};
use serde_json::Number;

/// What ran a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MeasuredDevice {
    /// `interpreter`, or the model's id.
    pub model: String,
    /// Its name.
    pub name: Option<String>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// Its compute capability.
    pub capability: Option<Vec<i64>>,
}

/// What a device was doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Snapshot {
    /// The clock of its multiprocessors.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub sm_clock_mhz: Option<Number>,
    /// The clock of its memory.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub memory_clock_mhz: Option<Number>,
    /// Its temperature.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub temperature_c: Option<Number>,
    /// Its power.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub power_w: Option<Number>,
    /// Its driver.
    pub driver: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// What slows it down.
    pub throttle: Option<Vec<String>>,
    /// How many processes of others use it.
    pub other_processes: Option<u64>,
}

/// What a device was doing before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Telemetry {
    /// Before.
    pub before: Option<Snapshot>,
    /// After.
    pub after: Option<Snapshot>,
}
