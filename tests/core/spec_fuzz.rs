//! Whatever the bytes of ops.yaml are, reading them ends in a spec or in problems that can be shown.

use proptest::prelude::{Strategy, any, prop};
use t2t_model::problem::render;
use t2t_spec::{Profile, Spec};

use crate::draws;

const REPOSITORY: &str = include_str!("../../ops.yaml");

/// Pieces that mean something to YAML or to the schema.
const PIECES: [&str; 24] = [
    "[",
    "]",
    "{",
    "}",
    ":",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "\t",
    "&a ",
    "*a",
    "'",
    "\"",
    "#",
    "|",
    "!!str ",
    "? ",
    "---\n",
    "<<: ",
    "null",
    ".inf",
    "99999999999999999999",
    "\u{feff}",
];

#[derive(Clone, Debug)]
enum Edit {
    Put(usize, u8),
    Insert(usize, usize),
    Cut(usize, usize),
    Repeat(usize, usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let place = || any::<usize>();
    let edit = proptest::prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Edit::Put(at, byte)),
        (place(), 0..PIECES.len()).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (place(), 1..80_usize).prop_map(|(at, length)| Edit::Cut(at, length)),
        (place(), 1..80_usize).prop_map(|(at, length)| Edit::Repeat(at, length)),
    ];
    prop::collection::vec(edit, 1..12)
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    let end = bytes.len();
    let range = |at: usize, length: usize| (at % (end + 1))..((at % (end + 1)) + length).min(end);
    match *edit {
        Edit::Put(at, byte) if end > 0 => bytes[at % end] = byte,
        Edit::Put(..) => {}
        Edit::Insert(at, piece) => _ = bytes.splice(range(at, 0), PIECES[piece].bytes()).count(),
        Edit::Cut(at, length) => _ = bytes.drain(range(at, length)).count(),
        Edit::Repeat(at, length) => {
            let part = bytes[range(at, length)].to_vec();
            bytes.splice(range(at, 0), part);
        }
    }
}

fn read(bytes: &[u8]) {
    match Spec::parse("ops.yaml", bytes, None) {
        Ok(spec) => spec.ops.iter().for_each(|op| assert_eq!(op.declaration(Profile::Cpu).name, op.name)),
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(render(&problems).starts_with("error: ops.yaml"));
        }
    }
}

/// How many inputs each test draws, where it is no soak, and from which seed.
const CASES: u32 = 256;
const SEED: u64 = 4;

#[test]
fn edits_of_a_good_file_never_panic() {
    draws::fuzz(SEED, CASES, &edits(), |edits| {
        let mut bytes = REPOSITORY.as_bytes().to_vec();
        for edit in &edits {
            apply(&mut bytes, edit);
        }
        read(&bytes);
    });
}

#[test]
fn any_bytes_never_panic() {
    draws::fuzz(SEED, CASES, &prop::collection::vec(any::<u8>(), 0..200), |bytes| read(&bytes));
}
