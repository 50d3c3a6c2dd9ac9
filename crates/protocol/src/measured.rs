//! What measurements say: benches, baselines, tunes, the calibration, sweeps.
//!
//! Times are in milliseconds unless a name says otherwise. It does not know clocks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{Binding, DroppedConfig, Protocol, TritonCache};

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

impl BaselineSize {
    /// Returns the figures of those that were timed, by name.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, &Figure)> {
        let all = [("torch", &self.torch), ("torch.compile", &self.compiled)];
        all.into_iter().filter_map(|(name, figure)| Some((name, figure.as_ref()?.as_ref()?)))
    }

    /// Returns the figure of the baseline of this name, where it has one.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures().find_map(|(own, figure)| (own == name).then_some(figure))
    }
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
    /// Why measuring ended, where the number of runs was not fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Stopped"))]
    pub stopped: Option<Stopped>,
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
