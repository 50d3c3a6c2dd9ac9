//! The no-op cache: what a build told that settled everything, kept with all that it looked at. While that is as it was, the same command tells the same.
//!
//! One file an answer, named by its key: the digest of what was asked. It does not know what is asked, nor what the text says.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;

use crate::fingerprint::Fingerprint;
use crate::fs;
use crate::store::journal::LinePlace;

/// What a file begins with; another number is no answer. 1: first. 2: the check covers what was asked. 3: records of
/// ops apart.
const HEADER: &[u8] = b"t2t answer 3\n";

/// How many bytes each digest takes that follows the header: of what was asked, and of that with the digest of the rest.
const CHECK: usize = 32;

/// How many answers are kept: the newest.
const MOST: usize = 16;

/// What was told, and on what it rests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoopResult<'a> {
    /// All that was looked at.
    #[serde(borrow)]
    pub fingerprints: Vec<Fingerprint<'a>>,
    /// What was told, in the words of whoever told it.
    pub told: String,
    /// The ops, encoded: see [`NoopResult::pieces`].
    pieces: Cow<'a, [u8]>,
}

/// What an answer rests on for one op. All of them are read where any is asked for: what only few are asked for stays encoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece<'a> {
    /// The op.
    #[serde(borrow)]
    pub op: Cow<'a, str>,
    /// The line of its key in ops.yaml, from 1.
    pub line: u32,
    /// The places, in the list of fingerprints, of the files that its actions depend on, and of its log.
    pub fingerprints: Vec<u32>,
    /// The records, encoded.
    #[serde(borrow)]
    records: Cow<'a, [u8]>,
}

impl<'a> Piece<'a> {
    /// Returns the piece of `op`, whose key is on this line: `records` are where its records stand in the journal, and those of actions of no op that it
    /// stands on, oldest first.
    #[must_use]
    pub fn new(op: &'a str, line: u32, fingerprints: Vec<u32>, records: &[LinePlace]) -> Self {
        let records = postcard::to_stdvec(records).expect("numbers can be written");
        Self { op: Cow::Borrowed(op), line, fingerprints, records: Cow::Owned(records) }
    }

    /// Returns where its records stand in the journal, and those of actions of no op that it stands on, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<LinePlace> {
        postcard::from_bytes(&self.records).unwrap_or_default()
    }
}

impl<'a> NoopResult<'a> {
    /// Returns the answer that was `told`, resting on `fingerprints`, those of ops named by `pieces` in the order of ops.yaml.
    #[must_use]
    pub fn new(fingerprints: Vec<Fingerprint<'a>>, told: String, pieces: &[Piece<'_>]) -> Self {
        let pieces = postcard::to_stdvec(pieces).expect("numbers and texts can be written");
        Self { fingerprints, told, pieces: Cow::Owned(pieces) }
    }

    /// Returns the ops of the answer.
    #[must_use]
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        postcard::from_bytes(&self.pieces).unwrap_or_default()
    }
}

/// The place of one answer: what a command that changes nothing tells is read there.
#[derive(Debug, Clone)]
pub struct NoopCache {
    folder: PathBuf,
    file: PathBuf,
    key: Digest,
}

impl NoopCache {
    /// Returns the place under `cache` for the answer to what has the digest `key`.
    #[must_use]
    pub fn of(cache: &Path, key: Digest) -> Self {
        let folder = cache.join("answers");
        Self { file: folder.join(key.to_string()), folder, key }
    }

    /// Returns what the file holds: the bytes that [`decode`] reads. Empty where there is none, or one that answers something else.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let bytes = fs::read_own(&self.file).unwrap_or_default();
        let is_of_this = bytes.strip_prefix(HEADER).is_some_and(|rest| rest.starts_with(self.key.as_bytes()));
        if is_of_this { bytes } else { Vec::new() }
    }

    /// Keeps an answer. What cannot be kept costs the next build its time, nothing else.
    pub fn keep(&self, answer: &NoopResult<'_>) {
        let Ok(body) = postcard::to_stdvec(answer) else { return };
        let key = self.key.as_bytes();
        let bytes = [HEADER, key, check(key, &body).as_bytes(), &body].concat();
        if fs::write(&self.file, &bytes).is_ok() {
            self.drop_old();
        }
    }

    /// Removes all answers but this one and the newest others. One from the future is from before the clock was set back: the oldest of all.
    fn drop_old(&self) {
        let now = fs::now();
        let names = fs::names(&self.folder).into_iter().filter(|name| self.folder.join(name) != self.file);
        let time = |name: &String| fs::folder_time(&self.folder.join(name)).filter(|time| *time <= now);
        let mut files: Vec<(Option<i64>, String)> = names.map(|name| (time(&name), name)).collect();
        files.sort();
        for (_, name) in files.iter().rev().skip(MOST - 1) {
            let _ = fs::remove(&self.folder.join(name));
        }
    }
}

/// Returns the answer that `bytes` hold; None where they are damaged, or of another version.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<NoopResult<'_>> {
    let (key, rest) = bytes.strip_prefix(HEADER)?.split_at_checked(CHECK)?;
    let (sum, body) = rest.split_at_checked(CHECK)?;
    (check(key, body).as_bytes() == sum).then(|| postcard::from_bytes(body).ok()).flatten()
}

fn check(key: &[u8], body: &[u8]) -> Digest {
    Digest::of(&[key, Digest::of(body).as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Observed;

    fn answer() -> NoopResult<'static> {
        let fingerprint = Fingerprint { path: Cow::Borrowed("kernels/add/v1.py"), was: Observed::Time(Some(7)) };
        let piece = Piece::new("add", 3, vec![0], &[LinePlace { offset: 14, length: 300 }]);
        NoopResult::new(vec![fingerprint], "all fresh".to_owned(), &[piece])
    }

    #[test]
    fn an_answer_comes_back_as_it_was_kept() {
        let cache = tempfile::tempdir().unwrap();
        let place = NoopCache::of(cache.path(), Digest::of(b"build"));
        assert_eq!(decode(&place.bytes()), None);
        place.keep(&answer());
        assert_eq!(decode(&place.bytes()), Some(answer()));
        assert_eq!(decode(&NoopCache::of(cache.path(), Digest::of(b"build -q")).bytes()), None);
    }

    #[test]
    fn a_piece_says_where_its_records_stand() {
        let answer = answer();
        let pieces = answer.pieces();
        assert_eq!((&*pieces[0].op, pieces[0].line, &pieces[0].fingerprints[..]), ("add", 3, &[0][..]));
        assert_eq!(pieces[0].records(), [LinePlace { offset: 14, length: 300 }]);
    }

    #[test]
    fn damaged_bytes_are_no_answer() {
        let cache = tempfile::tempdir().unwrap();
        let place = NoopCache::of(cache.path(), Digest::of(b"build"));
        place.keep(&answer());
        let bytes = place.bytes();
        for position in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {position}");
            assert_eq!(decode(&bytes[..position]), None, "cut at {position}");
        }
    }

    #[test]
    fn an_answer_that_took_another_ones_place_is_none() {
        let cache = tempfile::tempdir().unwrap();
        let [one, other] = [b"build".as_slice(), b"build -q"].map(|key| NoopCache::of(cache.path(), Digest::of(key)));
        one.keep(&answer());
        fs::rename(&one.file, &other.file).unwrap();
        assert_eq!(decode(&other.bytes()), None);
    }

    #[test]
    fn the_oldest_answers_are_dropped() {
        let cache = tempfile::tempdir().unwrap();
        for number in 0..=MOST {
            NoopCache::of(cache.path(), Digest::of(&[u8::try_from(number).unwrap()])).keep(&answer());
        }
        assert_eq!(fs::names(&cache.path().join("answers")).len(), MOST);
    }

    #[test]
    fn answers_from_the_future_make_room_for_those_of_now() {
        let cache = tempfile::tempdir().unwrap();
        let place = |number: usize| NoopCache::of(cache.path(), Digest::of(&[u8::try_from(number).unwrap()]));
        let tomorrow = std::time::SystemTime::now() + std::time::Duration::from_hours(24);
        for number in 0..MOST {
            place(number).keep(&answer());
            let file = std::fs::File::options().append(true).open(place(number).file).unwrap();
            file.set_times(std::fs::FileTimes::new().set_modified(tomorrow)).unwrap();
        }
        for number in MOST..MOST + 3 {
            place(number).keep(&answer());
        }
        assert_eq!(fs::names(&cache.path().join("answers")).len(), MOST);
        for number in MOST..MOST + 3 {
            assert_eq!(decode(&place(number).bytes()), Some(answer()), "{number}");
        }
    }
}
