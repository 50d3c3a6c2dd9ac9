//! The archive: records and their blobs as one file, to be carried to another store.
//!
//! The file is a line with the format's number, a line with the digest of the rest, and a gzipped tar of `journal` and `blobs/DIGEST`. The same records give
//! the same bytes. Reading trusts nothing: anything that is not exactly as this module writes it is refused, and nothing enters the store before all of it was
//! verified.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Seek, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use t2t_model::digest::Digest;
use t2t_model::publication::is_published;
use t2t_model::record::Record;
use tar::{Builder, EntryType, Header};

use super::cas::{Cas, Unavailable};
use super::journal::Lines;
use crate::fs;
use crate::hashing::Running;

mod staged;

pub use self::staged::{Refused, Taken, bring, unpack};

/// The first line but for the number.
pub const MAGIC: &str = "t2t export ";

/// The format; another number is refused. 1: first.
pub(crate) const VERSION: u32 = 1;

/// The tar entry of the records.
const JOURNAL: &str = "journal";

/// The folder of the blobs in the tar.
const BLOBS: &str = "blobs/";

/// Which artifacts are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifacts {
    /// All.
    All,
    /// All but compiled kernels. Their digests stay known.
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

/// Writes `records`, oldest first, with their blobs, to `draft`, one blob in memory at a time. A record that is not whole is left out.
pub fn pack(cas: &Cas, records: &[&Record], artifacts: Artifacts, draft: &mut fs::Draft) -> io::Result<Packed> {
    let mut lost: BTreeMap<Digest, Unavailable> = BTreeMap::new();
    loop {
        let mut chosen = Chosen::of(cas, records, artifacts, &lost);
        // Sorted by action, so that the same records give the same bytes: the order in which different actions ended means nothing. The order of one action's
        // results does, and stays.
        chosen.records.sort_by(|a, b| a.identity.cmp(&b.identity));
        draft.start_again()?;
        match write(cas, &chosen, draft)? {
            Written::Whole(bytes) => {
                let (records, blobs) = (chosen.records.len(), chosen.blobs.len());
                return Ok(Packed { bytes, records, blobs, faults: chosen.faults });
            }
            // The records stand at the beginning of the file. So a damaged blob means starting again without the records that need it.
            Written::Without(error) => _ = lost.insert(error.digest(), error),
        }
    }
}

/// The content of an archive.
struct Chosen<'a> {
    records: Vec<&'a Record>,
    blobs: BTreeSet<Digest>,
    faults: Vec<String>,
}

impl<'a> Chosen<'a> {
    /// Chooses the records that are not `lost` and have all their blobs.
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
    /// To a blob that is missing or damaged.
    Without(Unavailable),
}

fn write(cas: &Cas, chosen: &Chosen<'_>, draft: &mut fs::Draft) -> io::Result<Written> {
    // The digest stands at the beginning and is known at the end, so its place is filled in later.
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

/// Passes bytes on, and keeps their digest and count.
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
