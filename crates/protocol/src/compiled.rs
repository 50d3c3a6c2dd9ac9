//! What a compile says: the launches, the kernels and what they use, and what Triton's cache had.
//!
//! It does not know how a kernel is compiled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::DroppedConfig;

/// What a device will launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Launches {
    /// The devices that were compiled for.
    pub targets: Vec<String>,
    /// Whether that is all.
    pub coverage: Coverage,
    /// Why it is not.
    pub reasons: Vec<String>,
    /// `all`, or `first` where one configuration of an autotuned kernel was compiled.
    pub configurations: String,
    /// Whether a kernel is autotuned; of a document that does not say so it may be.
    #[serde(default = "may_be")]
    pub autotuned: bool,
    /// The launches.
    pub launches: Vec<Launch>,
    /// Configurations that a device cannot hold.
    pub dropped: Vec<DroppedConfig>,
}

fn may_be() -> bool {
    true
}

/// Whether all launches are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// All are.
    #[default]
    Full,
    /// Some are not.
    Partial,
}

/// One launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Launch {
    /// The device.
    pub target: String,
    /// The case.
    pub case: String,
    /// The kernel.
    pub kernel: String,
    /// The configuration of an autotuned kernel.
    pub config: Option<BTreeMap<String, Value>>,
    /// The constants.
    pub constants: BTreeMap<String, Value>,
    /// The grid.
    pub grid: Option<Vec<i64>>,
    /// The folder of the compiled kernel.
    pub compiled: String,
}

/// What compiled kernels use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Resources {
    /// The kernels.
    pub kernels: Vec<CompiledKernel>,
    /// What compiled them, where that is not Triton.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub compiler: Option<String>,
}

/// A compiled kernel, with the configuration and the constants of its first launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CompiledKernel {
    /// Its folder.
    pub compiled: String,
    /// The device.
    pub target: String,
    /// The kernel.
    pub kernel: String,
    /// Its configuration.
    pub config: Option<BTreeMap<String, Value>>,
    /// Its constants.
    pub constants: BTreeMap<String, Value>,
    /// Warps of a program.
    pub num_warps: u64,
    /// Stages of its loops.
    pub num_stages: u64,
    /// Registers of a thread.
    pub registers: Option<u64>,
    /// Bytes that a thread spills.
    pub spills: Option<u64>,
    /// Bytes of shared memory.
    pub shared: u64,
    /// Its stages, by the ending of their files.
    pub stages: BTreeMap<String, String>,
}

/// What Triton's cache had, and what was compiled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TritonCache {
    /// How many kernels it had.
    pub hits: u64,
    /// Those that were compiled.
    pub misses: Vec<String>,
    /// The same of Triton's C modules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Misses"))]
    pub launchers: Option<Misses>,
    /// Why some launchers could not be made: of a compile alone.
    #[serde(default, deserialize_with = "crate::read::told", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub launchers_missing: Option<Option<String>>,
}

/// What a cache had, and what was compiled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Misses {
    /// How many it had.
    pub hits: u64,
    /// Those that were compiled.
    pub misses: Vec<String>,
}
