//! Resources: what a variant's compiled kernels use, one row for each configuration of each kernel.
//!
//! It does not know how they were compiled. One configuration is compiled once a case, so a row tells the range over them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use t2t_model::manifest::canonical_json;

/// A row of the table of resources.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct KernelRow {
    target: String,
    kernel: String,
    /// Block sizes: the constants that name one, or all where none does.
    blocks: BTreeMap<String, Value>,
    num_warps: Value,
    num_stages: Value,
    registers: Option<String>,
    spills: Option<String>,
    shared: Option<String>,
    /// How many compiled kernels the row stands for.
    compiled: usize,
}

/// Returns the rows of a document `resources`, in the order of target, kernel and configuration.
#[must_use]
pub(crate) fn rows(resources: &Value) -> Vec<KernelRow> {
    let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for kernel in resources["kernels"].as_array().into_iter().flatten() {
        groups.entry(configuration(kernel)).or_default().push(kernel);
    }
    let mut rows: Vec<KernelRow> = groups.values().map(|group| row(group)).collect();
    rows.sort_by(|a, b| (&a.target, &a.kernel).cmp(&(&b.target, &b.kernel)));
    rows
}

/// Returns the devices that a document `resources` speaks of.
#[must_use]
pub(crate) fn targets(resources: &Value) -> BTreeSet<String> {
    let kernels = resources["kernels"].as_array().into_iter().flatten();
    kernels.filter_map(|kernel| kernel["target"].as_str()).map(str::to_owned).collect()
}

fn configuration(kernel: &Value) -> String {
    let blocks: BTreeMap<String, Value> = blocks(kernel);
    let parts = [&kernel["target"], &kernel["kernel"], &kernel["num_warps"], &kernel["num_stages"]];
    let told: Vec<String> = parts.into_iter().map(canonical_json).collect();
    format!("{} {blocks:?}", told.join(" "))
}

fn blocks(kernel: &Value) -> BTreeMap<String, Value> {
    let constants = kernel["constants"].as_object().into_iter().flatten();
    let constants: BTreeMap<String, Value> = constants.map(|(name, value)| (name.clone(), value.clone())).collect();
    let named = |name: &String| ["BLOCK", "TILE", "GROUP"].iter().any(|word| name.to_uppercase().contains(word));
    let found: BTreeMap<String, Value> =
        constants.iter().filter(|(name, _)| named(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    if found.is_empty() { constants } else { found }
}

fn row(group: &[&Value]) -> KernelRow {
    let first = group[0];
    let text = |name: &str| first[name].as_str().unwrap_or("?").to_owned();
    KernelRow {
        target: text("target"),
        kernel: text("kernel"),
        blocks: blocks(first),
        num_warps: first["num_warps"].clone(),
        num_stages: first["num_stages"].clone(),
        registers: range(group, "registers"),
        spills: range(group, "spills"),
        shared: range(group, "shared"),
        compiled: group.len(),
    }
}

fn range(group: &[&Value], name: &str) -> Option<String> {
    let found: BTreeSet<u64> = group.iter().filter_map(|kernel| kernel[name].as_u64()).collect();
    let (low, high) = (found.first()?, found.last()?);
    Some(if low == high { low.to_string() } else { format!("{low}–{high}") })
}
