//! What measurements of one op say: benches, baselines, tunes.
//!
//! Times are in milliseconds unless a name says otherwise. It does not know clocks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Binding, DroppedConfig, Figure, MeasuredDevice, Protocol, Stopped, Telemetry, TritonCache};

/// The figures of a variant beside torch's. One on the interpreter has `clock`, `protocol`, `device`, `judged` and `sizes` alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Bench {
    /// `cuda-events` or `host`.
    pub clock: String,
    /// How a size was measured.
    pub protocol: Protocol,
    /// What ran it.
    pub device: MeasuredDevice,
    /// The sizes.
    pub sizes: BTreeMap<String, BenchSize>,
    /// The mean over the sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub final_ms: Option<f64>,
    /// Torch's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub torch_final_ms: Option<f64>,
    /// Their ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub speedup: Option<f64>,
    /// The geometric mean of the ratios by size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub geomean_speedup: Option<f64>,
    /// The host's time of a call, in µs.
    #[serde(default, deserialize_with = "crate::read::told", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub host_us: Option<Option<f64>>,
    /// What disturbed the device, before figures are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub disturbed: Option<Vec<String>>,
    /// Whether the figures cannot be relied on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "bool"))]
    pub unstable: Option<bool>,
    /// Why.
    #[serde(default, deserialize_with = "crate::read::told", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub why_unstable: Option<Option<String>>,
    /// Whether something was measured again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "bool"))]
    pub remeasured: Option<bool>,
    /// Of each size, which run was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, JudgedSize>"))]
    pub judged: Option<BTreeMap<String, JudgedSize>>,
    /// What the device was doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Telemetry"))]
    pub telemetry: Option<Telemetry>,
    /// What Triton's cache had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "TritonCache"))]
    pub triton_cache: Option<TritonCache>,
}

/// One size of a bench.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BenchSize {
    /// The lengths of its dims.
    pub binding: Binding,
    /// Its dtype.
    pub dtype: String,
    /// The configuration of each autotuned kernel, by its name.
    pub config: Option<BTreeMap<String, Value>>,
    /// The variant's figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Figure"))]
    pub variant: Option<Figure>,
    /// Torch's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Figure"))]
    pub torch: Option<Figure>,
    /// How long a call took on the interpreter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub interpreter_ms: Option<f64>,
    /// Why measuring ended, where the number of runs was not fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Stopped"))]
    pub stopped: Option<Stopped>,
}

/// What became of an output of a timed call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JudgedSize {
    /// The run.
    pub run: Option<u64>,
    /// Its verdict; `not-judged` only beside a `failure`.
    pub verdict: crate::CaseVerdict,
}

/// The figures of torch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Baseline {
    /// `cuda-events` or `host`.
    pub clock: String,
    /// How a size was measured.
    pub protocol: Protocol,
    /// What ran it.
    pub device: MeasuredDevice,
    /// The sizes.
    pub sizes: BTreeMap<String, BaselineSize>,
    /// The mean over the sizes of each baseline.
    pub finals: BTreeMap<String, Option<f64>>,
    /// How long torch took to compile.
    pub compile_ms: Option<f64>,
    /// Why a baseline has no figure.
    pub reasons: BTreeMap<String, String>,
    /// Whether the figures cannot be relied on.
    pub unstable: bool,
    /// Why.
    pub why_unstable: Option<String>,
    /// What the device was doing.
    pub telemetry: Telemetry,
}

/// One size of a baseline. One that was not asked for is absent, one that torch refuses is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BaselineSize {
    /// The lengths of its dims.
    pub binding: Binding,
    /// Its dtype.
    pub dtype: String,
    /// That of eager torch.
    #[serde(default, deserialize_with = "crate::read::told", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Figure>"))]
    pub torch: Option<Option<Figure>>,
    /// That of what torch compiled.
    #[serde(default, deserialize_with = "crate::read::told", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Figure>"))]
    #[serde(rename = "torch.compile")]
    pub compiled: Option<Option<Figure>>,
    /// Those of the other baselines, by name: of torch.compile in its other modes, and of functions; null where one has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, Option<Figure>>,
    /// Why measuring ended, where the number of runs was not fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Stopped"))]
    pub stopped: Option<Stopped>,
}

impl BaselineSize {
    /// Returns the figures of those that were timed, by name.
    pub fn figures(&self) -> impl Iterator<Item = (&str, &Figure)> {
        let all = [("torch", &self.torch), ("torch.compile", &self.compiled)];
        let own = all.into_iter().filter_map(|(name, figure)| Some((name, figure.as_ref()?.as_ref()?)));
        own.chain(self.others.iter().filter_map(|(name, figure)| Some((name.as_str(), figure.as_ref()?))))
    }

    /// Returns the figure of the baseline of this name, where it has one.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures().find_map(|(own, figure)| (own == name).then_some(figure))
    }
}

/// The configurations that were fastest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tune {
    /// The device's model.
    pub device: String,
    /// A choice a kernel and key; empty where nothing is autotuned.
    pub choices: Vec<Choice>,
    /// Configurations that the device cannot hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<DroppedConfig>"))]
    pub dropped: Option<Vec<DroppedConfig>>,
    /// What Triton's cache had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "TritonCache"))]
    pub triton_cache: Option<TritonCache>,
}

/// The fastest configuration of a kernel at a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Choice {
    /// The kernel.
    pub kernel: String,
    /// What the autotuner chooses by.
    pub key: Vec<String>,
    /// The configuration.
    pub config: BTreeMap<String, Value>,
    /// What the others took.
    pub timings: Vec<Timing>,
}

/// A configuration, and how long a launch took with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timing(pub BTreeMap<String, Value>, pub f64);
