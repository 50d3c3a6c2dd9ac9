//! Other names of dtypes: `half`, `fp16`, `torch.float16`. They are resolved before anything else looks at the tree, so that what is written
//! differently and means the same is the same.
//!
//! It knows no op and no place: only where the table of fields has a dtype.

use super::fields::{INPUT_DTYPES, Kind, Section};
use super::node::{Node, Value};

/// What else a dtype is called, by torch, Triton or people.
const ALIASES: &[(&str, &str)] = &[
    ("fp32", "float32"),
    ("f32", "float32"),
    ("float", "float32"),
    ("single", "float32"),
    ("fp16", "float16"),
    ("f16", "float16"),
    ("half", "float16"),
    ("bf16", "bfloat16"),
    ("fp64", "float64"),
    ("f64", "float64"),
    ("double", "float64"),
    ("i8", "int8"),
    ("char", "int8"),
    ("i16", "int16"),
    ("short", "int16"),
    ("i32", "int32"),
    ("int", "int32"),
    ("i64", "int64"),
    ("long", "int64"),
    ("u8", "uint8"),
    ("byte", "uint8"),
    ("boolean", "bool"),
    ("float8_e4m3", "float8_e4m3fn"),
    ("fp8_e4m3", "float8_e4m3fn"),
    ("fp8_e4m3fn", "float8_e4m3fn"),
    ("float8e4nv", "float8_e4m3fn"),
    ("fp8e4nv", "float8_e4m3fn"),
    ("fp8_e5m2", "float8_e5m2"),
    ("float8e5", "float8_e5m2"),
    ("fp8e5", "float8_e5m2"),
];

/// Returns the dtype that `word` is another name of. None for a dtype's own name, and for what is none.
#[must_use]
pub(crate) fn dtype(word: &str) -> Option<&'static str> {
    let bare = word.strip_prefix("torch.").unwrap_or(word);
    let own = INPUT_DTYPES.iter().copied().find(|name| *name == bare && bare != word);
    own.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == bare).map(|(_, name)| *name))
}

/// Returns all other names of the dtypes `of`.
pub(crate) fn names(of: &[&str]) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(_, name)| of.contains(name)).map(|(alias, _)| *alias)
}

/// Writes the names of dtypes in their one form, wherever `root`, a whole ops.yaml, has them.
pub(super) fn resolve(root: &mut Node) {
    section(root, Section::File);
}

fn section(node: &mut Node, section: Section) {
    let Value::Map(entries) = &mut node.value else { return };
    for entry in entries {
        if let Some(field) = section.fields().find(|field| field.key == entry.key) {
            value(&mut entry.node, &field.kind);
        }
    }
}

fn value(node: &mut Node, kind: &Kind) {
    match (kind, &mut node.value) {
        (Kind::Section(of), _) => section(node, *of),
        (Kind::Either(kinds), _) => kinds.iter().for_each(|kind| value(node, kind)),
        (Kind::List { of, .. } | Kind::Set { of, .. }, Value::List(items)) => {
            for item in items {
                value(item, of);
            }
        }
        (Kind::Map { key, of, .. }, Value::Map(entries)) => {
            for entry in entries {
                word(&mut entry.key, key);
                value(&mut entry.node, of);
            }
        }
        (_, Value::Text(text)) => word(text, kind),
        _ => {}
    }
}

fn word(text: &mut String, kind: &Kind) {
    if matches!(kind, Kind::OneOf("dtype", _))
        && let Some(name) = dtype(text)
    {
        name.clone_into(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_is_of_a_dtype_and_is_none_itself() {
        for (alias, name) in ALIASES {
            assert!(INPUT_DTYPES.contains(name) && !INPUT_DTYPES.contains(alias), "{alias}");
            assert_eq!(dtype(alias), Some(*name));
            assert_eq!(dtype(&format!("torch.{alias}")), Some(*name));
        }
        assert_eq!((dtype("float32"), dtype("torch.float32"), dtype("fp8")), (None, Some("float32"), None));
    }
}
