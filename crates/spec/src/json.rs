//! A node of ops.yaml as JSON.
//!
//! It does not know what the value is for.

use std::collections::BTreeMap;

use super::node::{Node, Value};

/// Returns the value as JSON, mappings ordered by key whatever features `serde_json` was built with.
pub(super) fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Nothing => serde_json::Value::Null,
        Value::Flag(flag) => (*flag).into(),
        Value::Whole(whole) => (*whole).into(),
        Value::Number(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => {
            let ordered: BTreeMap<String, serde_json::Value> =
                entries.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect();
            ordered.into_iter().collect()
        }
    }
}
