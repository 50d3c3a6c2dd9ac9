//! What functions tell that are no action's: what an interpreter has, and what ops.yaml is to say of a wrapper.
//!
//! It does not know what is made of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Lane, Length};

/// What every function that is no action's is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alone {
    /// The workspace, absolute.
    pub root: String,
    /// Absolute: the child's working directory, and the only folder it may write.
    pub scratch: String,
    /// Where kernel code would run: it is compiled.
    pub lane: Lane,
}

/// What an interpreter has: the documents of a probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probed {
    /// Name to version; null where it is absent.
    pub toolchain: BTreeMap<String, Option<String>>,
    /// The dotted callables that `torch:` may name, sorted.
    pub names: Vec<String>,
    /// What they take, by name, where all parameters are known.
    pub signatures: Signatures,
    /// How modules are found beside `sys.path`.
    pub modules: ToldModules,
}

/// What torch's functions take, as far as torch says so for certain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Signatures {
    /// Names that any of them may take.
    pub common: BTreeSet<String>,
    /// What each takes, by its full dotted name.
    pub functions: BTreeMap<String, Signature>,
}

/// By which names a function takes arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Signature {
    /// All of them but the common ones.
    pub parameters: BTreeSet<String>,
    /// As people read it: `(input, dim=None, dtype=None)`.
    pub text: String,
}

/// How modules are found beside `sys.path`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToldModules {
    /// The endings of compiled modules, in order.
    pub suffixes: Vec<String>,
    /// Module to file or folder, of editable installs that no folder of `sys.path` leads to.
    pub mapped: BTreeMap<String, String>,
}

/// What an adoption is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfAdopt {
    /// What is adopted, as it was named.
    pub what: String,
    /// The op's name.
    pub name: String,
    /// The wrapper's file, relative to the workspace.
    pub file: Option<String>,
    /// The installed module that it is in, where no file of the workspace is.
    pub module: Option<String>,
    /// The wrapper's name, where one is named.
    pub entry: Option<String>,
    /// The torch function, where one is named.
    pub torch: Option<String>,
    /// What stands in its place, as `FILE::NAME`, where one is named.
    pub reference: Option<String>,
}

/// What came of an adoption: its documents. One of the two is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Adopted {
    /// What ops.yaml is to say.
    pub entry: Option<AdoptedEntry>,
    /// Why that cannot be told.
    pub unclear: Option<Unclear>,
}

/// Why it cannot be told what ops.yaml is to say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unclear {
    /// What is unclear.
    pub message: String,
    /// What to add.
    pub hint: String,
}

/// What ops.yaml is to say of a wrapper, and how its arguments were mapped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdoptedEntry {
    /// The torch function; null where there is a reference.
    pub torch: Option<String>,
    /// What stands in its place, as `FILE::NAME`.
    pub reference: Option<String>,
    /// The tensors.
    pub inputs: Vec<AdoptedInput>,
    /// The other arguments.
    pub kwargs: BTreeMap<String, Value>,
    /// The wrapper's name.
    pub entry: String,
    /// How it is called; null where names decide.
    pub call: Option<String>,
    /// Pairs of the wrapper's parameter and the op's argument.
    pub mapped: Vec<[String; 2]>,
    /// The inputs that the reference changes.
    pub mutates: Vec<String>,
}

/// A tensor as ops.yaml is to say it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdoptedInput {
    /// The argument's name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<Length>,
    /// Its dtype, where it does not follow the tested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dtype: Option<String>,
    /// How its values are drawn, as ops.yaml writes it, where they are not by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Value>"))]
    pub init: Option<BTreeMap<String, Value>>,
    /// Whether the op and the wrapper are called without it, too: there only where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "bool"))]
    pub optional: Option<bool>,
}
