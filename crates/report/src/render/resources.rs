//! Resources: what a variant's compiled kernels use, one row for each configuration of each kernel.
//!
//! It does not know how they were compiled. One configuration is compiled once a case, so a row tells the range over them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use t2t_protocol::{CompiledKernel, Resources};

/// A row of the table of resources.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct KernelRow {
    target: String,
    kernel: String,
    /// Block sizes: the constants that name one, or all where none does.
    blocks: BTreeMap<String, Value>,
    /// Of Triton's; those of others are up to each launch.
    num_warps: Option<u64>,
    num_stages: Option<u64>,
    registers: Option<String>,
    spills: Option<String>,
    shared: Option<String>,
    /// How many compiled kernels the row stands for.
    compiled: usize,
}

/// Returns the rows of a document `resources`, in the order of target, kernel and configuration.
#[must_use]
pub(crate) fn rows(resources: &Resources) -> Vec<KernelRow> {
    let mut groups: BTreeMap<String, Vec<&CompiledKernel>> = BTreeMap::new();
    for kernel in &resources.kernels {
        groups.entry(configuration(kernel)).or_default().push(kernel);
    }
    let mut rows: Vec<KernelRow> = groups.values().map(|group| row(group)).collect();
    rows.sort_by(|a, b| (&a.target, &a.kernel).cmp(&(&b.target, &b.kernel)));
    rows
}

/// Returns the devices that a document `resources` speaks of.
#[must_use]
pub(crate) fn targets(resources: &Resources) -> BTreeSet<String> {
    resources.kernels.iter().map(|kernel| kernel.target.clone()).collect()
}

fn configuration(kernel: &CompiledKernel) -> String {
    let CompiledKernel { target, kernel: name, num_warps, num_stages, .. } = kernel;
    format!("{target:?} {name:?} {num_warps} {num_stages} {:?}", blocks(kernel))
}

fn blocks(kernel: &CompiledKernel) -> BTreeMap<String, Value> {
    let named = |name: &String| ["BLOCK", "TILE", "GROUP"].iter().any(|word| name.to_uppercase().contains(word));
    let constants = kernel.constants.iter();
    let found: BTreeMap<String, Value> =
        constants.filter(|(name, _)| named(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    if found.is_empty() { kernel.constants.clone() } else { found }
}

fn row(group: &[&CompiledKernel]) -> KernelRow {
    let first = group[0];
    KernelRow {
        target: first.target.clone(),
        kernel: first.kernel.clone(),
        blocks: blocks(first),
        num_warps: Some(first.num_warps).filter(|warps| *warps > 0),
        num_stages: Some(first.num_stages).filter(|_| first.num_warps > 0),
        registers: range(group, |kernel| kernel.registers),
        spills: range(group, |kernel| kernel.spills),
        shared: range(group, |kernel| Some(kernel.shared)),
        compiled: group.len(),
    }
}

fn range(group: &[&CompiledKernel], of: fn(&CompiledKernel) -> Option<u64>) -> Option<String> {
    let found: BTreeSet<u64> = group.iter().filter_map(|kernel| of(kernel)).collect();
    let (low, high) = (found.first()?, found.last()?);
    Some(if low == high { low.to_string() } else { format!("{low}–{high}") })
}
