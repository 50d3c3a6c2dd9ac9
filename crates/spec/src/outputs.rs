//! The outputs of an op: their names, and how each is compared.
//!
//! It does not know how many torch returns: the analysis does.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Input;
use super::names::suggestion;
use super::parse::{Entry, Node, Value};
use super::reader::Reader;
use super::settings::tolerance;

/// An output of torch's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Output {
    /// What messages call it.
    pub(crate) name: String,
    /// How it is compared.
    pub(crate) compare: Comparison,
    /// The input, or the output, that indices point into.
    pub(crate) of: Option<String>,
    /// The dims that indices count along, as ops.yaml has them.
    pub(crate) dim: Option<Axes>,
    /// `[atol, rtol]` by dtype, where they are not the op's.
    pub(crate) tolerances: BTreeMap<String, [f64; 2]>,
}

/// How an output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Comparison {
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

/// One dim, or several trailing ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Axes {
    /// A dim.
    One(i64),
    /// Dims that are counted through together.
    Several(Vec<i64>),
}

impl Comparison {
    fn of(word: &str) -> Option<Comparison> {
        match word {
            "close" => Some(Self::Close),
            "exact" => Some(Self::Exact),
            "indices" => Some(Self::Indices),
            "set" => Some(Self::Set),
            "rows" => Some(Self::Rows),
            "ignore" => Some(Self::Ignore),
            _ => None,
        }
    }

    /// Returns whether a tolerance means something to it.
    fn has_tolerance(self) -> bool {
        matches!(self, Self::Close | Self::Set | Self::Rows)
    }
}

impl Reader<'_, '_> {
    /// Returns the outputs in declared order, or none where nothing is said of them.
    pub(crate) fn outputs(&mut self, inputs: &[Input]) -> Option<Vec<Output>> {
        let entries = self.entry.node.get("outputs")?.entries();
        let names: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let tensors = inputs.iter().filter_map(|input| Some(input.tensor()?.name.as_str()));
        let known: Vec<&str> = tensors.chain(names.iter().copied()).collect();
        Some(entries.iter().filter_map(|entry| self.output(entry, &known)).collect())
    }

    fn output(&mut self, entry: &Entry, known: &[&str]) -> Option<Output> {
        let node = &entry.node;
        let word = node.text().or_else(|| node.get("compare").and_then(Node::text)).unwrap_or("close");
        let output = Output {
            name: entry.key.clone(),
            compare: Comparison::of(word)?,
            of: node.get("of").and_then(Node::text).map(str::to_owned),
            dim: node.get("dim").and_then(axes),
            tolerances: node.get("tolerances").map_or(&[][..], Node::entries).iter().filter_map(tolerance).collect(),
        };
        self.output_fits(entry, &output, known);
        Some(output)
    }

    fn output_fits(&mut self, entry: &Entry, output: &Output, known: &[&str]) {
        let is_indices = output.compare == Comparison::Indices;
        if is_indices && output.of.is_none() {
            let message = format!("output `{}` does not say what its indices point into", output.name);
            self.fault(entry.place, &message, "add `of:` with the input, or the output, as in `of: input`");
        }
        for key in ["of", "dim"] {
            if let Some(node) = entry.node.get(key).filter(|_| !is_indices) {
                let message = format!("output `{}` has `{key}` and no indices", output.name);
                self.fault(node.place, &message, "add `compare: indices`, or remove the key");
            }
        }
        if let (Some(node), Some(of)) = (entry.node.get("of"), &output.of)
            && (!known.contains(&of.as_str()) || *of == output.name)
        {
            let others = known.iter().copied().filter(|name| *name != output.name);
            self.fault(node.place, &format!("no other input or output is called `{of}`"), suggestion(of, others));
        }
        if let Some(node) = entry.node.get("tolerances").filter(|_| !output.compare.has_tolerance()) {
            let message = format!("output `{}` is compared without tolerances", output.name);
            self.fault(node.place, &message, "remove `tolerances`, or compare it as `close`");
        }
        if let Some(Axes::Several(dims)) = &output.dim {
            let last: Vec<i64> = (1..=i64::try_from(dims.len()).unwrap_or(i64::MAX)).rev().map(|dim| -dim).collect();
            if *dims != last {
                let place = entry.node.get("dim").map_or(entry.place, |node| node.place);
                let message = format!("the dims of output `{}` are not the last ones", output.name);
                let wanted: Vec<String> = last.iter().map(i64::to_string).collect();
                self.fault(place, &message, format!("write `[{}]`, or one dim", wanted.join(", ")));
            }
        }
    }
}

fn axes(node: &Node) -> Option<Axes> {
    match &node.value {
        Value::Whole(dim) => Some(Axes::One(*dim)),
        Value::List(dims) => dims.iter().map(whole).collect::<Option<_>>().map(Axes::Several),
        _ => None,
    }
}

fn whole(node: &Node) -> Option<i64> {
    match node.value {
        Value::Whole(whole) => Some(whole),
        _ => None,
    }
}
