//! JSON whose mappings keep their order: inputs and outputs of an op are in torch's.
//!
//! It does not know what the values mean.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// A mapping, in the order of the file.
    Mapping(Vec<(String, Json)>),
}

impl fmt::Display for Json {
    /// Writes the value on one line: JSON, which YAML reads, too.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Flag(flag) => write!(out, "{flag}"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Text(text) => write!(out, "{}", serde_json::Value::from(text.as_str())),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::to_string).collect();
                write!(out, "[{}]", items.join(", "))
            }
            Self::Mapping(entries) => {
                let entry =
                    |(key, value): &(String, Self)| format!("{}: {value}", serde_json::Value::from(key.as_str()));
                let entries: Vec<String> = entries.iter().map(entry).collect();
                write!(out, "{{{}}}", entries.join(", "))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// Reads whatever value stands there.
struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut mapping = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            mapping.push(entry);
        }
        Ok(Json::Mapping(mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_keeps_its_order_and_every_value_is_written_as_it_was() {
        let text = r#"{"weight": ["N", 2, -1, 1.5], "bias": {"optional": true, "dtype": null, "a \"b\"": "c"}}"#;
        assert_eq!(serde_json::from_str::<Json>(text).unwrap().to_string(), text);
    }
}
