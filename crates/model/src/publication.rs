//! A publication: records with their manifests and documents as one JSON text for people, diffs and machines that lack the device.
//!
//! Reading verifies everything that has a digest. It does not know where the text lies, nor when a record still stands.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::action::Target;
use crate::digest::Digest;
use crate::manifest::{Fact, Manifest, canonical_json};
use crate::record::Record;

/// The format of the text; another number is read as damage. 1: first.
pub(crate) const VERSION: u32 = 1;

/// Artifacts whose bytes are not published, only their digests: compiled kernels.
const LEFT_OUT: [&str; 1] = ["triton.tar.gz"];

/// The artifact that is a page for people, published as a file of its own.
pub const PAGE: &str = "page";

/// One record, with all that its digests stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// Its manifest, whose digest is the record's key.
    pub manifest: Manifest,
    /// Artifact name → bytes.
    pub documents: BTreeMap<String, Vec<u8>>,
}

/// What a text held.
#[derive(Debug, Default)]
pub struct Read {
    /// The records that are whole.
    pub entries: Vec<Entry>,
    /// What is wrong with the others, a line each.
    pub faults: Vec<String>,
}

/// Returns whether the bytes of this artifact are published.
#[must_use]
pub fn is_published(artifact: &str) -> bool {
    !LEFT_OUT.contains(&artifact)
}

/// Returns the text that holds `entries`, in their order: the same bytes for the same entries.
#[must_use]
pub fn write(entries: &[Entry]) -> String {
    let records: Vec<Value> = entries.iter().map(entry).collect();
    format!("{:#}\n", json!({"version": VERSION, "records": records}))
}

fn entry(entry: &Entry) -> Value {
    let record = record(&entry.record);
    let documents = entry.documents.iter().filter(|(name, _)| *name != PAGE);
    json!({
        "checksum": checksum(&record).to_string(),
        "record": record,
        "facts": entry.manifest.facts.iter().map(|(name, fact)| (name.clone(), written(fact))).collect::<Map<_, _>>(),
        "documents": documents.map(|(name, bytes)| (name.clone(), document(bytes))).collect::<Map<_, _>>(),
    })
}

fn record(record: &Record) -> Value {
    serde_json::to_value(record).expect("a record is JSON")
}

fn checksum(record: &Value) -> Digest {
    Digest::of(canonical_json(record).as_bytes())
}

fn written(fact: &Fact) -> Value {
    match fact {
        Fact::Text(text) => Value::from(text.as_str()),
        Fact::Digest(digest) => json!({"digest": digest.to_string()}),
    }
}

/// Returns bytes as JSON where they are its canonical form, else as text.
fn document(bytes: &[u8]) -> Value {
    let value = serde_json::from_slice::<Value>(bytes).ok();
    let value = value.filter(|value| canonical_json(value).as_bytes() == bytes);
    value.map_or_else(|| json!({"text": String::from_utf8_lossy(bytes)}), |value| json!({"json": value}))
}

/// Returns what `text` holds. `page` gives the bytes of the page of an action, which lie elsewhere.
///
/// A record counts only where its checksum, its key and the digest of each published artifact are right.
#[must_use]
pub fn read(text: &str, page: &dyn Fn(&Target) -> Option<Vec<u8>>) -> Read {
    read_part(text, page, &|_| true)
}

/// Returns what `text` holds of the targets whose names are `wanted`, but for what has a page. The others are not verified.
#[must_use]
pub fn read_of(text: &str, wanted: &dyn Fn(&str) -> bool) -> Read {
    read_part(text, &|_| None, wanted)
}

fn read_part(text: &str, page: &dyn Fn(&Target) -> Option<Vec<u8>>, wanted: &dyn Fn(&str) -> bool) -> Read {
    let mut read = Read::default();
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            read.faults.push(format!("not JSON: {error}"));
            return read;
        }
    };
    let Some(records) = value["records"].as_array().filter(|_| value["version"] == VERSION) else {
        read.faults.push(format!("no records of version {VERSION}"));
        return read;
    };
    for (number, value) in records.iter().enumerate() {
        if !value["record"]["identity"]["target"].as_str().is_none_or(wanted) {
            continue;
        }
        match verified(value, page) {
            Ok(entry) => read.entries.push(entry),
            Err(fault) => read.faults.push(format!("{}: {fault}", name(value, number))),
        }
    }
    read
}

/// Returns what a damaged record is called: the target that it names, else its place in the text.
fn name(value: &Value, number: usize) -> String {
    let target = value["record"]["identity"]["target"].as_str();
    target.map_or_else(|| format!("record {}", number + 1), |target| format!("`{target}`"))
}

fn verified(value: &Value, page: &dyn Fn(&Target) -> Option<Vec<u8>>) -> Result<Entry, String> {
    if value["checksum"].as_str() != Some(&checksum(&value["record"]).to_string()) {
        return Err("the record does not match its checksum".to_owned());
    }
    let record: Record =
        serde_json::from_value(value["record"].clone()).map_err(|error| format!("no record: {error}"))?;
    let manifest = manifest(&value["facts"]).ok_or("its facts cannot be read")?;
    if manifest.key() != record.key {
        return Err("its facts do not match its key".to_owned());
    }
    let mut documents = BTreeMap::new();
    for (name, blob) in record.outputs.iter().filter(|(name, _)| is_published(name)) {
        let bytes = if name == PAGE { page(&record.identity.target) } else { bytes(&value["documents"][name]) };
        let bytes = bytes.ok_or_else(|| format!("it has no `{name}`"))?;
        if Digest::of(&bytes) != blob.digest {
            return Err(format!("its `{name}` does not match its digest"));
        }
        documents.insert(name.clone(), bytes);
    }
    Ok(Entry { record, manifest, documents })
}

fn manifest(facts: &Value) -> Option<Manifest> {
    let read = |fact: &Value| match fact {
        Value::String(text) => Some(Fact::Text(text.clone())),
        other => other["digest"].as_str()?.parse().ok().map(Fact::Digest),
    };
    let facts = facts.as_object()?.iter().map(|(name, fact)| Some((name.clone(), read(fact)?)));
    facts.collect::<Option<_>>().map(|facts| Manifest { facts })
}

fn bytes(document: &Value) -> Option<Vec<u8>> {
    let document = document.as_object()?;
    let json = document.get("json").map(canonical_json);
    json.or_else(|| document.get("text")?.as_str().map(str::to_owned)).map(String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{DeviceClass, Identity, Phase};
    use crate::record::{Blob, Outcome};

    fn entry_with(documents: &[(&str, &str)]) -> Entry {
        let facts =
            [("a".to_owned(), Fact::Text("{\"b\":1}".to_owned())), ("c".to_owned(), Fact::Digest(Digest::of(b"c")))];
        let manifest = Manifest { facts: facts.into() };
        let documents: BTreeMap<String, Vec<u8>> =
            documents.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
        let blob = |bytes: &Vec<u8>| Blob { digest: Digest::of(bytes), size: bytes.len() as u64 };
        let target = Target::of_variant("softmax", "v1", Phase::Bench);
        Entry {
            record: Record {
                identity: Identity { target, device: Some(DeviceClass::Interpreter) },
                key: manifest.key(),
                outcome: Outcome::Rejected { class: "mismatch".to_owned() },
                outputs: documents.iter().map(|(name, bytes)| (name.clone(), blob(bytes))).collect(),
                discovered: BTreeMap::new(),
                deadline_ms: 1,
                wall_ms: 2,
                device_ms: 3,
                circumstances: BTreeMap::new(),
            },
            manifest,
            documents,
        }
    }

    fn without_pages(_: &Target) -> Option<Vec<u8>> {
        None
    }

    #[test]
    fn what_is_written_is_read_again_whatever_the_documents_are() {
        let documents = [("bench", r#"{"ms":0.1,"n":[1e-7,6.02e+23]}"#), ("note", "no { JSON\n"), ("spaced", "{ }")];
        let entry = entry_with(&documents);
        let read = read(&write(std::slice::from_ref(&entry)), &without_pages);
        assert_eq!((read.entries, read.faults), (vec![entry], vec![]));
    }

    #[test]
    fn every_float_comes_back_to_its_last_digit() {
        let mut bits: u64 = 0x3f50_624d_d2f1_a9fc;
        for _ in 0..2_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits >> 2 | 0x3000_0000_0000_0000);
            let text = canonical_json(&json!({"ms": value}));
            assert_eq!(document(text.as_bytes())["json"]["ms"], json!(value), "{text}");
        }
    }

    #[test]
    fn compiled_kernels_are_known_by_digest_alone() {
        let mut entry = entry_with(&[("resources", "{}"), ("triton.tar.gz", "bytes")]);
        entry.documents.remove("triton.tar.gz");
        let read = read(&write(std::slice::from_ref(&entry)), &without_pages);
        assert_eq!((read.entries, read.faults), (vec![entry], vec![]));
    }

    #[test]
    fn a_page_is_taken_from_its_own_file() {
        let entry = entry_with(&[("page", "# softmax\n")]);
        let text = write(std::slice::from_ref(&entry));
        assert!(!text.contains("# softmax"));
        assert_eq!(read(&text, &|_| Some(b"# softmax\n".to_vec())).entries, [entry]);
        assert_eq!(
            read(&text, &|_| Some(b"# edited\n".to_vec())).faults,
            ["`softmax/v1:bench`: its `page` does not match its digest"]
        );
        assert_eq!(read(&text, &without_pages).faults, ["`softmax/v1:bench`: it has no `page`"]);
    }

    #[test]
    fn every_planted_damage_is_found_and_spares_the_other_records() {
        let other = entry_with(&[("bench", r#"{"ms":7}"#)]);
        let text = write(&[entry_with(&[("bench", r#"{"ms":8}"#)]), other.clone()]);
        for (from, to, fault) in [
            (r#""ms": 8"#, r#""ms": 9"#, "`softmax/v1:bench`: its `bench` does not match its digest"),
            ("mismatch", "timeout", "`softmax/v1:bench`: the record does not match its checksum"),
            (r#""wall_ms": 2"#, r#""wall_ms": 1"#, "`softmax/v1:bench`: the record does not match its checksum"),
            (r#"{\"b\":1}"#, r#"{\"b\":2}"#, "`softmax/v1:bench`: its facts do not match its key"),
            (r#""digest": "#, r#""digits": "#, "`softmax/v1:bench`: its facts cannot be read"),
            (r#""checksum": ""#, r#""checksum": "0"#, "`softmax/v1:bench`: the record does not match its checksum"),
        ] {
            let damaged = text.replacen(from, to, 1);
            assert_ne!(damaged, text, "{from}");
            let read = read(&damaged, &without_pages);
            assert_eq!((read.entries, read.faults), (vec![other.clone()], vec![fault.to_owned()]), "{from}");
        }
    }

    #[test]
    fn a_text_that_is_cut_anywhere_holds_nothing() {
        let text = write(&[entry_with(&[("bench", r#"{"ms":8}"#)])]);
        for cut in 0..text.trim_end().len() {
            let read = read(&text[..cut], &without_pages);
            assert!(read.entries.is_empty() && read.faults.len() == 1, "cut at {cut}");
        }
        assert_eq!(read("{}", &without_pages).faults, ["no records of version 1"]);
    }
}
