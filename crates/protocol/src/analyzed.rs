//! What an analysis says of an op: what it is, what it computes and moves, and what bounds it.
//!
//! docs/reference/analyze.md says how each is found. It does not know torch. What is null is not known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::{Binding, Length};

/// What an op is and does, as docs/reference/analyze.md says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Analysis {
    /// The version of the document: 1.
    pub version: u64,
    /// The dotted name that is called.
    pub operation: String,
    /// The module that says it defines it.
    pub defined_in: Option<String>,
    /// Python's own; a builtin's from the first paragraph of its docstring.
    pub signature: Option<String>,
    /// From the catalogue: plain text, one line.
    pub definition: Option<String>,
    /// Likewise.
    pub notes: Option<String>,
    /// What its docstring says.
    pub documentation: Documentation,
    /// The first declared dtype, in which everything below is counted.
    pub dtype: String,
    /// The tensors that it takes.
    pub inputs: Vec<AnalyzedInput>,
    /// Those that it returns; null where they depend on values.
    pub outputs: Option<Vec<AnalyzedOutput>>,
    /// The aten operations dispatched at the first size.
    pub aten: Vec<AtenOperation>,
    /// What it comes to at each size.
    pub sizes: BTreeMap<String, AnalyzedSize>,
    /// How work and memory grow.
    pub growth: Growth,
    /// How it goes through memory.
    pub access: Access,
    /// The reference machine.
    pub ridge: Ridge,
    /// The aten operations because of which something is null.
    pub unknown: Vec<NotKnown>,
}

/// What a docstring says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Documentation {
    /// Its first paragraph.
    pub summary: Option<String>,
    /// Its formulas, in LaTeX.
    pub math: Vec<String>,
}

/// A tensor that an op takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AnalyzedInput {
    /// The argument's name.
    pub name: String,
    /// Its declared shape.
    pub shape: Vec<Length>,
    /// Its dtype.
    pub dtype: String,
    /// How it lies in memory.
    pub layout: String,
    /// What the docstring says of it.
    pub description: Option<String>,
}

/// A tensor that an op returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AnalyzedOutput {
    /// Its shape, with dims, declared expressions of dims, or multiples of a dim; null where a length is none of these.
    pub shape: Vec<Option<Length>>,
    /// Its dtype.
    pub dtype: String,
}

/// What of an aten operation was dispatched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AtenOperation {
    /// Its name.
    pub op: String,
    /// Its schema.
    pub schema: String,
    /// How often it was called.
    pub calls: u64,
    /// The rule that counts its work, in words.
    pub work: Option<String>,
    /// How it goes through memory.
    pub access: Option<String>,
}

/// What an op comes to at one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AnalyzedSize {
    /// The lengths of its dims.
    pub dims: Binding,
    /// What it returns.
    pub outputs: Option<Vec<ShapedOutput>>,
    /// How many elementary results it computes. A whole number, which may be one beyond 2^64.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub flops: Option<Number>,
    /// How many bytes it reads and writes at least, likewise.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub bytes: Option<Number>,
    /// Elementary results a byte.
    pub intensity: Option<f64>,
    /// `memory`, `compute` or `none`.
    pub bound: Option<String>,
}

/// A tensor with its lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ShapedOutput {
    /// The lengths.
    pub shape: Vec<u64>,
    /// Its dtype.
    pub dtype: String,
}

/// The exponents with which something grows in each dim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Growth {
    /// Of the work.
    pub work: BTreeMap<String, Option<f64>>,
    /// Of the memory.
    pub memory: BTreeMap<String, Option<f64>>,
}

/// How an op goes through memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Access {
    /// The class.
    pub class: Option<String>,
    /// All that were seen, most demanding first.
    pub patterns: Vec<String>,
    /// The class in words.
    pub description: Option<String>,
}

/// The reference machine's rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Ridge {
    /// The machine.
    pub device: String,
    /// Its arithmetic.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub flops_per_second: Option<Number>,
    /// Its memory.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub bytes_per_second: Option<Number>,
    /// The intensity at which they balance.
    pub flops_per_byte: Option<f64>,
}

/// An aten operation because of which something is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NotKnown {
    /// Which.
    pub op: String,
    /// Why.
    pub why: String,
}
