//! The text of a Python module with a type for each definition of a schema: a `TypedDict` for an object, an alias for anything else.
//!
//! It knows the part of JSON Schema that is made of the protocol's types, and panics at anything else.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

const HEAD: &str = r#""""What t2t and the harness tell each other, as types: requests, declarations, replies, documents.

Made from the types of `crates/protocol`, as docs/design/harness.md says; nobody edits it. It is imported by type checkers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, final

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
"""Any value of JSON."""
"#;

/// How long a line of code may be, in characters.
const WIDTH: usize = 120;

/// Words that are no names of attributes in Python, of those that are keys.
const KEYWORDS: [&str; 1] = ["class"];

/// Returns the module for a schema's `$defs`.
pub(super) fn module(schema: &Value) -> String {
    let mut types = BTreeMap::new();
    for (name, definition) in schema["$defs"].as_object().expect("a schema has definitions") {
        define(name, definition, &mut types);
    }
    let (mut text, mut was_class) = (HEAD.to_owned(), false);
    for one in types.values() {
        let is_class = one.starts_with("@final");
        text += if is_class || was_class { "\n\n" } else { "\n" };
        text += one;
        was_class = is_class;
    }
    text
}

/// Adds the type of a definition, and those of its alternatives where they have no names of their own.
fn define(name: &str, definition: &Value, types: &mut BTreeMap<String, String>) {
    let text = match (definition["properties"].as_object(), definition["oneOf"].as_array()) {
        (Some(properties), _) => object(name, definition, properties),
        (None, Some(alternatives)) if alternatives.iter().any(|one| one["properties"].is_object()) => {
            let names = alternatives.iter().map(|one| {
                let own = format!("{name}{}", camel(tag(one)));
                define(&own, one, types);
                own
            });
            alias(name, &format!("\"{}\"", names.collect::<Vec<_>>().join(" | ")), definition)
        }
        _ => {
            let found = of(definition);
            alias(name, &if found.starts_with("Literal") { found } else { format!("\"{found}\"") }, definition)
        }
    };
    types.insert(name.to_owned(), text);
}

/// Returns the word that tells an alternative from the others.
fn tag(alternative: &Value) -> &str {
    let properties = alternative["properties"].as_object().expect("an alternative is an object");
    properties.values().find_map(|one| one["const"].as_str()).expect("an alternative has a tag")
}

fn camel(word: &str) -> String {
    let upper = |part: &str| part[..1].to_uppercase() + &part[1..];
    word.split('_').map(upper).collect()
}

fn alias(name: &str, of: &str, definition: &Value) -> String {
    let line = format!("{name}: TypeAlias = {of}");
    let line = match line.split_once('[').filter(|_| line.len() > WIDTH) {
        Some((head, words)) => {
            let words = words.trim_end_matches(']').replace(", ", ",\n    ");
            format!("{head}[\n    {words},\n]")
        }
        None => line,
    };
    format!("{line}\n{}", doc(definition, ""))
}

/// Returns a docstring, or nothing where nothing is said.
fn doc(definition: &Value, indent: &str) -> String {
    match definition["description"].as_str() {
        Some(words) => format!("{indent}\"\"\"{}\"\"\"\n", words.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => String::new(),
    }
}

fn object(name: &str, definition: &Value, properties: &Map<String, Value>) -> String {
    let required: Vec<&str> =
        definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = properties.iter().map(|(key, value)| {
        let found = of(value);
        let found = if required.contains(&key.as_str()) { found } else { format!("NotRequired[{found}]") };
        (key.as_str(), found, value)
    });
    let fields: Vec<_> = fields.collect();
    let is_named = |key: &str| key.chars().all(|one| one.is_alphanumeric() || one == '_') && !KEYWORDS.contains(&key);
    if fields.iter().all(|(key, ..)| is_named(key)) {
        let lines = fields.iter().map(|(key, found, value)| format!("    {key}: {found}\n{}", doc(value, "    ")));
        return format!("@final\nclass {name}(TypedDict):\n{}\n{}", doc(definition, "    "), lines.collect::<String>());
    }
    let lines = fields.iter().map(|(key, found, _)| format!("        \"{key}\": \"{found}\",\n"));
    let lines: String = lines.collect();
    format!("{name} = TypedDict(\n    \"{name}\",\n    {{\n{lines}    }},\n)\n{}", doc(definition, ""))
}

/// Returns the type of a schema as Python writes it.
fn of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.trim_start_matches("#/$defs/").to_owned();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(alternatives) = schema[key].as_array() {
            return union(alternatives.iter().map(of));
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("{word}")).collect();
        return format!("Literal[{}]", words.join(", "));
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("Literal[\"{word}\"]");
    }
    match &schema["type"] {
        Value::String(one) => named(one, schema),
        Value::Array(several) => union(several.iter().filter_map(Value::as_str).map(|one| named(one, schema))),
        _ => "Json".to_owned(),
    }
}

fn named(kind: &str, schema: &Value) -> String {
    match kind {
        "null" => "None".to_owned(),
        "boolean" => "bool".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "string" => "str".to_owned(),
        "array" => match schema["prefixItems"].as_array() {
            Some(items) => format!("list[{}]", union(items.iter().map(of))),
            None => format!("list[{}]", of(&schema["items"])),
        },
        "object" => format!("dict[str, {}]", of(&schema["additionalProperties"])),
        other => panic!("a schema of the protocol has no `{other}`"),
    }
}

/// Returns the union of types, each once, None last; words become one literal.
fn union(types: impl Iterator<Item = String>) -> String {
    let (mut words, mut found, mut is_none) = (Vec::new(), Vec::new(), false);
    for one in types {
        match one.strip_prefix("Literal[").and_then(|rest| rest.strip_suffix(']')) {
            Some(word) => words.push(word.to_owned()),
            None if one == "None" => is_none = true,
            None if found.contains(&one) => {}
            None => found.push(one),
        }
    }
    if !words.is_empty() {
        found.insert(0, format!("Literal[{}]", words.join(", ")));
    }
    if is_none {
        found.push("None".to_owned());
    }
    found.join(" | ")
}
