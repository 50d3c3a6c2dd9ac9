//! An archive that is read: verified whole, its blobs staged on all cores, and then taken into a store.
//!
//! It does not know how an archive is written.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::mpsc::channel;

use flate2::read::GzDecoder;
use t2t_model::digest::Digest;
use t2t_model::manifest::Manifest;
use t2t_model::publication::is_published;
use t2t_model::record::{Outcome, Record};
use tar::{Archive, Entries, EntryType};

use super::{BLOBS, JOURNAL, MAGIC, VERSION};
use crate::fs;
use crate::hashing::{self, Running};
use crate::store::cas::Cas;
use crate::store::journal::{Journal, Lines, sameness};

/// The most that one entry may hold, in bytes.
const MOST: u64 = 1 << 30;

/// The most that all entries may hold, in bytes.
const MOST_OF_ALL: u64 = 64 << 30;

/// The most that one of the first two lines may hold, in bytes.
const LINE: u64 = 80;

/// How much of a file is read at once, in bytes.
const PART: usize = 1 << 18;

/// The batch that one core verifies and stages at once: bytes of blobs, and number of blobs.
const BATCH: usize = 1 << 20;
const MANY: usize = 256;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is no archive of t2t.
    #[error("it is no export of t2t")]
    NoArchive,
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    /// It is of another format.
    #[error("its format is {0}, and this t2t reads {VERSION}")]
    Version(String),
    /// Its bytes are not those it was written with.
    #[error("it is damaged or cut short: its bytes do not match its digest")]
    Damaged,
    /// It is whole and holds what no export holds.
    #[error("it has unexpected content: {0}")]
    Content(String),
    /// The store cannot be read or written.
    #[error("cannot use the store `cache/`: {0}")]
    Store(io::Error),
}

fn content(what: impl Display) -> Refused {
    Refused::Content(what.to_string())
}

/// What came into the store.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken {
    /// How many records the store did not have.
    pub new: usize,
    /// How many it had.
    pub known: usize,
    /// How many blobs the store did not have whole.
    pub blobs: usize,
}

/// Takes the archive `file` into the store under `cache`, with a few blobs a core in memory. The file is read twice: nothing of it is looked at before all of it has the digest
/// that it should. Records of the store stay and are newer than those that come. `stage` is a folder on the same file system for what is not verified yet; it is
/// removed. The caller holds the workspace's lock.
pub fn unpack(file: &mut (impl Read + Seek), cache: &Path, stage: &Path) -> Result<Taken, Refused> {
    let cas = Cas::open(cache);
    let taken = read(file, &cas, stage).and_then(|staged| take(&staged, cache, &cas, stage).map_err(Refused::Store));
    let removed = fs::remove(stage).map_err(Refused::Store);
    taken.and_then(|taken| removed.map(|()| taken))
}

/// Takes the blobs of the archive `file` into the store under `cache`, and returns its records, which are for the caller to add to the journal or not. The rest is as for
/// [`unpack`].
pub fn bring(file: &mut (impl Read + Seek), cache: &Path, stage: &Path) -> Result<Vec<Record>, Refused> {
    let cas = Cas::open(cache);
    let brought = read(file, &cas, stage).and_then(|staged| {
        cas.take_in(stage).map_err(Refused::Store)?;
        Ok(staged.records)
    });
    let removed = fs::remove(stage).map_err(Refused::Store);
    brought.and_then(|records| removed.map(|()| records))
}

/// A verified archive. Its blobs that the store lacks are staged.
struct Staged {
    records: Vec<Record>,
    /// How many.
    blobs: usize,
}

fn read(file: &mut (impl Read + Seek), cas: &Cas, stage: &Path) -> Result<Staged, Refused> {
    let mut tar = Archive::new(GzDecoder::new(body(file)?));
    let mut entries = tar.entries().map_err(content)?;
    let mut first = entries.next().ok_or_else(|| content("nothing"))?.map_err(content)?;
    if path(&first)? != JOURNAL {
        return Err(content("no journal at its start"));
    }
    let journal = bounded(&mut first, MOST)?;
    let lines = Lines::read(&journal);
    if lines.is_foreign || !lines.damaged.is_empty() {
        return Err(content("a journal that cannot be read"));
    }
    let claims = claims(&lines.records)?;
    let starts: BTreeSet<u8> = claims.keys().map(|digest| digest.as_bytes()[0]).collect();
    starts.iter().try_for_each(|start| fs::make_folder(&stage.join(format!("{start:02x}")))).map_err(Refused::Store)?;
    let mut reading = Reading { entries, claims: &claims, seen: BTreeSet::new(), fault: None };
    let blobs = stage_all(&mut reading, &Staging { claims: &claims, cas, stage })?;
    let seen = reading.seen;
    match claims.iter().find(|(digest, claim)| claim.is_needed && !seen.contains(digest)) {
        Some((digest, _)) => Err(content(format!("no blob {digest}, which a record names"))),
        None => Ok(Staged { records: lines.records, blobs }),
    }
}

/// A blob as it came, and its position.
type Came = (usize, Digest, Vec<u8>);

/// Why the archive is refused, and the position of the faulty blob.
type At = (usize, Refused);

/// The blobs of an archive, in the order in which they stand there.
struct Reading<'a, R: Read> {
    entries: Entries<'a, R>,
    claims: &'a BTreeMap<Digest, Claim>,
    seen: BTreeSet<Digest>,
    /// Why there are no more than those that were returned.
    fault: Option<At>,
}

impl<R: Read> Reading<'_, R> {
    /// Returns the next blobs, a [`BATCH`] of them or one that is longer; none at the end. Those before a fault are returned, too.
    fn next_batch(&mut self) -> Vec<Came> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH && batch.len() < MANY {
            let place = self.seen.len();
            match self.next_blob() {
                Ok(Some(came)) => {
                    bytes += came.2.len();
                    batch.push(came);
                }
                Ok(None) => break,
                Err(refused) => {
                    self.fault = Some((place, refused));
                    break;
                }
            }
        }
        batch
    }

    fn next_blob(&mut self) -> Result<Option<Came>, Refused> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        let mut entry = entry.map_err(content)?;
        let name = path(&entry)?;
        let digest = name.strip_prefix(BLOBS).and_then(|name| name.parse::<Digest>().ok());
        let digest = digest.filter(|digest| format!("{BLOBS}{digest}") == name && self.claims.contains_key(digest));
        let digest = digest.ok_or_else(|| content(format!("`{}`, which no record names", name.escape_debug())))?;
        let place = self.seen.len();
        if !self.seen.insert(digest) {
            return Err(content(format!("the blob {digest} twice")));
        }
        let bytes = bounded(&mut entry, self.claims[&digest].size.unwrap_or(MOST))?;
        Ok(Some((place, digest, bytes)))
    }
}

/// Verifies blobs and stages those that the store lacks.
#[derive(Clone, Copy)]
struct Staging<'a> {
    claims: &'a BTreeMap<Digest, Claim>,
    cas: &'a Cas,
    stage: &'a Path,
}

impl Staging<'_> {
    /// Returns how many were staged.
    fn all(self, batch: &[Came]) -> Result<usize, At> {
        let one = |(place, digest, bytes): &Came| self.one(*digest, bytes).map_err(|refused| (*place, refused));
        batch.iter().try_fold(0, |staged, came| one(came).map(|is_new| staged + usize::from(is_new)))
    }

    /// Returns whether the store lacked it.
    fn one(self, digest: Digest, bytes: &[u8]) -> Result<bool, Refused> {
        let claim = &self.claims[&digest];
        if hashing::of(bytes) != digest {
            return Err(content(format!("a blob that is not {digest}")));
        }
        if claim.size.is_some_and(|size| size != bytes.len() as u64) {
            return Err(content(format!("a blob {digest} that is not as long as its record says")));
        }
        if claim.is_manifest && Manifest::decode(bytes).is_none() {
            return Err(content(format!("a manifest {digest} that cannot be read")));
        }
        if self.cas.holds(digest, bytes) {
            return Ok(false);
        }
        let name = digest.to_string();
        let file = self.stage.join(&name[..2]).join(&name[2..]);
        fs::write_unshared(&file, bytes).map_err(Refused::Store)?;
        Ok(true)
    }
}

/// Stages all blobs on all cores while the file is read, and returns how many. Of several faults the first in the file is reported.
fn stage_all<R: Read>(reading: &mut Reading<'_, R>, staging: &Staging<'_>) -> Result<usize, Refused> {
    let staging = *staging;
    let mut ends = Ends::default();
    rayon::in_place_scope(|scope| {
        let (sender, ended) = channel();
        let mut underway = 0;
        while ends.fault.is_none() {
            let batch = reading.next_batch();
            if let Some(fault) = reading.fault.take() {
                ends.take(Err(fault));
            }
            // Only one long blob at a time is in memory.
            match batch.iter().map(|(_, _, bytes)| bytes.len()).max() {
                None => break,
                Some(longest) if longest >= BATCH => ends.take(staging.all(&batch)),
                Some(_) => {
                    if underway > rayon::current_num_threads() {
                        ends.take(ended.recv().expect("this end is open, too"));
                        underway -= 1;
                    }
                    let sender = sender.clone();
                    underway += 1;
                    scope.spawn(move |_| {
                        // After a fault the receiver has gone.
                        let _ = sender.send(staging.all(&batch));
                    });
                }
            }
        }
        drop(sender);
        for end in ended {
            ends.take(end);
        }
    });
    ends.fault.map_or(Ok(ends.staged), |(_, refused)| Err(refused))
}

/// The result of staging.
#[derive(Default)]
struct Ends {
    staged: usize,
    fault: Option<At>,
}

impl Ends {
    fn take(&mut self, end: Result<usize, At>) {
        match end {
            Ok(staged) => self.staged += staged,
            Err(fault) if self.fault.as_ref().is_none_or(|(place, _)| fault.0 < *place) => self.fault = Some(fault),
            Err(_) => {}
        }
    }
}

/// Returns what follows the two lines at the start, whose digest they give.
fn body<R: Read + Seek>(file: &mut R) -> Result<BufReader<&mut R>, Refused> {
    let mut file = BufReader::with_capacity(PART, file);
    let mut magic = Vec::new();
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(Refused::Unreadable)?;
    if magic != MAGIC.as_bytes() {
        return Err(Refused::NoArchive);
    }
    let version = line(&mut file)?;
    if version != VERSION.to_string() {
        return Err(Refused::Version(version.escape_debug().to_string()));
    }
    let digest = line(&mut file)?;
    let start = file.stream_position().map_err(Refused::Unreadable)?;
    let mut running = Running::default();
    loop {
        let part = file.fill_buf().map_err(Refused::Unreadable)?;
        if part.is_empty() {
            break;
        }
        running.add(part);
        let length = part.len();
        file.consume(length);
    }
    if running.digest().to_string() != digest {
        return Err(Refused::Damaged);
    }
    file.seek(SeekFrom::Start(start)).map_err(Refused::Unreadable)?;
    Ok(file)
}

fn line(file: &mut impl BufRead) -> Result<String, Refused> {
    let mut bytes = Vec::new();
    file.take(LINE).read_until(b'\n', &mut bytes).map_err(Refused::Unreadable)?;
    if bytes.pop() != Some(b'\n') {
        return Err(Refused::Damaged);
    }
    String::from_utf8(bytes).map_err(|_| Refused::Damaged)
}

fn path<R: Read>(entry: &tar::Entry<'_, R>) -> Result<String, Refused> {
    if entry.header().entry_type() != EntryType::Regular {
        return Err(content("an entry that is not a file"));
    }
    String::from_utf8(entry.path_bytes().into_owned()).map_err(|_| content("a name that is not text"))
}

/// Reads an entry of at most so many bytes, whatever length it claims.
fn bounded(entry: &mut impl Read, most: u64) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    entry.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(content)?;
    if bytes.len() as u64 > most { Err(content(format!("an entry of more than {most} bytes"))) } else { Ok(bytes) }
}

/// What records say of a blob.
struct Claim {
    size: Option<u64>,
    is_manifest: bool,
    is_needed: bool,
}

/// Returns what the records say of the blobs, by digest. Fails where an export cannot hold one of the records.
fn claims(records: &[Record]) -> Result<BTreeMap<Digest, Claim>, Refused> {
    let mut claims: BTreeMap<Digest, Claim> = BTreeMap::new();
    let mut seen = HashSet::new();
    for record in records {
        if matches!(record.outcome, Outcome::Lost { .. }) || !seen.insert(sameness(record)) {
            return Err(content(format!("a record of {} that does not count", record.identity)));
        }
        let bare = || Claim { size: None, is_manifest: false, is_needed: false };
        let claim = claims.entry(record.key).or_insert_with(bare);
        (claim.is_manifest, claim.is_needed) = (true, true);
        for (name, blob) in &record.outputs {
            let claim = claims.entry(blob.digest).or_insert_with(bare);
            if blob.size > MOST || claim.size.is_some_and(|size| size != blob.size) {
                return Err(content(format!("a size of `{name}` of {} that cannot be", record.identity)));
            }
            claim.size = Some(blob.size);
            claim.is_needed |= is_published(name);
        }
    }
    let all = claims.values().filter_map(|claim| claim.size).fold(0, u64::saturating_add);
    if all > MOST_OF_ALL { Err(content(format!("more than {MOST_OF_ALL} bytes"))) } else { Ok(claims) }
}

/// Moves the blobs in, then writes the journal: a kill between the two leaves blobs that no record names.
fn take(staged: &Staged, cache: &Path, cas: &Cas, stage: &Path) -> io::Result<Taken> {
    cas.take_in(stage)?;
    let mut journal = Journal::open(cache);
    let lines = journal.lines()?;
    let there: HashSet<_> = lines.records.iter().map(sameness).collect();
    let new: Vec<&Record> = staged.records.iter().filter(|record| !there.contains(&sameness(record))).collect();
    if !new.is_empty() {
        journal.rewrite(new.iter().copied().chain(&lines.records))?;
    }
    Ok(Taken { new: new.len(), known: staged.records.len() - new.len(), blobs: staged.blobs })
}
