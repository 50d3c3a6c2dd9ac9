//! Compaction. A result that comes back is appended to the journal unchanged, so going back and forth between revisions fills it with repeated lines. This says
//! what the journal is without them, and when rewriting it pays.
//!
//! Only lines that a later one repeats byte for byte are dropped, so every reader sees the same history. It does not know what a record says, and touches no
//! file.

use std::collections::HashSet;

use super::{HEADER, whole};

/// Up to this many repeats cost less to read than the journal costs to write.
const FEW: usize = 1024;

/// Returns whether a journal with so many `repeats`, whole lines that a later one repeats, and so many `others` should be rewritten. It should if most of it is
/// repeats, so each line that is ever added is rewritten about once.
pub(crate) fn is_worn(repeats: usize, others: usize) -> bool {
    repeats > FEW && repeats > others
}

/// Returns the journal without whole lines that a later one repeats, in their order. A damaged line is evidence, and stays as often as it is there. None if
/// `bytes` are not a journal with lines.
pub(crate) fn without_repeats(bytes: &[u8]) -> Option<Vec<u8>> {
    let lines = bytes.strip_prefix(HEADER.as_bytes())?.strip_prefix(b"\n").filter(|lines| !lines.is_empty())?;
    let mut later = HashSet::new();
    let is_whole = |line: &[u8]| std::str::from_utf8(line).ok().and_then(whole).is_some();
    let lines = lines.strip_suffix(b"\n").unwrap_or(lines).split(|byte| *byte == b'\n');
    let mut kept: Vec<&[u8]> = lines.rev().filter(|line| later.insert(*line) || !is_whole(line)).collect();
    kept.push(HEADER.as_bytes());
    kept.reverse();
    let mut bytes = kept.join(&b'\n');
    bytes.push(b'\n');
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::tests::record;
    use super::super::{Journal, Lines, line};
    use super::*;
    use crate::fs;

    /// Returns what is left of a journal of these lines.
    fn left(lines: &[&str]) -> String {
        let bytes = without_repeats(format!("{HEADER}\n{}", lines.concat()).as_bytes()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_a_later_line_repeats_goes_and_reading_tells_the_same() {
        let [a, b, c] = [("add", 1), ("add", 2), ("mul", 1)].map(|(op, key)| line(&record(op, key)).unwrap());
        assert_eq!(left(&[&a, &b, &c, &a, &b, &a]), format!("{HEADER}\n{c}{b}{a}"));
        let whole = [&a, &b, &c, &a].map(String::as_str).concat();
        let (before, after) =
            (Lines::read(format!("{HEADER}\n{whole}").as_bytes()), Lines::read(left(&[&whole]).as_bytes()));
        assert_eq!(before.live(), after.live());
        assert_eq!(left(&[&c, &a]), format!("{HEADER}\n{c}{a}"));
    }

    #[test]
    fn damage_stays_as_often_as_it_is_there_and_where_it_is() {
        let a = line(&record("add", 1)).unwrap();
        let other = a.replace("\"wall_ms\":1", "\"wall_ms\":2");
        assert_eq!(
            left(&["x\n", &a, "x\n", &other, "\n", &other, "\n", &a]),
            format!("{HEADER}\nx\nx\n{other}\n{other}\n{a}")
        );
        // A last line that was torn, and one that only lacks its end.
        assert_eq!(left(&[&a, &a[..20]]), format!("{HEADER}\n{a}{}\n", &a[..20]));
        assert_eq!(left(&[&a, &a[..a.len() - 1]]), format!("{HEADER}\n{a}"));
        let bytes = [HEADER.as_bytes(), b"\n\xff\n\xff\n", a.as_bytes(), a.as_bytes()].concat();
        assert_eq!(without_repeats(&bytes).unwrap(), [HEADER.as_bytes(), b"\n\xff\n\xff\n", a.as_bytes()].concat());
    }

    #[test]
    fn what_is_no_journal_or_has_no_line_is_left_as_it_is() {
        for bytes in ["", HEADER, "t2t journal 1\n", "t2t journal 999\nx\nx\n", "x\nx\n"] {
            assert_eq!(without_repeats(bytes.as_bytes()), None, "{bytes:?}");
        }
    }

    #[test]
    fn however_often_revisions_come_back_the_journal_stays_short_and_tells_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let [short, long] = ["short", "long"].map(|name| folder.path().join(name));
        fs::make_folder(&long).unwrap();
        let revisions = [1, 2].map(|key| (0..200).map(|op| record(&format!("op{op}"), key)).collect::<Vec<_>>());
        for number in 0..60 {
            let [mut journal, mut all] = [&short, &long].map(|cache| Journal::open(cache));
            if journal.load().unwrap().is_worn {
                journal.shed().unwrap();
                assert!(!journal.load().unwrap().is_worn);
            }
            for record in &revisions[number % 2] {
                journal.add(record).unwrap();
                all.add(record).unwrap();
            }
            let lines = journal.lines().unwrap().records.len();
            assert!(lines <= 400 + FEW + 400, "{lines} lines after {number} returns");
        }
        let [short, long] = [&short, &long].map(|cache| Journal::open(cache).lines().unwrap());
        assert_eq!(long.records.len(), 12_000);
        assert_eq!(short.live(), long.live());
    }

    #[test]
    fn a_reader_of_the_journal_that_was_reads_on_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path());
        let [one, two] = [1, 2].map(|key| record("add", key));
        for record in [&one, &two, &one, &two] {
            journal.add(record).unwrap();
        }
        let path = folder.path().join("journal");
        let (stat, before) = (fs::stat(&path), journal.bytes().unwrap());
        let mut reader = fs::open_if_there(&path).unwrap().unwrap();
        journal.shed().unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, before);
        // An answer, which keeps the places of lines, rests on the journal's state.
        assert_ne!(fs::stat(&path), stat);
        journal.add(&one).unwrap();
        assert_eq!(journal.lines().unwrap().records, [one.clone(), two, one]);
    }
}
