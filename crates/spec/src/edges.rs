//! The edges of an op that are not asked for: which, and why.
//!
//! It does not know which inputs an edge has.

use std::collections::BTreeMap;

use super::layers::Layers;
use super::parse::Node;

/// The kinds of edges that a check has of its own.
pub(crate) const EDGES: &[&str] = &[
    "empty",
    "one",
    "transposed",
    "strided",
    "large",
    "equal-rows",
    "special",
    "broadcast",
    "blocks",
    "shapes",
    "literals",
    "drawn",
    "kwargs",
    "offset",
    "infinite-rows",
    "zeros",
    "cancelling",
    "denormal",
    "limits",
    "small",
    "gradients",
    "upstream",
];

/// Returns the edges that are off, each with its reason if there is one, layer over layer.
pub(super) fn off(layers: &Layers) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    for entry in layers.upward().filter_map(|layer| layer.node.at(&["check", "edges"])).flat_map(Node::entries) {
        if entry.node.text() == Some("on") {
            found.remove(&entry.key);
        } else {
            found.insert(entry.key.clone(), entry.node.get("off").and_then(Node::text).map(str::to_owned));
        }
    }
    found
}
