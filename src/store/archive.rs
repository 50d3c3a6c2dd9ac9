//! The archive: records and their blobs as one file, to be carried to another store.
//!
//! The file is a line with the format's number, a line with the digest of the rest, and a gzipped tar of `journal` and `blobs/DIGEST`. The same records give the
//! same bytes. Reading trusts nothing: what is not exactly as this file writes it is refused, and nothing is taken into the store before all of it was verified.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, EntryType, Header};

use super::cas::{Cas, Unavailable};
use super::journal::{Journal, Lines, sameness};
use crate::digest::Digest;
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

/// Which artifacts are taken along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifacts {
    /// All.
    All,
    /// All but compiled kernels, of which the digests stay known.
    WithoutIr,
}

/// An archive, ready to be written.
#[derive(Debug)]
pub struct Packed {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// How many records it holds.
    pub records: usize,
    /// How many blobs it holds.
    pub blobs: usize,
    /// The records that are not whole in the store, and why, a line each.
    pub faults: Vec<String>,
}

/// Packs `records`, oldest first, with what they name. A record that is not whole is left out.
pub fn pack(cas: &Cas, records: &[&Record], artifacts: Artifacts) -> io::Result<Packed> {
    let mut whole: Vec<&Record> = Vec::new();
    let mut blobs: BTreeMap<Digest, Vec<u8>> = BTreeMap::new();
    let mut faults = Vec::new();
    for record in records {
        match blobs_for(cas, record, artifacts) {
            Ok(found) => {
                blobs.extend(found);
                whole.push(record);
            }
            Err(error) => faults.push(format!("{}: {error}", record.identity)),
        }
    }
    // Actions end in an order that is no part of what they found out; the order of one action's results is.
    whole.sort_by(|a, b| a.identity.cmp(&b.identity));
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    append(&mut tar, JOURNAL, &Lines::write(whole.iter().copied())?)?;
    for (digest, bytes) in &blobs {
        append(&mut tar, &format!("{BLOBS}{digest}"), bytes)?;
    }
    let body = tar.into_inner()?.finish()?;
    let mut bytes = format!("{MAGIC}{VERSION}\n{}\n", Digest::of(&body)).into_bytes();
    bytes.extend(body);
    Ok(Packed { bytes, records: whole.len(), blobs: blobs.len(), faults })
}

fn blobs_for(cas: &Cas, record: &Record, artifacts: Artifacts) -> Result<Vec<(Digest, Vec<u8>)>, Unavailable> {
    let mut found = vec![(record.key, cas.get(record.key)?)];
    for (name, blob) in &record.outputs {
        let may_lack = !is_published(name);
        match cas.get(blob.digest) {
            _ if may_lack && artifacts == Artifacts::WithoutIr => {}
            Ok(bytes) => found.push((blob.digest, bytes)),
            Err(Unavailable::Missing(_)) if may_lack => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn append(tar: &mut Builder<GzEncoder<Vec<u8>>>, path: &str, bytes: &[u8]) -> io::Result<()> {
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

/// Takes the archive `bytes` into the store under `cache`. Records of the store stay and are newer than those that come. `stage` is a folder on the same file
/// system for what is not verified yet; it is removed. The caller holds the workspace's lock.
pub fn unpack(bytes: &[u8], cache: &Path, stage: &Path) -> Result<Taken, Refused> {
    let taken = read(bytes, stage).and_then(|read| take(&read, cache).map_err(Refused::Store));
    let removed = fs::remove(stage).map_err(Refused::Store);
    taken.and_then(|taken| removed.map(|()| taken))
}

/// A verified archive, its blobs staged.
struct Staged {
    records: Vec<Record>,
    blobs: BTreeMap<Digest, PathBuf>,
}

fn read(bytes: &[u8], stage: &Path) -> Result<Staged, Refused> {
    let mut tar = Archive::new(GzDecoder::new(body(bytes)?));
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
        fs::write(&file, &bytes).map_err(Refused::Store)?;
    }
    match claims.iter().find(|(digest, claim)| claim.is_needed && !blobs.contains_key(digest)) {
        Some((digest, _)) => Err(content(format!("no blob {digest}, which a record names"))),
        None => Ok(Staged { records: lines.records, blobs }),
    }
}

/// Returns what follows the two lines at the start, whose digest they give.
fn body(bytes: &[u8]) -> Result<&[u8], Refused> {
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(Refused::NoArchive)?;
    let (version, rest) = line(rest)?;
    if version != VERSION.to_string() {
        return Err(Refused::Version(version.escape_debug().to_string()));
    }
    let (digest, rest) = line(rest)?;
    if Digest::of(rest).to_string() == digest { Ok(rest) } else { Err(Refused::Damaged) }
}

fn line(bytes: &[u8]) -> Result<(&str, &[u8]), Refused> {
    let end = bytes.iter().take(80).position(|byte| *byte == b'\n').ok_or(Refused::Damaged)?;
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| Refused::Damaged)?;
    Ok((text, &bytes[end + 1..]))
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
