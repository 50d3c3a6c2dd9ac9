//! The no-op cache: what a build told that settled everything, kept with all that it looked at. While that is as it was, the same command tells the same.
//!
//! One file an answer, named by its key: the digest of what was asked. It does not know what is asked, nor what the text says.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use t2t_model::digest::{Digest, Running};

use crate::fingerprint::Fingerprint;
use crate::fs;
use crate::store::journal::{Extent, LinePlace};

/// What a file begins with; another number is no answer. 1: first. 2: the check covers what was asked. 3: records of
/// ops apart. 4: how each op stands, and records by key. 5: digests as bytes,
/// actions by name.
const HEADER: &[u8] = b"t2t answer 5\n";

/// How many bytes each digest takes that follows the header: of what was asked, and of that with the digest of the rest.
const CHECK: usize = 32;

/// How many bytes are written at once.
const PART: usize = 1 << 16;

/// How many answers are kept: the newest.
const MOST: usize = 16;

/// What was told, and on what it rests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoopResult<'a> {
    /// The files of the workspace that were looked at.
    #[serde(borrow)]
    pub files: Vec<Fingerprint<'a>>,
    /// What else was looked at: what every op rests on.
    #[serde(borrow)]
    pub others: Vec<Fingerprint<'a>>,
    /// How far the journal was read.
    pub journal: Extent,
    /// What was told, in the words of whoever told it.
    #[serde(borrow)]
    pub told: Cow<'a, str>,
    /// The ops, as [`Ops::encode`] writes them: who finds nothing changed does not read them.
    #[serde(borrow, serialize_with = "as_bytes")]
    pub ops: Cow<'a, [u8]>,
}

/// What an answer rests on op by op.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ops<'a> {
    /// The actions of no op, then the ops in the order of ops.yaml.
    #[serde(borrow)]
    pub pieces: Vec<Piece<'a>>,
    /// Where the records of each key stand: the bytes of a [`KeyIndex`](crate::store::key_index::KeyIndex).
    #[serde(borrow, serialize_with = "as_bytes")]
    pub keys: Cow<'a, [u8]>,
}

/// What an answer rests on for one op.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece<'a> {
    /// The op; empty for the actions of none.
    #[serde(borrow)]
    pub op: Cow<'a, str>,
    /// The line of its key in ops.yaml, from 1.
    pub line: u32,
    /// The places, in the list of files, of those that its actions depend on, and of its log.
    pub files: Vec<u32>,
    /// The records, encoded: all pieces are read where any is asked for.
    #[serde(borrow, serialize_with = "as_bytes")]
    records: Cow<'a, [u8]>,
    /// How it stands, in the words of whoever keeps the answer.
    #[serde(borrow, serialize_with = "as_bytes")]
    pub standing: Cow<'a, [u8]>,
}

/// An action, by the first bytes of the digest of its identity: an answer has one for each, and who finds nothing changed reads them all. Of two actions that it does not
/// tell apart one has no record here, and is looked up by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ActionName([u8; 8]);

impl ActionName {
    /// Returns the name of the action with this identity, as it is written in the journal.
    #[must_use]
    pub fn of(identity: &str) -> Self {
        Self(*Digest::of(identity.as_bytes()).as_bytes().first_chunk().expect("a digest is longer"))
    }
}

/// Where the last record of each action stands in the journal.
pub type LastRecords = BTreeMap<ActionName, LinePlace>;

impl<'a> Piece<'a> {
    /// Returns the piece of `op`, whose key is on this line of ops.yaml.
    #[must_use]
    pub fn new(op: Cow<'a, str>, line: u32, files: Vec<u32>, records: &LastRecords, standing: Vec<u8>) -> Self {
        let records = postcard::to_stdvec(records).expect("numbers and texts can be written");
        Self { op, line, files, records: Cow::Owned(records), standing: Cow::Owned(standing) }
    }

    /// Returns where the last record of each of its actions stands.
    #[must_use]
    pub fn records(&self) -> LastRecords {
        postcard::from_bytes(&self.records).unwrap_or_default()
    }
}

/// Writes bytes as what they are: one by one they take ten times as long.
#[expect(clippy::ptr_arg, reason = "serde passes a reference to the field")]
fn as_bytes<S: Serializer>(bytes: &Cow<'_, [u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

impl Ops<'_> {
    /// Returns the bytes that [`Ops::decode`] reads.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // What is long of them, so that it need not be moved while it grows.
        let long =
            |piece: &Piece<'_>| piece.op.len() + 5 * piece.files.len() + piece.records.len() + piece.standing.len();
        let length = self.keys.len() + self.pieces.iter().map(|piece| long(piece) + 24).sum::<usize>();
        postcard::to_extend(self, Vec::with_capacity(length)).expect("numbers and texts can be written")
    }

    /// Returns the ops that `bytes` hold.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Ops<'_>> {
        postcard::from_bytes(bytes).ok()
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
        if self.write(answer).is_some() {
            self.drop_old();
        }
    }

    /// Writes an answer part by part: a large one is never in memory as a whole. The check is put before it once it is known.
    fn write(&self, answer: &NoopResult<'_>) -> Option<()> {
        let (mut file, ()) = fs::Draft::start(&self.file, |_| ()).ok()?;
        let key = self.key.as_bytes();
        file.write_all(&[HEADER, key, &[0; CHECK]].concat()).ok()?;
        let hashed = Hashed { file: &mut file, digest: Running::default() };
        let body = postcard::to_io(answer, BufWriter::with_capacity(PART, hashed)).ok()?;
        let digest = body.into_inner().ok()?.digest.digest();
        file.seek(SeekFrom::Start((HEADER.len() + key.len()) as u64)).ok()?;
        file.write_all(check(key, digest).as_bytes()).ok()?;
        file.finish().ok()
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
    (check(key, Digest::of(body)).as_bytes() == sum).then(|| postcard::from_bytes(body).ok()).flatten()
}

fn check(key: &[u8], body: Digest) -> Digest {
    Digest::of(&[key, body.as_bytes()].concat())
}

/// A file that is written, and the digest of what was.
struct Hashed<'a> {
    file: &'a mut fs::Draft,
    digest: Running,
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes)?;
        self.digest.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Observed;
    use crate::store::journal::Journal;

    fn answer() -> NoopResult<'static> {
        let fingerprint = |path| Fingerprint { path: Cow::Borrowed(path), was: Observed::Time(Some(7)) };
        let records = BTreeMap::from([(ActionName::of("add:log"), LinePlace { offset: 14, length: 300 })]);
        let piece = Piece::new(Cow::Borrowed("add"), 3, vec![0], &records, b"well".to_vec());
        let ops = Ops { pieces: vec![piece], keys: Cow::Borrowed(b"") };
        NoopResult {
            files: vec![fingerprint("kernels/add/v1.py")],
            others: vec![fingerprint("ops.yaml")],
            journal: Journal::open(Path::new("nowhere")).extent(None).unwrap(),
            told: Cow::Borrowed("all fresh"),
            ops: Cow::Owned(ops.encode()),
        }
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
        let ops = Ops::decode(&answer.ops).unwrap();
        assert_eq!((&*ops.pieces[0].op, ops.pieces[0].line, &ops.pieces[0].files[..]), ("add", 3, &[0][..]));
        assert_eq!(ops.pieces[0].records()[&ActionName::of("add:log")], LinePlace { offset: 14, length: 300 });
        assert_eq!(&*ops.pieces[0].standing, b"well");
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
