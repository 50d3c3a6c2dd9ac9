//! Sizes in the order people read them, and what an analysis says at each.
//!
//! Documents hold sizes by name, so their order is made again here: small, medium, large, then others from the smallest.

use std::collections::BTreeMap;

use serde::Serialize;
use t2t_protocol::{Analysis, AnalyzedSize, Binding};

const STANDARD: [&str; 3] = ["small", "medium", "large"];

/// What an op computes and moves at one size.
#[derive(Debug, Serialize)]
pub(crate) struct SizeRow {
    name: String,
    title: String,
    #[serde(flatten)]
    size: AnalyzedSize,
}

/// Returns an analysis size by size.
#[must_use]
pub(crate) fn analyzed(analysis: &Analysis) -> Vec<SizeRow> {
    let names = ordered(analysis.sizes.iter().map(|(name, size)| (name, &size.dims)));
    let row = |name: String| Some(SizeRow { title: title(&name), size: analysis.sizes.get(&name)?.clone(), name });
    names.into_iter().filter_map(row).collect()
}

/// Returns the names of all sizes, each with the lengths of its dims; the first lengths of a name count.
#[must_use]
pub(crate) fn ordered<'a>(sizes: impl IntoIterator<Item = (&'a String, &'a Binding)>) -> Vec<String> {
    let mut places = BTreeMap::new();
    for (name, binding) in sizes {
        let standard = STANDARD.iter().position(|standard| standard == name).unwrap_or(STANDARD.len());
        places.entry(name.clone()).or_insert((standard, volume(binding)));
    }
    let mut names: Vec<(String, (usize, u128))> = places.into_iter().collect();
    names.sort_by(|(a, at), (b, other)| (at, a).cmp(&(other, b)));
    names.into_iter().map(|(name, _)| name).collect()
}

/// Returns a size's name as a heading: the three standard ones capitalized, others as they are.
#[must_use]
pub(crate) fn title(name: &str) -> String {
    let standard = STANDARD.contains(&name);
    match name.split_at_checked(1) {
        Some((first, rest)) if standard => first.to_uppercase() + rest,
        _ => name.to_owned(),
    }
}

fn volume(binding: &Binding) -> u128 {
    binding.values().fold(1, |volume: u128, length| volume.saturating_mul(u128::from(*length)))
}
