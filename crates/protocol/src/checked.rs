//! What a check says: its verdict, its evidence, and what a candidate tells of itself while it runs.
//!
//! It does not know how a case is judged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Binding, Failure, PrintedOutput, Reached};

/// What bench and select depend on; it holds no tolerance, figure or time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Verdict {
    /// The verdict.
    pub verdict: CheckVerdict,
    /// The class of a rejection.
    pub class: Option<String>,
    /// How many cases were not judged, and why.
    pub reason: Option<String>,
    /// The verdict of each case, by its name.
    pub cases: BTreeMap<String, CaseVerdict>,
    /// The dtypes with cases that were not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<UnjudgedDtype>"))]
    pub not_judged: Option<Vec<UnjudgedDtype>>,
    /// What is launched at measured sizes and in no judged case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Missed>"))]
    pub missed: Option<Vec<Missed>>,
    /// What torch computed for the wrapper because the op's `allow` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub allowed: Option<Vec<String>>,
}

/// What becomes of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CheckVerdict {
    /// It is right.
    Passed,
    /// It is wrong.
    Rejected,
    /// Nothing is known.
    #[default]
    NotJudged,
}

/// What becomes of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CaseVerdict {
    /// The kernel is right.
    Passed,
    /// It is wrong.
    Rejected,
    /// It did not run.
    #[default]
    NotJudged,
    /// Nothing can be judged by it.
    Dropped,
}

impl CaseVerdict {
    /// Returns the verdict as documents write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Rejected => "rejected",
            Self::NotJudged => "not-judged",
            Self::Dropped => "dropped",
        }
    }
}

/// Cases of one dtype that were not judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UnjudgedDtype {
    /// The dtype.
    pub dtype: String,
    /// How many.
    pub cases: u64,
    /// Of how many.
    pub of: u64,
    /// Why most were not.
    pub reason: Option<String>,
}

/// What is launched at a measured size and in no judged case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Missed {
    /// The size.
    pub size: String,
    /// The kernel.
    pub kernel: Option<String>,
    /// Its constants.
    pub constants: Option<BTreeMap<String, Value>>,
    /// Why.
    pub reason: String,
}

/// Everything that a check found out beside its verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Evidence {
    /// A row a case.
    pub cases: Vec<CaseRow>,
    /// `[atol, rtol]` by dtype.
    pub tolerances: BTreeMap<String, [f64; 2]>,
    /// Wrong results → a case of each dtype that rejects it.
    pub lint: BTreeMap<String, Vec<String>>,
    /// The wrong results that all cases of a dtype accept.
    pub unfit: Vec<String>,
    /// `identical`, `differs`, or `declared run-to-run`.
    pub repeat: Option<String>,
    /// What the results of a random op show.
    #[serde(default, deserialize_with = "crate::read::told", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<RandomTests>"))]
    pub random: Option<Option<RandomTests>>,
    /// What values of inputs depend on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub salt: Option<String>,
    /// The probes for which the budget was too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub left_out: Option<Vec<String>>,
    /// The arguments that were tried at no other value, since none is known to fit the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub untried: Option<Vec<String>>,
    /// The constants of the kernel's first launch.
    pub constants: BTreeMap<String, Value>,
    /// What Triton's cache had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::TritonCache"))]
    pub triton_cache: Option<crate::TritonCache>,
    /// The configurations of an autotuned kernel.
    pub configurations: Configurations,
    /// The case with the largest error.
    pub worst: Option<WorstCase>,
    /// Remarks that change no verdict.
    pub notes: Vec<String>,
    /// Why it was rejected.
    pub failure: Option<Failure>,
    /// What the candidate printed.
    pub output: PrintedOutput,
}

/// One case of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CaseRow {
    /// Its name, as `small/float32/0`.
    pub name: String,
    /// As `declared` or `edge`.
    pub kind: String,
    /// Its dtype.
    pub dtype: String,
    /// The lengths of its dims.
    pub binding: Binding,
    /// Its verdict.
    pub verdict: CaseVerdict,
    /// Why it has that.
    pub reason: Option<String>,
    /// The class of a rejection.
    pub class: Option<String>,
    /// By what it was judged.
    pub rule: Option<String>,
    /// The largest absolute difference: a number, or the word for one that JSON lacks.
    pub max_abs: Value,
    /// The largest relative difference, likewise.
    pub max_rel: Value,
    /// How many elements are wrong.
    pub bad: Option<i64>,
    /// Of how many.
    pub total: Option<i64>,
    /// The worst element.
    pub index: Option<Vec<i64>>,
    /// Its value.
    pub got: Value,
    /// The right one.
    pub expected: Value,
    /// By how much torch itself differs.
    pub torch_max_abs: Value,
    /// How many kernels a call launched.
    pub launches: u64,
    /// How many configurations they had.
    pub configs: u64,
}

/// The tests of the results of a random op.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RandomTests {
    /// The level of each test.
    pub level: f64,
    /// The tests.
    pub tests: Vec<RandomTest>,
}

/// One test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RandomTest {
    /// The dtype.
    pub dtype: String,
    /// The test's name.
    pub test: String,
    /// How many samples it had.
    pub samples: u64,
    /// `passed` or `off`.
    pub verdict: String,
}

/// The configurations of an autotuned kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Configurations {
    /// How many were tried.
    pub tried: u64,
    /// Those that the device cannot hold.
    pub dropped: Vec<DroppedConfig>,
    /// The smallest value of each integer that they set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, i64>"))]
    pub least: Option<BTreeMap<String, i64>>,
}

/// A configuration that the device cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DroppedConfig {
    /// The device, where several are compiled for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub target: Option<String>,
    /// The kernel.
    pub kernel: String,
    /// The configuration.
    pub config: Option<BTreeMap<String, Value>>,
    /// Why.
    pub reason: String,
}

/// The case with the largest error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WorstCase {
    /// Its name.
    pub case: String,
    /// The largest absolute difference.
    pub max_abs: Value,
    /// The largest relative difference.
    pub max_rel: Value,
}

/// What a candidate tells of itself; it is the document `ran`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Progress {
    /// The case that runs.
    pub running: Option<String>,
    /// How many cases are known.
    pub listed: u64,
    /// Whether all have run.
    pub is_over: bool,
    /// The constants of the kernel's first launch.
    pub constants: BTreeMap<String, i64>,
    /// What is launched at measured sizes.
    pub reach: Reach,
    /// Why the kernel did not load.
    pub load: Option<LoadFault>,
    /// The configurations of an autotuned kernel.
    pub configurations: Configurations,
    /// What Triton's cache had.
    pub triton_cache: crate::TritonCache,
}

/// What is launched at measured sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reach {
    /// The cases that reach it.
    pub cases: Vec<Reached>,
    /// What none reaches.
    pub missed: Vec<Missed>,
    /// What torch computes there for the wrapper.
    pub fallbacks: Vec<Fallback>,
}

/// What torch computes at a measured size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fallback {
    /// The size.
    pub size: String,
    /// The operations, in words.
    pub computed: String,
}

/// Why a kernel did not load: a failure, or a reason why nothing is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadFault {
    /// Its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Failure"))]
    pub failure: Option<Failure>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub not_judged: Option<String>,
}
