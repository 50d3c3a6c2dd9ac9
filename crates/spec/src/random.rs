//! Ops that draw random numbers: what must hold of any result.
//!
//! It does not know whether torch draws any: the analysis does.

use std::collections::BTreeMap;

use serde::Serialize;

use super::names::suggestion;
use super::node::{Entry, Node, Value};
use super::reader::Reader;
use super::{Input, Quantity};

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Random {
    /// `dropout`, `bernoulli`, `uniform`, `normal`, `multinomial`, `judged`.
    pub(crate) kind: String,
    /// The parameter of the wrapper that takes the seed; None where torch's generator is seeded.
    pub(crate) seed: Option<String>,
    /// The function of the op's `cases.py` that says what must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// Parameters: numbers, or arguments that have them.
    #[serde(flatten)]
    pub(crate) parameters: BTreeMap<String, Quantity>,
}

/// Returns the parameters that a kind has, and the required ones among them.
fn parameters_of(kind: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        "dropout" => (&["p"], &["p"]),
        "bernoulli" => (&["p"], &[]),
        "uniform" => (&["low", "high"], &[]),
        "normal" => (&["mean", "std"], &[]),
        "judged" => (&["by"], &["by"]),
        _ => (&[], &[]),
    }
}

impl Reader<'_, '_> {
    /// Returns what is declared of the op's random numbers; none where nothing is.
    pub(crate) fn random(&mut self, inputs: &[Input]) -> Option<Random> {
        let node = self.entry.node.get("random")?;
        let kind = node.get("kind")?.text()?;
        let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
        self.parameters_fit(node, kind);
        self.arguments_are_known(node, inputs);
        self.random_fits(node, kind, inputs);
        let parameters = node.entries().iter().filter(|entry| !matches!(entry.key.as_str(), "kind" | "seed" | "by"));
        let parameters = parameters.filter_map(|entry| Some((entry.key.clone(), parameter(&entry.node)?))).collect();
        Some(Random { kind: kind.to_owned(), seed: text("seed"), by: text("by"), parameters })
    }

    fn parameters_fit(&mut self, node: &Node, kind: &str) {
        let (has, needs) = parameters_of(kind);
        let is_odd = |entry: &&Entry| !has.contains(&entry.key.as_str()) && !matches!(&*entry.key, "kind" | "seed");
        for entry in node.entries().iter().filter(is_odd) {
            let message = format!("`random` of kind `{kind}` has no `{}`", entry.key);
            self.fault(entry.place, &message, "remove the key, or give another kind");
        }
        for key in needs.iter().filter(|key| node.get(key).is_none()) {
            let message = format!("`random` of kind `{kind}` needs `{key}`");
            let example = if *key == "by" { "by: holds" } else { "p: p" };
            self.fault(node.place, &message, format!("add it, as in `{example}`"));
        }
    }

    fn arguments_are_known(&mut self, node: &Node, inputs: &[Input]) {
        let kwargs = self.entry.node.get("kwargs").map_or(&[][..], Node::entries);
        let declared = inputs.iter().map(|input| match input {
            Input::Tensor(tensor) => tensor.name.as_str(),
            Input::Scalar { name, .. } => name.as_str(),
        });
        let known: Vec<&str> = declared.chain(kwargs.iter().map(|entry| entry.key.as_str())).collect();
        for (key, value) in
            ["p", "low", "high", "mean", "std"].into_iter().filter_map(|key| Some((key, node.get(key)?)))
        {
            if let Some(name) = value.text().filter(|name| !known.contains(name)) {
                let hint = suggestion(name, known.iter().copied());
                self.fault(value.place, &format!("`{key}` is `{name}`, and no argument is called so"), hint);
            }
        }
        if let Some(seed) = node.get("seed")
            && let Some(name) = seed.text().filter(|name| known.contains(name))
        {
            let message = format!("`{name}` is an argument of torch's, and the seed's");
            self.fault(seed.place, &message, "the seed is a parameter that the wrapper alone has");
        }
    }

    fn random_fits(&mut self, node: &Node, kind: &str, inputs: &[Input]) {
        let has = |key: &str| self.entry.node.get(key).is_some_and(|node| node.flag() == Some(true));
        let needs_input = matches!(kind, "dropout" | "multinomial") || (kind == "bernoulli" && node.get("p").is_none());
        let is_without = needs_input && inputs.iter().all(|input| input.tensor().is_none());
        let is_backward = has("backward") && kind != "dropout";
        let names_some = |key: &str| self.entry.node.get(key).is_some_and(|node| !node.items().is_empty());
        let changes = names_some("mutates") || names_some("overwrites");
        let lacks_cases = kind == "judged" && self.entry.node.get("cases").is_none();
        let faults = [
            (is_without, "needs an input", "add the tensor under `inputs`"),
            (
                is_backward,
                "has no gradient that could be judged",
                "remove `backward`: of random ops only dropout has one",
            ),
            (changes, "cannot be judged in an op that changes its inputs", "declare the function that does not"),
            (lacks_cases, "needs the op's `cases`", "add `cases:` with the file that defines the function"),
        ];
        for (_, what, hint) in faults.into_iter().filter(|(is_so, ..)| *is_so) {
            self.fault(node.place, &format!("`random` of kind `{kind}` {what}"), hint);
        }
    }
}

fn parameter(node: &Node) -> Option<Quantity> {
    match &node.value {
        Value::Whole(whole) => Some(Quantity::Whole(*whole)),
        Value::Number(number) => Some(Quantity::Number(*number)),
        Value::Text(name) => Some(Quantity::Of(name.clone())),
        _ => None,
    }
}
