//! The arguments of the harness's functions: what each phase, and each child of it, is told.
//!
//! It does not know how a child is started, nor what it replies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Binding, CandidateEnd, Declaration, Protocol, Variant};

/// Where kernel code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// In Triton's interpreter.
    Interpreter,
    /// On a CUDA device.
    Cuda,
    /// Nowhere: it is compiled.
    Compile,
}

/// A row of the device table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceRow {
    /// The device's name, as its driver has it.
    pub name: String,
    /// The compute capability: major, minor.
    pub capability: [u64; 2],
    /// How many multiprocessors it has.
    pub multiprocessors: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of shared memory that a block may have.
    pub shared_memory: u64,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_memory_per_multiprocessor: u64,
    /// Bytes of the L2 cache.
    pub l2: u64,
}

/// A row of the device table, with its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceTarget {
    /// The model's id, as `nvidia-h200`.
    pub id: String,
    /// The row.
    #[serde(flatten)]
    pub row: DeviceRow,
}

/// What every child of an action is told, whether its function reads it or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Common {
    /// The workspace, absolute.
    pub root: String,
    /// Absolute: the child's working directory, `TMPDIR`, and the only folder it may write.
    pub scratch: String,
    /// Where kernel code runs.
    pub lane: Lane,
    /// The device class: `interpreter`, or the model's id.
    pub model: String,
    /// The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<DeviceRow>"))]
    pub devices: Vec<Value>,
    /// Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks
    /// for it; empty but there and in a compile.
    pub warm: Vec<String>,
    /// How long the action may take, in seconds.
    pub deadline_s: f64,
    /// Whether the file `quiet` will say when nothing disturbs a measurement.
    pub is_told_of_quiet: bool,
    /// Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not.
    pub timed_until: Option<u64>,
}

/// What the children of an action are told of its op. That of a calibration has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfOp {
    /// The op.
    pub op: Declaration,
}

/// What the children of an action are told of its variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfVariant {
    /// The variant.
    pub variant: Variant,
}

/// What an analysis is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfAnalyze {
    /// The absolute path of the op catalogue.
    pub catalogue: String,
}

/// What a compile is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfCompile {
    /// The devices that are compiled for.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<DeviceTarget>"))]
    pub targets: Vec<Value>,
    /// Whether every configuration of an autotuned kernel is compiled, or the first alone.
    pub is_every: bool,
    /// How many processes may compile at once, at least 1. No document depends on it.
    pub processes: u64,
}

/// What the compile of a variant in CUDA C++ is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfCompileCuda {
    /// What is compiled for, as in `sm_90a`; `compute_90` is PTX, which drivers compile.
    pub architectures: Vec<String>,
    /// The `.cu` and what it includes, relative to the workspace.
    pub files: Vec<String>,
    /// How many processes may compile at once, at least 1. No document depends on it.
    pub processes: u64,
}

/// What the children of a check are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfCheck {
    /// What values of inputs depend on.
    pub salt: String,
}

/// What whatever times is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfTiming {
    /// How a size is measured.
    pub protocol: Protocol,
}

/// What the children of a bench are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfBench {
    /// How a size is measured.
    pub protocol: Protocol,
    /// The document `tune`, or null.
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::Tune>"))]
    pub tune: Value,
}

/// What a baseline is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfBaseline {
    /// How a size is measured.
    pub protocol: Protocol,
    /// What of torch is timed.
    pub baselines: Vec<String>,
    /// The functions that are timed beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<BaselineFunction>,
}

/// A function that is timed in torch's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineFunction {
    /// What it is called.
    pub name: String,
    /// The Python file that has it, relative to the workspace; absent of one of an installed module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Option<String>,
    /// Its name in the file, or its dotted name with that of its module.
    pub function: String,
    /// Why it is not called, where a process that called it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub ended: Option<String>,
}

/// What a sweep is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfSweep {
    /// How a size is measured.
    pub protocol: Protocol,
    /// What of torch is timed.
    pub baselines: Vec<String>,
    /// The variants that are timed.
    pub variants: Vec<Variant>,
}

/// What a screening is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfScreen {
    /// How a size is measured by a bench: a run of a screening is a part of one.
    pub protocol: Protocol,
    /// The kernel that is to be replaced.
    pub incumbent: Variant,
    /// The kernel that may take its place.
    pub candidate: Variant,
    /// The document `tune` of the incumbent, or null.
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::Tune>"))]
    pub tune: Value,
}

/// What the writer of a case is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfRepro {
    /// What values of inputs depend on.
    pub salt: String,
    /// The name of the case; null where only the names are asked for.
    pub case: Option<String>,
    /// The constants of the kernel's first launch.
    pub constants: BTreeMap<String, i64>,
    /// The smallest integers of its autotuner's configurations, or null.
    pub least: Option<BTreeMap<String, i64>>,
    /// The cases that reach what measured sizes launch.
    pub reached: Vec<Reached>,
    /// The lengths that cases had, by name.
    pub bindings: BTreeMap<String, Binding>,
}

/// A case that reaches what a measured size launches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reached {
    /// The measured size.
    pub size: String,
    /// The case's own, smaller one.
    pub binding: Binding,
}

/// What the children of a phase are told beside [`Common`], the op and the variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Part {
    /// Nothing.
    Calibrate {},
    /// An analysis.
    Analyze(OfAnalyze),
    /// A compile.
    Compile(OfCompile),
    /// A compile of CUDA C++.
    CompileCuda(OfCompileCuda),
    /// A check.
    Check(OfCheck),
    /// A tune.
    Tune(OfTiming),
    /// A bench.
    Bench(OfBench),
    /// A baseline.
    Baseline(OfBaseline),
    /// A sweep, which is no action's.
    Sweep(OfSweep),
    /// A screening, which is no action's.
    Screen(Box<OfScreen>),
    /// A case that is written, which is no action's.
    Repro(OfRepro),
}

/// What one child is told beside that: where the others of its action have their folders, and how they ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum More {
    /// It is the only one, or the first.
    Nothing {},
    /// What runs a kernel to be judged.
    Candidate(ToCandidate),
    /// What judges it.
    Judge(Box<ToJudge>),
    /// What judges while it runs.
    Follow(ToFollow),
    /// What judges the outputs of timed calls.
    Sample(ToSample),
    /// What writes a case.
    Repro(ToRepro),
    /// What gets ready for a candidate.
    Rehearsal(ToRehearse),
}

/// What a candidate is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToCandidate {
    /// The folder made by prepare, or null.
    pub inputs: Option<String>,
}

/// What a child that gets ready for a candidate is told of the last one of the same variant, for which cases were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToRehearse {
    /// The constants of the kernel's first launch.
    pub constants: BTreeMap<String, i64>,
    /// The smallest integers of its autotuner's configurations, or null.
    pub least: Option<BTreeMap<String, i64>>,
    /// The cases that reach what measured sizes launch.
    pub reached: Vec<Reached>,
}

/// What a judge is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToJudge {
    /// The folder made by prepare, or null.
    pub prepared: Option<String>,
    /// The folder of the candidate.
    pub candidate: String,
    /// Tells this candidate from another that ran in the same folder.
    pub attempt: u64,
    /// How the candidate's child ended.
    pub end: CandidateEnd,
}

/// What a judge is told that judges while the candidate runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToFollow {
    /// Always null: the op has no cases of its own.
    pub prepared: Option<String>,
    /// The folder of the candidate.
    pub candidate: String,
    /// Tells this candidate from another that ran in the same folder.
    pub attempt: u64,
}

/// What the judge of a bench is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToSample {
    /// The folder of the bench.
    pub sample: String,
    /// The document of the bench, without figures.
    #[cfg_attr(feature = "schema", schemars(with = "crate::Bench"))]
    pub bench: Value,
}

/// What the writer of a case is told of other folders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToRepro {
    /// The folder made by prepare, or null.
    pub prepared: Option<String>,
}

/// All that one child is told: the arguments of its function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arguments {
    /// What every child is told.
    #[serde(flatten)]
    pub common: Common,
    /// The op; none of a calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<Declaration>,
    /// The variant, where kernel code is involved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
    /// What the children of its phase are told.
    #[serde(flatten)]
    pub part: Part,
    /// What this one is.
    #[serde(flatten)]
    pub more: More,
}
