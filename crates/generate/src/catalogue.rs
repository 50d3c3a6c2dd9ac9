//! The catalogue: which torch operations are known, in which family, and what their entries in ops.yaml are.
//!
//! It does not know how a kernel is rendered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::files::Files;
use crate::json::Json;

/// A family of operations, as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyFile {
    /// What the family is, for people.
    title: String,
    /// The file of its template.
    template: String,
    /// Its first and its second technique.
    techniques: [Technique; 2],
    /// What its template takes of each op that does not say otherwise.
    #[serde(default)]
    with: Map<String, Value>,
    /// What is in the entry of each op that does not say otherwise.
    #[serde(default)]
    entry: BTreeMap<String, Json>,
    /// Its ops by name.
    ops: BTreeMap<String, OpFile>,
}

/// A technique of a family, which a variant has or has not.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Technique {
    /// The variant that has this technique alone: `v2_tiling`.
    pub variant: String,
    /// What it changes against the baseline, as half a sentence.
    pub summary: String,
}

/// An operation, as its family's file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpFile {
    /// The full name of torch's function.
    torch: String,
    /// Other full names of the same function.
    #[serde(default)]
    aliases: Vec<String>,
    /// The operation's name in words, as a docstring begins.
    title: String,
    /// The formula, in ASCII.
    math: String,
    /// What the template takes.
    #[serde(default)]
    with: Map<String, Value>,
    /// What differs from the family's entry.
    #[serde(default)]
    entry: BTreeMap<String, Json>,
}

/// A family of operations.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its name: the stem of its file.
    pub name: String,
    /// What the family is, for people.
    pub title: String,
    /// The file of its template.
    pub(crate) template: String,
    /// Its first and its second technique; variant four has both.
    pub techniques: [Technique; 2],
}

/// A known operation.
#[derive(Clone, Debug, Serialize)]
pub struct Op {
    /// Its name in ops.yaml, where nobody chose another one.
    pub name: String,
    /// The name of its family.
    pub family: String,
    /// The full name of torch's function: `torch.nn.functional.gelu`.
    pub torch: String,
    /// Other full names of the same function.
    pub aliases: Vec<String>,
    /// The operation's name in words.
    pub title: String,
    /// The formula.
    pub math: String,
    /// What the template takes.
    pub(crate) with: Map<String, Value>,
    /// Its entry in ops.yaml, without the torch function.
    #[serde(skip)]
    entry: BTreeMap<String, Json>,
}

impl Op {
    /// Returns the op's entry in ops.yaml, in the order in which people write its keys.
    #[must_use]
    pub fn entry(&self) -> Vec<(&str, Json)> {
        let torch = ("torch", Json::Text(self.torch.clone()));
        let others = KEYS.iter().filter_map(|key| Some((*key, self.entry.get(*key)?.clone())));
        std::iter::once(torch).chain(others).collect()
    }
}

/// The keys of an entry, in order.
const KEYS: &[&str] = &[
    "inputs",
    "outputs",
    "kwargs",
    "dims",
    "dtypes",
    "allow",
    "backward",
    "broadcast",
    "deterministic",
    "check",
    "bench",
    "profiles",
];

/// What is wrong with a file of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct Fault {
    /// The file's name.
    pub file: String,
    /// What is wrong there.
    pub message: String,
}

/// All known operations.
#[derive(Clone, Debug)]
pub struct Catalogue {
    families: BTreeMap<String, Family>,
    ops: BTreeMap<String, Op>,
    /// Names in lower case, short and full, to the name of the op.
    names: BTreeMap<String, String>,
    /// Short names without underscores to the name of the op.
    squeezed: BTreeMap<String, String>,
}

/// What torch's functions may be written without, longest first.
const PREFIXES: &[&str] = &[
    "torch.nn.functional.",
    "nn.functional.",
    "functional.",
    "torch.special.",
    "torch.linalg.",
    "torch.ops.aten.",
    "torch.",
    "special.",
    "linalg.",
    "aten.",
    "f.",
];

impl Catalogue {
    /// Reads the families among `files`. Fails where one is no family, names no template, or has an op that another one has.
    pub fn read(files: &Files) -> Result<Self, Fault> {
        let mut catalogue =
            Self { families: BTreeMap::new(), ops: BTreeMap::new(), names: BTreeMap::new(), squeezed: BTreeMap::new() };
        for (file, text) in files.iter() {
            if let Some(name) = file.strip_suffix(".json") {
                let fault = |message: String| Fault { file: file.to_owned(), message };
                let read: FamilyFile = serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
                if files.get(&read.template).is_none() {
                    return Err(fault(format!("there is no template `{}`", read.template)));
                }
                catalogue.add(name, read).map_err(fault)?;
            }
        }
        Ok(catalogue)
    }

    fn add(&mut self, family: &str, read: FamilyFile) -> Result<(), String> {
        for (name, op) in read.ops {
            let op = Op {
                name: name.clone(),
                family: family.to_owned(),
                torch: op.torch,
                aliases: op.aliases,
                title: op.title,
                math: op.math,
                with: over(read.with.clone(), op.with, Value::is_null).collect(),
                entry: over(read.entry.clone(), op.entry, |value| *value == Json::Null).collect(),
            };
            let full = op.aliases.iter().chain([&op.torch, &op.name]);
            for full in full {
                for spelled in [full.to_lowercase(), short(full)] {
                    self.names.entry(spelled).or_insert_with(|| name.clone());
                }
                self.squeezed.entry(squeezed(full)).or_insert_with(|| name.clone());
            }
            if let Some(other) = self.ops.insert(name.clone(), op) {
                return Err(format!("op `{name}` is in family `{}`, too", other.family));
            }
        }
        let [first, second] = read.techniques;
        let (name, title, template) = (family.to_owned(), read.title, read.template);
        self.families.insert(name.clone(), Family { name, title, template, techniques: [first, second] });
        Ok(())
    }

    /// Returns the op that torch, or a person, calls `name`: `gelu`, `F.gelu`, `torch.nn.functional.gelu`; `layernorm` for `layer_norm`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Op> {
        let exact = self.names.get(&name.to_lowercase()).or_else(|| self.names.get(&short(name)));
        self.ops.get(exact.or_else(|| self.squeezed.get(&squeezed(name)))?)
    }

    /// Returns up to three known names that look like `name`, the most similar first.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let wanted = short(name);
        let similarity = |op: &str| strsim::jaro_winkler(&wanted, &short(op));
        let mut close: Vec<(f64, &str)> = self.ops.keys().map(|op| (similarity(op), op.as_str())).collect();
        close.retain(|(similarity, _)| *similarity > 0.8);
        close.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
        close.into_iter().take(3).map(|(_, op)| op).collect()
    }

    /// Returns all ops in the order of their names.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.ops.values()
    }

    /// Returns all families in the order of their names.
    pub fn families(&self) -> impl Iterator<Item = &Family> {
        self.families.values()
    }

    /// Returns the family of an op of this catalogue.
    #[must_use]
    pub fn family(&self, op: &Op) -> &Family {
        &self.families[&op.family]
    }

    /// Returns all known ops and their families as a table in Markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("{} ops in {} families.\n\n", self.ops.len(), self.families.len());
        text += "| family | what | ops |\n| --- | --- | --- |\n";
        for family in self.families() {
            let own: Vec<String> =
                self.ops().filter(|op| op.family == family.name).map(|op| format!("`{}`", op.name)).collect();
            text += &format!("| `{}` ({}) | {} | {} |\n", family.name, own.len(), family.title, own.join(" "));
        }
        text
    }
}

/// Returns a name in lower case without what it may be written without.
fn short(name: &str) -> String {
    let name = name.trim().to_lowercase();
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(&name).to_owned()
}

/// Returns a short name without underscores.
fn squeezed(name: &str) -> String {
    short(name).replace('_', "")
}

/// Returns `below` with the values of `above` in their place; a null takes a value away.
fn over<V>(
    below: impl IntoIterator<Item = (String, V)>,
    above: impl IntoIterator<Item = (String, V)>,
    is_null: fn(&V) -> bool,
) -> impl Iterator<Item = (String, V)> {
    let whole: BTreeMap<String, V> = below.into_iter().chain(above).collect();
    whole.into_iter().filter(move |(_, value)| !is_null(value))
}

#[cfg(test)]
mod tests;
