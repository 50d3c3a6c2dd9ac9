//! The table of fields as JSON Schema 2020-12, for editors and for `t2t schema`.
//!
//! It says what the table says. What must hold between two fields (dims, sizes, names of inputs) is not expressible here.

use serde_json::{Map, Value, json};

use super::aliases;
use super::fields::{Absent, Field, Kind, SECTIONS, Section};

/// Returns the JSON Schema of ops.yaml.
#[must_use]
pub fn schema() -> Value {
    let definitions: Map<String, Value> =
        SECTIONS.iter().map(|section| (section.name().to_owned(), of_section(*section))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ops.yaml",
        "$ref": "#/$defs/file",
        "$defs": definitions,
    })
}

fn of_section(section: Section) -> Value {
    let properties: Map<String, Value> =
        section.fields().map(|field| (field.key.to_owned(), of_field(field))).collect();
    let required: Vec<&str> =
        section.fields().filter(|field| matches!(field.absent, Absent::Never(_))).map(|field| field.key).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn of_field(field: &Field) -> Value {
    let mut schema = of_kind(&field.kind);
    schema["description"] = json!(field.meaning);
    if let Absent::Value(default) = field.absent {
        schema["default"] = serde_json::from_str(default).expect("the table's defaults are JSON");
    }
    if field.key == "version" {
        schema["const"] = json!(super::VERSION);
    }
    schema
}

fn of_kind(kind: &Kind) -> Value {
    match kind {
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Whole(least) => json!({"type": "integer", "minimum": least}),
        Kind::Number => json!({"type": "number"}),
        Kind::Amount => json!({"type": "number", "minimum": 0}),
        Kind::Form(form) => json!({"type": "string", "pattern": form.pattern()}),
        Kind::OneOf("dtype", words) => {
            // A tool may write `torch.float16`, an editor offers words.
            json!({"type": "string", "enum": words.iter().copied().chain(aliases::names(words)).collect::<Vec<&str>>()})
        }
        Kind::OneOf(_, words) => json!({"type": "string", "enum": words}),
        Kind::List { of, least, most } if *most == usize::MAX => {
            json!({"type": "array", "items": of_kind(of), "minItems": least})
        }
        Kind::List { of, least, most } => {
            json!({"type": "array", "items": of_kind(of), "minItems": least, "maxItems": most})
        }
        Kind::Set { of, least } => {
            json!({"type": "array", "items": of_kind(of), "minItems": least, "uniqueItems": true})
        }
        Kind::Map { key, of, least, .. } => json!({
            "type": "object", "propertyNames": of_kind(key), "additionalProperties": of_kind(of), "minProperties": least,
        }),
        Kind::Section(section) => json!({"$ref": format!("#/$defs/{}", section.name())}),
        Kind::Either(kinds) => json!({"anyOf": kinds.iter().map(of_kind).collect::<Vec<Value>>()}),
        Kind::Any => json!({}),
    }
}
