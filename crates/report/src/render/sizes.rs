//! Sizes in the order people read them, and what an analysis says at each.
//!
//! Documents hold sizes by name, so their order is made again here: small, medium, large, then others from the smallest.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

const STANDARD: [&str; 3] = ["small", "medium", "large"];

/// What an op computes and moves at one size.
#[derive(Debug, Serialize)]
pub(crate) struct SizeRow {
    name: String,
    title: String,
    dims: Value,
    outputs: Value,
    flops: Value,
    bytes: Value,
    intensity: Value,
    bound: Value,
}

/// Returns an analysis size by size.
#[must_use]
pub(crate) fn analyzed(analysis: &Value) -> Vec<SizeRow> {
    let names = ordered([(&analysis["sizes"], "dims")]);
    names.into_iter().map(|name| SizeRow::of(&name, &analysis["sizes"][&name])).collect()
}

impl SizeRow {
    fn of(name: &str, size: &Value) -> Self {
        let value = |field: &str| size[field].clone();
        Self {
            name: name.to_owned(),
            title: title(name),
            dims: value("dims"),
            outputs: value("outputs"),
            flops: value("flops"),
            bytes: value("bytes"),
            intensity: value("intensity"),
            bound: value("bound"),
        }
    }
}

/// Returns the names of all sizes in `documents`, each a mapping of sizes with the field that binds the dims.
#[must_use]
pub(crate) fn ordered<'a>(documents: impl IntoIterator<Item = (&'a Value, &'static str)>) -> Vec<String> {
    let mut places = BTreeMap::new();
    for (sizes, binding) in documents {
        for (name, size) in sizes.as_object().into_iter().flatten() {
            let standard = STANDARD.iter().position(|standard| standard == name).unwrap_or(STANDARD.len());
            places.entry(name.clone()).or_insert((standard, volume(&size[binding])));
        }
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

fn volume(binding: &Value) -> u128 {
    let lengths = binding.as_object().into_iter().flat_map(serde_json::Map::values).filter_map(Value::as_u64);
    lengths.fold(1, |volume: u128, length| volume.saturating_mul(u128::from(length)))
}
