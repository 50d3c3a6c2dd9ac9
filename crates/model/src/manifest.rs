//! A manifest: the named facts that an action's result depends on, and their encoding, whose digest is the action key.
//!
//! It does not know where facts come from. docs/design/keys.md has the encoding and its history.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::digest::Digest;

/// The first line of every encoding; a new number makes all results a miss.
const HEADER: &[u8] = b"t2t manifest 1\n";

/// One thing that a result depends on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fact {
    /// A version, a number, a value as canonical JSON.
    Text(String),
    /// The digest of a file, an artifact, a fingerprint.
    Digest(Digest),
}

impl Fact {
    /// Returns the fact that a JSON value is, written canonically.
    #[must_use]
    pub fn json(value: &Value) -> Self {
        Self::Text(canonical_json(value))
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Digest(digest) => f.write_str(&digest.short()),
        }
    }
}

/// The named facts of one action.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manifest {
    /// Fact name → fact.
    pub facts: BTreeMap<String, Fact>,
}

impl Manifest {
    /// Returns the bytes that are hashed and kept.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.facts)
    }

    /// Returns the action key: the digest of the encoding.
    #[must_use]
    pub fn key(&self) -> Digest {
        Digest::of(&self.encode())
    }

    /// Returns the key of the manifest that has these facts, and of two with one name the one in `more`.
    #[must_use]
    pub fn key_with(facts: &BTreeMap<String, Fact>, more: &BTreeMap<String, Fact>) -> Digest {
        Digest::of(&encode(facts.iter().chain(more).collect::<BTreeMap<&String, &Fact>>()))
    }

    /// Returns the manifest that `bytes` encode, or None where they encode none of this version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(HEADER)?;
        let mut facts = BTreeMap::new();
        while !rest.is_empty() {
            let name = String::from_utf8(take(&mut rest)?.to_vec()).ok()?;
            let (tag, after) = rest.split_first()?;
            rest = after;
            facts.insert(name, decoded(*tag, take(&mut rest)?)?);
        }
        Some(Self { facts })
    }
}

/// Puts `facts` in the place of those of the same names in an encoded manifest: what it holds else is not decoded, however many facts it has. None where `bytes` encode no
/// manifest of this version, or one that lacks such a name; they may be changed then.
#[must_use]
pub fn replace(bytes: &mut Vec<u8>, facts: &BTreeMap<String, Fact>) -> Option<Vec<Fact>> {
    bytes.starts_with(HEADER).then_some(())?;
    let mut replaced = Vec::with_capacity(facts.len());
    let mut place = HEADER.len();
    for (name, fact) in facts {
        loop {
            let mut rest = &bytes[place..];
            let is_named = take(&mut rest)? == name.as_bytes();
            let begin = bytes.len() - rest.len();
            let (tag, after) = rest.split_first()?;
            rest = after;
            let body = take(&mut rest)?;
            place = bytes.len() - rest.len();
            if is_named {
                replaced.push(decoded(*tag, body)?);
                let mut new = Vec::new();
                put_fact(&mut new, fact);
                let end = begin + new.len();
                bytes.splice(begin..place, new);
                place = end;
                break;
            }
        }
    }
    Some(replaced)
}

fn decoded(tag: u8, body: &[u8]) -> Option<Fact> {
    match tag {
        0 => Some(Fact::Text(String::from_utf8(body.to_vec()).ok()?)),
        1 => Some(Fact::Digest(<[u8; 32]>::try_from(body).ok()?.into())),
        _ => None,
    }
}

fn encode<'a>(facts: impl IntoIterator<Item = (&'a String, &'a Fact)>) -> Vec<u8> {
    let mut bytes = HEADER.to_vec();
    for (name, fact) in facts {
        put(&mut bytes, name.as_bytes());
        put_fact(&mut bytes, fact);
    }
    bytes
}

fn put_fact(bytes: &mut Vec<u8>, fact: &Fact) {
    let (tag, body) = match fact {
        Fact::Text(text) => (0, text.as_bytes()),
        Fact::Digest(digest) => (1, digest.as_bytes().as_slice()),
    };
    bytes.push(tag);
    put(bytes, body);
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).expect("a fact is shorter than 4 GiB");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(part);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

/// Returns `value` as JSON with sorted keys and no spaces.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    put_json(&mut text, value);
    text
}

fn put_json(text: &mut String, value: &Value) {
    let between = |text: &mut String, place: usize| text.push_str(if place == 0 { "" } else { "," });
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (place, (name, value)) in members.into_iter().enumerate() {
                between(text, place);
                text.push_str(&format!("{}:", Value::from(name.as_str())));
                put_json(text, value);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                between(text, place);
                put_json(text, item);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(pairs: &[(&str, Fact)]) -> Manifest {
        Manifest { facts: pairs.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect() }
    }

    #[test]
    fn decoding_gives_back_what_was_encoded() {
        let made = manifest(&[("a", Fact::Text("1".into())), ("b", Fact::Digest(Digest::of(b"x")))]);
        assert_eq!(Manifest::decode(&made.encode()), Some(made));
    }

    #[test]
    fn the_key_of_facts_in_two_parts_is_that_of_all() {
        let facts = |names: &[&str], text: &str| -> BTreeMap<String, Fact> {
            names.iter().map(|name| ((*name).to_owned(), Fact::Text(text.to_owned()))).collect()
        };
        for more in [&[][..], &["a"], &["b", "d"], &["a", "c", "e"]] {
            let (facts, more) = (facts(&["a", "c"], "one"), facts(more, "two"));
            let whole = Manifest { facts: facts.clone().into_iter().chain(more.clone()).collect() };
            assert_eq!(Manifest::key_with(&facts, &more), whole.key());
        }
    }

    #[test]
    fn facts_that_are_replaced_give_the_encoding_of_the_manifest_that_has_them() {
        let names = ["a", "b", "c", "d"];
        let text = |length: usize| Fact::Text("x".repeat(length));
        let old = manifest(&names.map(|name| (name, text(3))));
        for new in [&["a"][..], &["b", "c"], &["d"], &[], &names] {
            for fact in [text(0), text(3), text(40), Fact::Digest(Digest::of(b"x"))] {
                let facts: BTreeMap<String, Fact> = new.iter().map(|name| ((*name).to_owned(), fact.clone())).collect();
                let mut bytes = old.encode();
                assert_eq!(replace(&mut bytes, &facts), Some(vec![text(3); new.len()]));
                let expected = Manifest { facts: old.facts.clone().into_iter().chain(facts).collect() };
                assert_eq!(bytes, expected.encode());
            }
        }
        let unknown = BTreeMap::from([("bb".to_owned(), text(1))]);
        assert_eq!(replace(&mut old.encode(), &unknown), None);
        let bytes = old.encode();
        assert_eq!(replace(&mut bytes[..bytes.len() - 1].to_vec(), &BTreeMap::from([("d".to_owned(), text(1))])), None);
    }

    #[test]
    fn moving_a_byte_between_name_and_fact_changes_the_key() {
        let left = manifest(&[("ab", Fact::Text("c".into()))]);
        let right = manifest(&[("a", Fact::Text("bc".into()))]);
        assert_ne!(left.key(), right.key());
    }

    #[test]
    fn a_text_is_never_a_digest() {
        let digest = Digest::of(b"x");
        let text = String::from_utf8_lossy(digest.as_bytes()).into_owned();
        assert_ne!(manifest(&[("a", Fact::Digest(digest))]).key(), manifest(&[("a", Fact::Text(text))]).key());
    }

    #[test]
    fn canonical_json_sorts_keys_at_every_depth() {
        let value: Value = serde_json::from_str(r#"{"b":{"d":1,"c":[{"z":1,"y":2}]},"a":1.5}"#).unwrap();
        assert_eq!(canonical_json(&value), r#"{"a":1.5,"b":{"c":[{"y":2,"z":1}],"d":1}}"#);
    }

    #[test]
    fn damaged_bytes_decode_to_nothing_and_never_panic() {
        let bytes = manifest(&[("a", Fact::Text("1".into()))]).encode();
        for cut in 0..bytes.len() {
            if cut != HEADER.len() {
                assert_eq!(Manifest::decode(&bytes[..cut]), None, "cut at {cut}");
            }
        }
    }
}
