//! What a journal holds after lines were added, repeated, torn and damaged.

use std::collections::BTreeMap;

use t2t_model::action::{Identity, Phase, Target};

use super::*;

pub(crate) fn record(op: &str, key: u8) -> Record {
    Record {
        identity: Identity { target: Target::of_op(op, Phase::Analyze), device: None },
        key: Digest::of(&[key]),
        outcome: Outcome::Passed,
        outputs: BTreeMap::new(),
        discovered: BTreeMap::new(),
        deadline_ms: 1,
        wall_ms: 1,
        device_ms: 0,
        circumstances: BTreeMap::new(),
    }
}

/// A journal of these records, and what is damaged put between.
fn kept(folder: &Path, lines: &[&str]) -> Journal {
    fs::write(&folder.join("journal"), format!("{HEADER}\n{}", lines.concat()).as_bytes()).unwrap();
    Journal::open(folder)
}

#[test]
fn results_that_came_back_are_the_last_again_and_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, other] = [("add", 1), ("add", 2), ("mul", 1)].map(|(op, key)| record(op, key));
    let [a, b, c] = [&one, &two, &other].map(|record| line(record).unwrap());
    let journal = kept(folder.path(), &[&a, &b, &c, &a, &b, &a]);
    let loaded = journal.load().unwrap();
    assert_eq!(loaded.damaged, 0);
    assert_eq!(**loaded.history.last(&one.identity).unwrap(), one);
    assert_eq!(**loaded.history.last(&other.identity).unwrap(), other);
    let places = journal.places().unwrap();
    let targets: Vec<&str> = places.iter().map(Named::target).collect();
    assert_eq!(targets, ["mul:analyze", "add:analyze", "add:analyze"]);
    let read = journal.load_from(&places.into_iter().map(|line| line.place).collect::<Vec<_>>()).unwrap();
    assert_eq!(**read.history.last(&one.identity).unwrap(), one);
    assert_eq!(journal.lines().unwrap().records.len(), 6);
}

#[test]
fn what_was_added_to_a_journal_is_told_unless_it_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [("add", 1), ("mul", 2)].map(|(op, key)| record(op, key));
    let mut journal = kept(folder.path(), &[&line(&one).unwrap()]);
    let extent = journal.extent(None).unwrap();
    assert_eq!(journal.added_since(&extent), Some(vec![]));
    journal.add(&two).unwrap();
    let added = journal.added_since(&extent).unwrap();
    assert_eq!(added.iter().map(|(record, _)| record).collect::<Vec<_>>(), [&two]);
    assert_eq!(journal.records_at(&[added[0].1]).unwrap(), [Some(two.clone())]);
    let named = &journal.places().unwrap()[1];
    assert_eq!((named.target(), named.key, named.place), ("mul:analyze", two.key, added[0].1));
    let whole = journal.bytes().unwrap();
    std::fs::File::options().append(true).open(folder.path().join("journal")).unwrap().write_all(b"torn").unwrap();
    assert_eq!(journal.added_since(&extent), None, "a line is torn");
    let other = kept(folder.path(), &[&line(&two).unwrap(), &line(&one).unwrap()]);
    assert_eq!(other.added_since(&extent), None, "it was written anew");
    fs::write(&folder.path().join("journal"), &whole[..whole.len() - 1]).unwrap();
    assert_eq!(other.added_since(&extent), None);
}

#[test]
fn what_is_added_again_is_written_when_it_is_asked_for_and_before_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, other] = [("add", 1), ("add", 2), ("mul", 1)].map(|(op, key)| record(op, key));
    let mut journal = Journal::open(folder.path());
    journal.write_added().unwrap();
    assert!(journal.bytes().unwrap().is_empty(), "nothing was added");
    journal.add_again(&one).unwrap();
    journal.add_again(&two).unwrap();
    assert!(journal.bytes().unwrap().is_empty());
    journal.add(&other).unwrap();
    assert_eq!(journal.lines().unwrap().records, [one.clone(), two.clone(), other.clone()]);
    journal.add_again(&one).unwrap();
    journal.write_added().unwrap();
    assert_eq!(journal.lines().unwrap().records, [one.clone(), two, other, one]);
}

#[test]
fn a_torn_line_is_ended_and_a_foreign_journal_starts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let one = record("add", 1);
    for (before, damaged) in [("", 0), (HEADER, 0), ("t2t journal 999\nx\n", 0), ("t2t journal 1\nx", 1)] {
        fs::write(&folder.path().join("journal"), before.as_bytes()).unwrap();
        Journal::open(folder.path()).add(&one).unwrap();
        let lines = Journal::open(folder.path()).lines().unwrap();
        assert_eq!((lines.records, lines.damaged.len()), (vec![one.clone()], damaged), "{before}");
    }
}

#[test]
fn every_damaged_line_counts_and_takes_no_whole_one_along() {
    let folder = tempfile::tempdir().unwrap();
    let one = record("add", 1);
    let whole = line(&one).unwrap();
    // The check of the whole line, and another body.
    let damaged = whole.replace("\"wall_ms\":1", "\"wall_ms\":2");
    for lines in [[&whole, &damaged, &damaged], [&damaged, &damaged, &whole], [&damaged, &whole, &damaged]] {
        let loaded = kept(folder.path(), &lines.map(String::as_str)).load().unwrap();
        assert_eq!(loaded.damaged, 2);
        assert_eq!(**loaded.history.last(&one.identity).unwrap(), one);
    }
    let loaded = kept(folder.path(), &["x\n", "x\n", "\n", &whole]).load().unwrap();
    assert_eq!(loaded.damaged, 3);
    assert!(loaded.history.last(&one.identity).is_some());
}
