//! Whatever bytes they are given, the readers of what t2t keeps and is told neither panic nor take long, and what they accept they write as it was.
//!
//! `tests/corpus/KIND/` has bytes to begin with: good ones, and those that once made trouble. Each is read as it is, and edited at random.

use std::fs;

use proptest::prelude::{Strategy, any, prop};
use serde::de::DeserializeOwned;
use t2t_model::action::{Phase, Target};
use t2t_model::manifest::Manifest;
use t2t_model::publication;
use t2t_model::record::Record;
use t2t_model::signature::{Purpose, SigningKey, Trust, TrustedKey};
use t2t_protocol::{FrameError, FrameReader, FromWorker, ToWorker, encode};
use t2t_spec::Spec;
use t2t_store::store::journal::Lines;

use crate::draws;

/// The folder of the bytes to begin with.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

/// What reads bytes.
type Reader = fn(&[u8]);

/// What reads the bytes of each folder of the corpus.
const READERS: [(&str, Reader); 8] = [
    ("ops", ops),
    ("journal", journal),
    ("record", record),
    ("manifest", manifest),
    ("frame", frame),
    ("target", target),
    ("publication", published),
    ("signature", signature),
];

fn ops(bytes: &[u8]) {
    if let Err(problems) = Spec::parse("ops.yaml", bytes, None) {
        assert!(!problems.is_empty());
    }
}

fn journal(bytes: &[u8]) {
    let lines = Lines::read(bytes);
    // Every line behind the first is a record or a damage.
    let count = String::from_utf8_lossy(bytes).lines().count();
    if lines.is_foreign {
        assert!(lines.records.is_empty());
    } else {
        assert_eq!(lines.records.len() + lines.damaged.len(), count.saturating_sub(1));
    }
    let written = Lines::write(&lines.records).unwrap();
    assert_eq!(Lines::read(&written), Lines { records: lines.records, ..Lines::default() });
}

fn record(bytes: &[u8]) {
    if let Ok(record) = serde_json::from_slice::<Record>(bytes) {
        let again = serde_json::to_vec(&record).unwrap();
        assert_eq!(serde_json::from_slice::<Record>(&again).unwrap(), record);
    }
}

fn manifest(bytes: &[u8]) {
    if let Some(manifest) = Manifest::decode(bytes) {
        assert_eq!(Manifest::decode(&manifest.encode()), Some(manifest));
    }
}

/// Frames come in any pieces, and both ends read the same.
fn frame(bytes: &[u8]) {
    let read = |size: usize| {
        let mut reader = FrameReader::default();
        let mut told = Vec::new();
        for part in bytes.chunks(size) {
            reader.push(part);
            loop {
                match reader.next_message::<serde_json::Value>() {
                    Ok(Some(message)) => {
                        understood(&message);
                        told.push(message);
                    }
                    Ok(None) => break,
                    Err(FrameError::TooLong(_)) => return told,
                    // Its body is passed over.
                    Err(FrameError::Json(_)) => {}
                }
            }
        }
        told
    };
    let whole = read(bytes.len().max(1));
    assert_eq!(read(7), whole);
}

/// A message that either end understands is the same when it is sent on.
fn understood(message: &serde_json::Value) {
    if let Ok(known) = serde_json::from_value::<FromWorker>(message.clone()) {
        let text = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::to_string(&serde_json::from_str::<FromWorker>(&text).unwrap()).unwrap(), text);
        assert!(encode(&known).is_ok());
    }
    if let Ok(known) = serde_json::from_value::<ToWorker>(message.clone()) {
        let text = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::to_string(&serde_json::from_str::<ToWorker>(&text).unwrap()).unwrap(), text);
    }
}

fn target(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    if let Ok(target) = Target::try_from(text) {
        let written = target.to_string();
        assert_eq!(Target::try_from(written.clone()), Ok(target), "{written}");
    }
}

fn published(bytes: &[u8]) {
    let read = publication::read(&String::from_utf8_lossy(bytes), &|_| None);
    let written = publication::write(&read.entries);
    assert_eq!(publication::read(&written, &|_| None).entries, read.entries);
}

/// Returns trust in the key of the corpus.
fn trust() -> Trust {
    let line = fs::read_to_string(format!("{CORPUS}/signature/key")).unwrap();
    Trust::of(vec![TrustedKey::parse(&line).unwrap()])
}

fn signature(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let good = fs::read_to_string(format!("{CORPUS}/signature/good")).unwrap();
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    if trust().verify(Purpose::Record, b"a message", &text).is_ok() {
        assert_eq!(letters(&text), letters(&good), "nobody made another one");
    }
    if let Ok(key) = TrustedKey::parse(&text) {
        assert!(!key.signer().name.contains(char::is_control));
    }
    assert!(SigningKey::read(&text, None).is_err());
}

/// Returns the files of a folder of the corpus, in order.
fn corpus(kind: &str) -> Vec<Vec<u8>> {
    let folder = format!("{CORPUS}/{kind}");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn everything_in_the_corpus_is_read_and_no_folder_is_forgotten() {
    let mut folders: Vec<String> =
        fs::read_dir(CORPUS).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    let mut known: Vec<&str> = READERS.iter().map(|(kind, _)| *kind).collect();
    known.sort_unstable();
    assert_eq!(folders, known);
    for (kind, read) in READERS {
        let seeds = corpus(kind);
        assert!(seeds.len() >= 2, "{kind} has nothing good and nothing bad");
        for bytes in &seeds {
            read(bytes);
        }
    }
}

#[test]
fn the_good_seeds_are_good() {
    assert!(corpus("ops").iter().any(|bytes| Spec::parse("ops.yaml", bytes, None).is_ok()));
    assert!(corpus("journal").iter().any(|bytes| Lines::read(bytes).records.len() > 1));
    assert!(corpus("record").iter().any(|bytes| serde_json::from_slice::<Record>(bytes).is_ok()));
    assert!(corpus("manifest").iter().any(|bytes| Manifest::decode(bytes).is_some_and(|read| read.facts.len() > 3)));
    let target = |bytes: &Vec<u8>| Target::try_from(String::from_utf8(bytes.clone()).unwrap()).is_ok();
    assert!(corpus("target").iter().any(target));
    let verified =
        |bytes: &Vec<u8>| trust().verify(Purpose::Record, b"a message", &String::from_utf8_lossy(bytes)).is_ok();
    assert_eq!(corpus("signature").iter().filter(|bytes| verified(bytes)).count(), 1);
    assert!(corpus("frame").iter().any(|bytes| messages::<ToWorker>(bytes) == 4));
    assert!(corpus("frame").iter().any(|bytes| messages::<FromWorker>(bytes) == 5));
}

/// Returns how many messages of this kind the bytes begin with.
fn messages<T: DeserializeOwned>(bytes: &[u8]) -> usize {
    let mut reader = FrameReader::default();
    reader.push(bytes);
    std::iter::from_fn(|| reader.next_message::<T>().ok().flatten()).count()
}

#[derive(Clone, Debug)]
enum Edit {
    Put(usize, u8),
    Insert(usize, Vec<u8>),
    Cut(usize, usize),
    Repeat(usize, usize),
    Move(usize, usize, usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let place = || any::<usize>();
    let edit = proptest::prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Edit::Put(at, byte)),
        (place(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        (place(), 1..80_usize).prop_map(|(at, length)| Edit::Cut(at, length)),
        (place(), 1..300_usize).prop_map(|(at, length)| Edit::Repeat(at, length)),
        (place(), place(), 1..80_usize).prop_map(|(from, to, length)| Edit::Move(from, to, length)),
    ];
    prop::collection::vec(edit, 1..8)
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    let end = bytes.len();
    let range = |at: usize, length: usize| (at % (end + 1))..((at % (end + 1)) + length).min(end);
    match edit {
        Edit::Put(at, byte) if end > 0 => bytes[at % end] = *byte,
        Edit::Put(..) => {}
        Edit::Insert(at, piece) => _ = bytes.splice(range(*at, 0), piece.iter().copied()).count(),
        Edit::Cut(at, length) => _ = bytes.drain(range(*at, *length)).count(),
        Edit::Repeat(at, length) => {
            let part = bytes[range(*at, *length)].to_vec();
            bytes.splice(range(*at, 0), part);
        }
        Edit::Move(from, to, length) => {
            let part: Vec<u8> = bytes.drain(range(*from, *length)).collect();
            let at = to % (bytes.len() + 1);
            bytes.splice(at..at, part);
        }
    }
}

/// How many inputs each test draws, where it is no soak, and from which seed.
const CASES: u32 = 400;
const SEED: u64 = 4;

#[test]
fn edits_of_the_corpus_never_panic() {
    let seeds = READERS.map(|(name, _)| corpus(name));
    draws::fuzz(SEED, CASES, &(0..READERS.len(), any::<usize>(), edits()), |(kind, seed, edits)| {
        let mut bytes = seeds[kind][seed % seeds[kind].len()].clone();
        for edit in &edits {
            apply(&mut bytes, edit);
        }
        READERS[kind].1(&bytes);
    });
}

#[test]
fn any_bytes_never_panic_any_reader() {
    draws::fuzz(SEED, CASES, &prop::collection::vec(any::<u8>(), 0..200), |bytes| {
        for (_, read) in READERS {
            read(&bytes);
        }
    });
}

#[test]
fn targets_of_plain_names_are_read_as_they_are_written() {
    let inputs = ("[a-z][a-z0-9_]{0,9}", prop::option::of("[a-z0-9_]{1,9}"), 0..Phase::ALL.len());
    draws::fuzz(SEED, CASES, &inputs, |(op, variant, phase)| {
        let phase = Phase::ALL[phase];
        let of_build = [Phase::Calibrate, Phase::Summary].contains(&phase);
        let target = match variant {
            _ if of_build => Target::of_op("", phase),
            Some(variant) => Target::of_variant(&op, &variant, phase),
            None => Target::of_op(&op, phase),
        };
        assert_eq!(Target::try_from(target.to_string()), Ok(target));
    });
}

/// Lengths that are claimed are not believed: nothing so long is asked of memory.
#[test]
fn a_claim_of_gigabytes_takes_no_memory() {
    let claim = u32::MAX.to_le_bytes();
    manifest(&[b"t2t manifest 1\n", &claim[..], b"x"].concat());
    frame(&[&claim[..], b"x"].concat());
    let mut reader = FrameReader::default();
    reader.push(&(64_u32 << 20).to_be_bytes());
    assert!(matches!(reader.next_message::<serde_json::Value>(), Ok(None)));
}

/// Nesting as deep as a text can write it ends in an answer, not in a stack that runs out.
#[test]
fn deep_nesting_ends_in_an_answer() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{a: ", "}"), ("- ", "")] {
        let text = open.repeat(100_000) + "1" + &close.repeat(100_000);
        for (kind, read) in READERS {
            println!("{kind} {open}");
            read(text.as_bytes());
        }
    }
}
