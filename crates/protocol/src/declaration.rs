//! What a request says of an op and of a variant: their declarations, with nothing left to default.
//!
//! It does not know ops.yaml, nor what is done with an op.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Init, Quantity};

/// A size: the length of each dim.
pub type Binding = BTreeMap<String, u64>;

/// An op under one profile, as the harness is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// The op's name.
    pub name: String,
    /// The torch function, in full; null where there is a reference.
    pub torch: Option<String>,
    /// What stands in its place.
    pub reference: Option<Reference>,
    /// The tensors, and the scalars among them, in declared order.
    pub inputs: Vec<Input>,
    /// How each output is compared, in torch's order; null where all are as the op says.
    pub outputs: Option<Vec<ComparedOutput>>,
    /// What must hold of results that are drawn at random.
    pub random: Option<Random>,
    /// The other arguments. A string that is a dim of the binding stands for its length, in lists too.
    pub kwargs: BTreeMap<String, Value>,
    /// The tested dtypes, by torch's names without the prefix.
    pub dtypes: Vec<String>,
    /// The sizes that are measured.
    pub sizes: BTreeMap<String, Binding>,
    /// On the interpreter the sizes that devices measure; empty on a device.
    pub measured: BTreeMap<String, Binding>,
    /// The sizes that are checked.
    pub check_sizes: BTreeMap<String, Binding>,
    /// How many seeds a declared case has.
    pub seeds: u64,
    /// The edges that are not asked for, each with its reason or null.
    pub edges: BTreeMap<String, Option<String>>,
    /// The dims that `dims` gives a length.
    pub fixed: Vec<String>,
    /// `[atol, rtol]` by dtype.
    pub tolerances: BTreeMap<String, [f64; 2]>,
    /// How exact float32 products must be.
    pub precision: Precision,
    /// The inputs that the op may change.
    pub mutates: Vec<String>,
    /// The inputs in which a kernel may leave anything.
    pub overwrites: Vec<String>,
    /// The aten operations that torch may compute for a wrapper.
    pub allow: Vec<String>,
    /// Whether gradients are checked as well.
    pub backward: bool,
    /// Whether broadcast inputs are checked as well.
    pub broadcast: bool,
    /// Whether two runs must give the same bits.
    pub deterministic: bool,
    /// The workspace path of the op's `cases.py`, or null.
    pub cases: Option<String>,
    /// Dim → the lengths that torch takes, of the dims of which it refuses some; checks and compiles are told. ops.yaml does not say so: an analysis finds out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Taken>"))]
    pub lengths: BTreeMap<String, Taken>,
}

/// The lengths of a dim that torch takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Taken {
    /// The least.
    pub least: u64,
    /// Further ones are this much apart, from the least on.
    pub step: u64,
    /// All that were found where they are not evenly apart; empty where they are.
    pub only: Vec<u64>,
    /// The dim whose length they divide, or null.
    pub divides: Option<String>,
    /// The dim that must be as long at least, or null.
    pub within: Option<String>,
}

/// The precision in which float32 products are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// As float32 says.
    Ieee,
    /// TensorFloat-32 will do.
    Tf32,
}

impl Precision {
    /// Returns the precision as ops.yaml writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ieee => "ieee",
            Self::Tf32 => "tf32",
        }
    }
}

/// What is right by definition where no torch function is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Relative to the workspace, with `/`.
    pub file: String,
    /// A function, or a class that is constructed and then called.
    pub name: String,
    /// The keyword arguments of the class's constructor.
    pub init: BTreeMap<String, Value>,
    /// The workspace, absolute. In requests alone, and in no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub root: Option<String>,
}

/// What stands in an input's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Input {
    /// A tensor, or a member of a list of them.
    Tensor(TensorInput),
    /// A value that is no tensor.
    Scalar(ScalarInput),
}

/// A tensor argument. Each member of a list of tensors is one of its own, as `tensors.0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TensorInput {
    /// The argument's name in torch; of a member of a list with its number.
    pub name: String,
    /// The name of the list that it is a member of.
    pub list: Option<String>,
    /// The lengths of its dims: integers, dims, or expressions of dims.
    pub shape: Vec<Length>,
    /// One of torch's names without the prefix; null where it follows the tested dtype.
    pub dtype: Option<String>,
    /// How its values are drawn.
    pub init: Init,
    /// Whether its gradient is checked where the op is checked backward.
    pub requires_grad: bool,
    /// How it lies in memory. Of several, declared cases take one after the other.
    pub layout: Layout,
    /// Whether it is absent in some cases.
    pub optional: bool,
}

/// An argument that is no tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScalarInput {
    /// The argument's name in torch.
    pub name: String,
    /// The value.
    pub scalar: Value,
}

/// A length: a number, or a dim, or an expression of dims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Length {
    /// A fixed length.
    Fixed(u64),
    /// A dim, or an expression of dims, as in `2*N`.
    Of(String),
}

/// One layout, or several: `contiguous`, `transposed` (the last two dims are swapped in memory), `strided` (every second element of a twice as long last
/// dim), `channels_last` (four dims); in probes also `padded` and `swapped`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Layout {
    /// The same in all cases.
    One(String),
    /// Taken in turns.
    Several(Vec<String>),
}

/// An output of torch's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ComparedOutput {
    /// What messages call it.
    pub name: String,
    /// How it is compared.
    pub compare: Comparison,
    /// The input, or the output, that indices point into.
    pub of: Option<String>,
    /// The dims that indices count along.
    pub dim: Option<Axes>,
    /// `[atol, rtol]` by dtype, where they are not the op's.
    pub tolerances: BTreeMap<String, [f64; 2]>,
    /// The number, or `nan`, that torch has where any value is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Quantity"))]
    pub unset: Option<Quantity>,
}

/// How an output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Comparison {
    /// Within the tolerance.
    Close,
    /// Equal.
    Exact,
    /// The values that they point to.
    Indices,
    /// One dim, in any order.
    Set,
    /// Rows, in any order.
    Rows,
    /// Not at all.
    Ignore,
}

/// One dim, or several trailing ones that are counted through together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Axes {
    /// A dim.
    One(i64),
    /// Several.
    Several(Vec<i64>),
}

/// What is drawn at random, with the parameters of its kind: each is a number, or the name of the argument that has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// Which distribution, or that a function of `cases.py` judges.
    pub kind: RandomKind,
    /// The parameter of the wrapper that takes the seed; null where torch's generator is seeded.
    pub seed: Option<String>,
    /// The function of the op's `cases.py` that says what must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub by: Option<String>,
    /// The probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Quantity"))]
    pub p: Option<Quantity>,
    /// The least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Quantity"))]
    pub low: Option<Quantity>,
    /// Above the greatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Quantity"))]
    pub high: Option<Quantity>,
    /// The mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Quantity"))]
    pub mean: Option<Quantity>,
    /// The standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Quantity"))]
    pub std: Option<Quantity>,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RandomKind {
    /// A mask over an input.
    Dropout,
    /// Zeros and ones.
    Bernoulli,
    /// Evenly distributed values.
    Uniform,
    /// Normally distributed values.
    Normal,
    /// Indices, by their weights.
    Multinomial,
    /// What a function of the op's own says.
    Judged,
}

/// A kernel of an op: a wrapper in a file of the workspace, or in an installed module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The name under `variants`.
    pub name: String,
    /// Relative to the workspace, with `/`; of an installed module its name.
    pub file: String,
    /// The installed module that defines the wrapper, where no file of the workspace does.
    pub module: Option<String>,
    /// The file with the kernels in CUDA C++ that the wrapper launches, relative to the workspace; absent where they are in Triton.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub cuda: Option<String>,
    /// The wrapper that the file must define, as in `softmax` or `Softmax.apply`.
    pub entry: String,
    /// How it is called, as in `entry(input, dim)`; null where names decide.
    pub call: Option<String>,
    /// The methods of an entry that is an operator; absent where nothing is said of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Methods"))]
    pub methods: Option<Methods>,
    /// Of `interpreter` and `cuda`, those on which it can be judged.
    pub lanes: Vec<String>,
    /// Whether two runs must give the same bits.
    pub deterministic: bool,
}

/// The methods of an operator: each the name of one, or a call of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Methods {
    /// That of the forward pass, as in `forward` or `forward(input, dim)`.
    pub forward: String,
    /// That of the backward pass, as in `backward` or `backward(grad, output, dim)`.
    pub backward: String,
}

/// How a size is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Protocol {
    /// How many runs a figure has.
    pub runs: u64,
    /// How long a run warms up, in milliseconds.
    pub warmup_ms: u64,
    /// How long a run samples, in milliseconds.
    pub rep_ms: u64,
    /// When measuring ends, where that is not after so many runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "StopRule"))]
    pub stop: Option<StopRule>,
    /// Which passes of a call are timed, where that is not the forward pass alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Passes"))]
    pub passes: Option<Passes>,
}

/// Which passes of a call are timed beside, or in the place of, the forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Passes {
    /// The backward pass alone.
    Backward,
    /// The forward pass, then the backward pass.
    Both,
}

/// A rule by which measuring ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StopRule {
    /// As soon as the figures are known closely, or it is decided which subject is faster.
    Auto,
}
