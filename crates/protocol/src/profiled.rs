//! What a profile says: what the device did for a few calls of a variant at one size, launch by launch.
//!
//! Times are in microseconds. It holds records and no statistics. It does not know what bounds a kernel.

use serde::{Deserialize, Serialize};

use crate::{Binding, Snapshot};

/// The document `profile`: the work of the device, as CUPTI recorded it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Profile {
    /// What recorded it: `cupti`.
    pub profiler: String,
    /// The version of torch, whose profiler reads CUPTI's records.
    pub version: String,
    /// The device class.
    pub model: String,
    /// The name of the size.
    pub size: String,
    /// The lengths of its dims.
    pub binding: Binding,
    /// Its dtype.
    pub dtype: String,
    /// The host's time of a call, the device not waited for.
    pub host_us: f64,
    /// What a multiprocessor holds.
    pub limits: ProfileLimits,
    /// Of each call what the device did, in the order of its beginning.
    pub calls: Vec<Vec<ProfiledLaunch>>,
    /// What the device was doing.
    pub telemetry: Option<Snapshot>,
}

/// What a device holds, as its driver says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfileLimits {
    /// The compute capability: major, minor.
    pub capability: [u64; 2],
    /// How many multiprocessors it has.
    pub multiprocessors: u64,
    /// Threads of a multiprocessor.
    pub threads: u64,
    /// Registers of a multiprocessor.
    pub registers: u64,
    /// Bytes of shared memory of a multiprocessor.
    pub shared: u64,
}

/// One piece of work of the device: a launch, or a copy or a fill of memory, which has no grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfiledLaunch {
    /// The name of the kernel.
    pub kernel: String,
    /// How long it took.
    pub us: f64,
    /// Programs along each axis.
    pub grid: Option<[u64; 3]>,
    /// Threads of a program along each axis.
    pub block: Option<[u64; 3]>,
    /// Registers of a thread.
    pub registers: Option<u64>,
    /// Bytes of shared memory of a program.
    pub shared: Option<u64>,
}
