//! The archive: records and their blobs as one file, to be carried to another store.
//!
//! The file is a line with the format's number, a line with the digest of the rest, and a gzipped tar of `journal` and `blobs/DIGEST`. The same records give the
//! same bytes. Reading trusts nothing: what is not exactly as this file writes it is refused, and nothing is taken into the store before all of it was verified.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, EntryType, Header};

use super::cas::{Cas, Unavailable};
use super::journal::{Journal, Lines, sameness};
use crate::digest::{Digest, Running};
use crate::fs;
use crate::manifest::Manifest;
use crate::publication::is_published;
use crate::record::{Outcome, Record};

/// The first line but for the number.
const MAGIC: &str = "t2t export ";

/// The format; another number is refused. 1: first.
pub const VERSION: u32 = 1;

/// The tar entry of the records.
const JOURNAL: &str = "journal";

/// The folder of the blobs in the tar.
const BLOBS: &str = "blobs/";

/// The most that one entry may hold, in bytes.
const MOST: u64 = 1 << 30;

/// The most that all entries may hold, in bytes.
const MOST_OF_ALL: u64 = 64 << 30;

/// The most that one of the first two lines may hold, in bytes.
const LINE: u64 = 80;

/// How much of a file is read at once, in bytes.
const PART: usize = 1 << 18;

/// Which artifacts are taken along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifacts {
    /// All.
    All,
    /// All but compiled kernels, of which the digests stay known.
    WithoutIr,
}

/// What an archive holds.
#[derive(Debug)]
pub struct Packed {
    /// How many bytes the file has.
    pub bytes: u64,
    /// How many records it holds.
    pub records: usize,
    /// How many blobs it holds.
    pub blobs: usize,
    /// The records that are not whole in the store, and why, a line each.
    pub faults: Vec<String>,
}

/// Writes `records`, oldest first, with what they name, to `draft`, one blob in memory at a time. A record that is not whole is left out.
pub fn pack(cas: &Cas, records: &[&Record], artifacts: Artifacts, draft: &mut fs::Draft) -> io::Result<Packed> {
    let mut lost: BTreeMap<Digest, Unavailable> = BTreeMap::new();
    loop {
        let mut chosen = Chosen::of(cas, records, artifacts, &lost);
        // Actions end in an order that is no part of what they found out; the order of one action's results is.
        chosen.records.sort_by(|a, b| a.identity.cmp(&b.identity));
        draft.start_again()?;
        match write(cas, &chosen, draft)? {
            Written::Whole(bytes) => {
                let (records, blobs) = (chosen.records.len(), chosen.blobs.len());
                return Ok(Packed { bytes, records, blobs, faults: chosen.faults });
            }
            // The file has its records at the beginning: without those that need the blob it is begun anew.
            Written::Without(error) => _ = lost.insert(error.digest(), error),
        }
    }
}

/// What goes into an archive.
struct Chosen<'a> {
    records: Vec<&'a Record>,
    blobs: BTreeSet<Digest>,
    faults: Vec<String>,
}

impl<'a> Chosen<'a> {
    /// Chooses the records of which all blobs are there and none is `lost`.
    fn of(cas: &Cas, records: &[&'a Record], artifacts: Artifacts, lost: &BTreeMap<Digest, Unavailable>) -> Self {
        let mut chosen = Self { records: Vec::new(), blobs: BTreeSet::new(), faults: Vec::new() };
        for &record in records {
            match blobs_for(cas, record, artifacts, lost) {
                Ok(found) => {
                    chosen.blobs.extend(found);
                    chosen.records.push(record);
                }
                Err(why) => chosen.faults.push(format!("{}: {why}", record.identity)),
            }
        }
        chosen
    }
}

fn blobs_for(
    cas: &Cas,
    record: &Record,
    artifacts: Artifacts,
    lost: &BTreeMap<Digest, Unavailable>,
) -> Result<Vec<Digest>, String> {
    let is_there = |digest: Digest| match lost.get(&digest) {
        Some(error) => Err(error.to_string()),
        None => Ok(fs::stat(&cas.path(digest)).is_some()),
    };
    let missing = |digest: Digest| Unavailable::Missing(digest).to_string();
    let mut found = vec![record.key];
    is_there(record.key)?.then_some(()).ok_or_else(|| missing(record.key))?;
    for (name, blob) in &record.outputs {
        let may_lack = !is_published(name);
        if may_lack && artifacts == Artifacts::WithoutIr {
            continue;
        }
        match is_there(blob.digest)? {
            true => found.push(blob.digest),
            false if may_lack => {}
            false => return Err(missing(blob.digest)),
        }
    }
    Ok(found)
}

/// How far the writing came.
enum Written {
    /// To the end: how many bytes there are.
    Whole(u64),
    /// To a blob that cannot be had.
    Without(Unavailable),
}

fn write(cas: &Cas, chosen: &Chosen<'_>, draft: &mut fs::Draft) -> io::Result<Written> {
    // The digest is known at the end, and stands at the beginning: its place is kept.
    draft.write_all(first_lines(Digest::of(b"")).as_bytes())?;
    let hashed = Hashed { to: BufWriter::new(&mut *draft), running: Running::default(), length: 0 };
    let mut tar = Builder::new(GzEncoder::new(hashed, Compression::default()));
    append(&mut tar, JOURNAL, &Lines::write(chosen.records.iter().copied())?)?;
    for digest in &chosen.blobs {
        match cas.get(*digest) {
            Ok(bytes) => append(&mut tar, &format!("{BLOBS}{digest}"), &bytes)?,
            Err(error) => return Ok(Written::Without(error)),
        }
    }
    let mut hashed = tar.into_inner()?.finish()?;
    hashed.flush()?;
    let (lines, length) = (first_lines(hashed.running.digest()), hashed.length);
    drop(hashed);
    draft.rewind()?;
    draft.write_all(lines.as_bytes())?;
    Ok(Written::Whole(lines.len() as u64 + length))
}

fn first_lines(body: Digest) -> String {
    format!("{MAGIC}{VERSION}\n{body}\n")
}

/// Passes bytes on, and keeps their digest and how many they are.
struct Hashed<W> {
    to: W,
    running: Running,
    length: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.running.add(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn append(tar: &mut Builder<impl Write>, path: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(bytes.len() as u64);
    header.set_mtime(0);
    tar.append_data(&mut header, path, bytes)
}

/// Why an archive is not taken.
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
    #[error("it is damaged or cut short: its bytes are not what its digest says")]
    Damaged,
    /// It is whole and holds what no export holds.
    #[error("it holds what no export holds: {0}")]
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
    /// How many blobs were written.
    pub blobs: usize,
}

/// Takes the archive `file` into the store under `cache`, one blob in memory at a time. The file is read twice: nothing of it is looked at before all of it has the digest that it should. Records of the store stay and are newer than those that come. `stage` is a folder on the same file
/// system for what is not verified yet; it is removed. The caller holds the workspace's lock.
pub fn unpack(file: &mut (impl Read + Seek), cache: &Path, stage: &Path) -> Result<Taken, Refused> {
    let taken = read(file, stage).and_then(|read| take(&read, cache).map_err(Refused::Store));
    let removed = fs::remove(stage).map_err(Refused::Store);
    taken.and_then(|taken| removed.map(|()| taken))
}

/// A verified archive, its blobs staged.
struct Staged {
    records: Vec<Record>,
    blobs: BTreeMap<Digest, PathBuf>,
}

fn read(file: &mut (impl Read + Seek), stage: &Path) -> Result<Staged, Refused> {
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
    let mut blobs = BTreeMap::new();
    fs::make_folder(stage).map_err(Refused::Store)?;
    for entry in entries {
        let mut entry = entry.map_err(content)?;
        let name = path(&entry)?;
        let digest = name.strip_prefix(BLOBS).and_then(|name| name.parse::<Digest>().ok());
        let digest = digest.filter(|digest| format!("{BLOBS}{digest}") == name && claims.contains_key(digest));
        let digest = digest.ok_or_else(|| content(format!("`{}`, which no record names", name.escape_debug())))?;
        let file = stage.join(digest.to_string());
        if blobs.insert(digest, file.clone()).is_some() {
            return Err(content(format!("the blob {digest} twice")));
        }
        let bytes = bounded(&mut entry, claims[&digest].size.unwrap_or(MOST))?;
        if Digest::of(&bytes) != digest {
            return Err(content(format!("a blob that is not {digest}")));
        }
        if claims[&digest].size.is_some_and(|size| size != bytes.len() as u64) {
            return Err(content(format!("a blob {digest} that is not as long as its record says")));
        }
        if claims[&digest].is_manifest && Manifest::decode(&bytes).is_none() {
            return Err(content(format!("a manifest {digest} that cannot be read")));
        }
        fs::write_unshared(&file, &bytes).map_err(Refused::Store)?;
    }
    match claims.iter().find(|(digest, claim)| claim.is_needed && !blobs.contains_key(digest)) {
        Some((digest, _)) => Err(content(format!("no blob {digest}, which a record names"))),
        None => Ok(Staged { records: lines.records, blobs }),
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
        return Err(content("an entry that is no file"));
    }
    String::from_utf8(entry.path_bytes().into_owned()).map_err(|_| content("a name that is no text"))
}

/// Reads an entry of at most so many bytes. What it claims to hold is not believed.
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

/// Returns what the records say of the blobs, by digest. Fails where a record is none that an export holds.
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
fn take(staged: &Staged, cache: &Path) -> io::Result<Taken> {
    let cas = Cas::open(cache);
    for (digest, file) in &staged.blobs {
        fs::rename(file, &cas.path(*digest))?;
    }
    let mut journal = Journal::open(cache);
    let lines = journal.lines()?;
    let there: HashSet<_> = lines.records.iter().map(sameness).collect();
    let new: Vec<&Record> = staged.records.iter().filter(|record| !there.contains(&sameness(record))).collect();
    if !new.is_empty() {
        journal.rewrite(new.iter().copied().chain(&lines.records))?;
    }
    Ok(Taken { new: new.len(), known: staged.records.len() - new.len(), blobs: staged.blobs.len() })
}
