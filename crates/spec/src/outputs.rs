//! The outputs of an op: their names, and how each is compared.
//!
//! It does not know how many torch returns: the analysis does.

use t2t_protocol::{Axes, Comparison, Quantity};

use super::names::suggestion;
use super::node::{Entry, Node, Value};
use super::reader::Reader;
use super::settings::tolerance;
use super::{ComparedOutput, Input};

impl Reader<'_, '_> {
    /// Returns the outputs in declared order, or none where nothing is said of them.
    pub(crate) fn outputs(&mut self, inputs: &[Input]) -> Option<Vec<ComparedOutput>> {
        let entries = self.entry.node.get("outputs")?.entries();
        let names: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let tensors = inputs.iter().filter_map(|input| Some(input.tensor()?.name.as_str()));
        let known: Vec<&str> = tensors.chain(names.iter().copied()).collect();
        Some(entries.iter().filter_map(|entry| self.output(entry, &known)).collect())
    }

    fn output(&mut self, entry: &Entry, known: &[&str]) -> Option<ComparedOutput> {
        let node = &entry.node;
        let word = node.text().or_else(|| node.get("compare").and_then(Node::text)).unwrap_or("close");
        let output = ComparedOutput {
            name: entry.key.clone(),
            compare: comparison(word)?,
            of: node.get("of").and_then(Node::text).map(str::to_owned),
            dim: node.get("dim").and_then(axes),
            tolerances: node.get("tolerances").map_or(&[][..], Node::entries).iter().filter_map(tolerance).collect(),
            unset: node.get("unset").and_then(unset),
        };
        self.output_fits(entry, &output, known);
        Some(output)
    }

    fn output_fits(&mut self, entry: &Entry, output: &ComparedOutput, known: &[&str]) {
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
        if let Some(node) = entry.node.get("tolerances").filter(|_| !has_tolerance(output.compare)) {
            let message = format!("output `{}` is compared without tolerances", output.name);
            self.fault(node.place, &message, "remove `tolerances`, or compare it as `close`");
        }
        if let Some(node) = entry.node.get("unset").filter(|_| !has_places(output.compare)) {
            let message = format!("output `{}` has `unset`, and nothing in its place", output.name);
            self.fault(node.place, &message, "remove `unset`, or compare it as `close`, `exact` or `indices`");
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

fn comparison(word: &str) -> Option<Comparison> {
    match word {
        "close" => Some(Comparison::Close),
        "exact" => Some(Comparison::Exact),
        "indices" => Some(Comparison::Indices),
        "set" => Some(Comparison::Set),
        "rows" => Some(Comparison::Rows),
        "ignore" => Some(Comparison::Ignore),
        _ => None,
    }
}

/// Returns whether a tolerance means something to a comparison.
fn has_tolerance(compare: Comparison) -> bool {
    matches!(compare, Comparison::Close | Comparison::Set | Comparison::Rows)
}

/// Returns whether a comparison has each element in its place.
fn has_places(compare: Comparison) -> bool {
    matches!(compare, Comparison::Close | Comparison::Exact | Comparison::Indices)
}

fn unset(node: &Node) -> Option<Quantity> {
    match &node.value {
        Value::Whole(whole) => Some(Quantity::Whole(*whole)),
        Value::Number(number) => Some(Quantity::Number(*number)),
        _ => node.text().map(|word| Quantity::Of(word.to_owned())),
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
