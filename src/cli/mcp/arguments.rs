//! What the tools take. The comments are what a client shows of each argument.
//!
//! It does not know what tools do.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// An op.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfOp {
    /// The op's name in ops.yaml.
    pub(super) op: String,
}

/// An op, or all of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfLog {
    /// The op's name in ops.yaml; without one the summary of all ops.
    pub(super) op: Option<String>,
}

/// A variant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfVariant {
    /// The op's name in ops.yaml.
    pub(super) op: String,
    /// The variant's name, as `v1_baseline`.
    pub(super) variant: String,
}

/// Names of torch operations.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfNames {
    /// Torch operations, as `softmax`, `F.gelu`, `torch.nn.functional.rms_norm`.
    pub(super) names: Vec<String>,
    /// Only these variants; all four without.
    #[serde(default)]
    pub(super) variants: Vec<String>,
}

/// An entry of ops.yaml.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfEntry {
    /// One entry of `ops`, as YAML: the op's name as its key, its fields below it. The resource on ops.yaml says which fields there are.
    pub(super) entry: String,
}

/// One more variant of an op.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfNew {
    /// The op's name in ops.yaml.
    pub(super) op: String,
    /// What the variant is to be called, as `v5_split`.
    pub(super) variant: String,
    /// The variant that it begins as a copy of; the first one without.
    pub(super) from: Option<String>,
}

/// A kernel for a variant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfKernel {
    /// The op's name in ops.yaml.
    pub(super) op: String,
    /// The variant's name, as `v1_baseline`.
    pub(super) variant: String,
    /// The whole kernel file: Python.
    pub(super) source: String,
    /// Put it over a file that neither this tool nor a generator wrote; what was there is kept below cache/replaced.
    #[serde(default)]
    pub(super) replace: bool,
    /// Whether it is also measured where it is right; else it is compiled and checked alone.
    #[serde(default = "yes")]
    pub(super) measure: bool,
}

fn yes() -> bool {
    true
}

/// Targets of a build.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfTargets {
    /// As `softmax`, `softmax/v2_tiling`, `softmax:check`; everything without.
    #[serde(default)]
    pub(super) targets: Vec<String>,
}

/// What is to be explained.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfExplanation {
    /// Targets, as `softmax/v2_tiling:check`, or classes of rejections, as `mismatch`.
    pub(super) targets: Vec<String>,
}

/// A stage of what the compiler made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfStage {
    /// The op's name in ops.yaml.
    pub(super) op: String,
    /// The variant's name, as `v1_baseline`.
    pub(super) variant: String,
    /// Which stage.
    #[serde(default)]
    pub(super) stage: Stage,
    /// Only the kernel of this name.
    pub(super) kernel: Option<String>,
    /// The first line to return, from 1.
    #[serde(default = "first")]
    pub(super) from_line: usize,
    /// How many lines to return at most.
    #[serde(default = "many")]
    pub(super) lines: usize,
}

fn first() -> usize {
    1
}

fn many() -> usize {
    400
}

/// The stages that are text.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stage {
    /// Triton's own.
    Ttir,
    /// With layouts.
    Ttgir,
    /// LLVM's.
    Llir,
    /// NVIDIA's assembly.
    #[default]
    Ptx,
    /// Machine code as text, of CUDA C++.
    Sass,
}

impl Stage {
    /// Returns the name that the command line knows.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ttir => "ttir",
            Self::Ttgir => "ttgir",
            Self::Llir => "llir",
            Self::Ptx => "ptx",
            Self::Sass => "sass",
        }
    }
}
