//! A history in part, once it has recalled what is known by a key.

use std::collections::BTreeMap;

use t2t_model::action::{Identity, Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::record::{Outcome, Record};

/// Returns a result of `op`, of one key with all others, that ran for so many milliseconds.
fn record(op: &str, wall_ms: u64) -> Record {
    Record {
        identity: Identity { target: Target::of_op(op, Phase::Analyze), device: None },
        key: Digest::of(b"key"),
        outcome: Outcome::Passed,
        outputs: BTreeMap::new(),
        discovered: BTreeMap::new(),
        deadline_ms: 1,
        wall_ms,
        device_ms: 0,
        circumstances: BTreeMap::new(),
    }
}

#[test]
fn what_is_recalled_is_known_as_in_a_history_that_always_had_it() {
    let lines = [record("add", 1), record("mul", 2), record("add", 3), record("mul", 4), record("add", 5)];
    let mut whole = History::default();
    for line in &lines {
        whole.add(line.clone());
    }
    let mut part = History::default().in_part();
    part.add(lines[4].clone());
    let (key, identity) = (Digest::of(b"key"), |op: &str| record(op, 0).identity);
    assert!(!part.has_all_of(key) && whole.has_all_of(key));
    part.recall(key, lines.clone());
    assert!(part.has_all_of(key) && !part.has_all_of(Digest::of(b"other")));
    for op in ["add", "mul", "sub"] {
        let known = |history: &History| -> Vec<u64> {
            history.known_to(&identity(op), key).map(|record| record.wall_ms).collect()
        };
        assert_eq!(known(&part), known(&whole), "{op}");
    }
    assert_eq!(part.last(&identity("add")).unwrap().wall_ms, 5);
    assert_eq!(part.last(&identity("mul")), None, "nobody's last result changes");
}
