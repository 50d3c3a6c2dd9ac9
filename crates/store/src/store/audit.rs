//! The audit: it reads every line of the journal and every blob, and compares them with checksums, digests and the records.
//!
//! It waits for nobody and changes nothing; `repair` removes damaged entries. Artifacts that were left out on purpose are no damage.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use t2t_model::digest::Digest;
use t2t_model::manifest::Manifest;
use t2t_model::publication::is_published;
use t2t_model::record::Record;

use super::cas::{Cas, Damaged};
use super::journal::{Journal, Lines};
use crate::fs;

/// The names that t2t keeps in the store's folder, and files with which people and tools mark a cache.
const KNOWN: [&str; 17] = [
    "against",
    "answers",
    ".gitignore",
    ".gitkeep",
    "CACHEDIR.TAG",
    "cas",
    "harness",
    "improve",
    "journal",
    "lock",
    "nodes",
    "profile",
    "replaced",
    "scratch",
    "sources.json",
    "submitted",
    "toolchain",
];

/// How often an audit starts over because the store was collected meanwhile.
const RESTARTS: usize = 4;

/// One damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The journal is not one of this version.
    Journal,
    /// A line of the journal, counted from 1.
    Line(usize),
    /// A blob is missing that records name: the name of the artifact, and its action.
    Missing(Digest, Vec<String>),
    /// A blob's bytes are not those it is named for; the records that name it.
    Damaged(Digest, Vec<String>),
    /// A blob cannot be read; why.
    Unreadable(Digest, String),
    /// A record and its blob do not agree: what.
    Record(String),
    /// A file that is not the store's.
    Foreign(PathBuf),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal => f.write_str("journal: it is of another version, or its first line is damaged"),
            Self::Line(number) => write!(f, "journal:{number}: the line does not match its checksum"),
            Self::Missing(digest, names) => write!(f, "blob {digest}: it is missing; it is {}", names.join(", ")),
            Self::Damaged(digest, names) if names.is_empty() => {
                write!(f, "blob {digest}: its bytes do not match its name; no record names it")
            }
            Self::Damaged(digest, names) => {
                write!(f, "blob {digest}: its bytes do not match its name; it is {}", names.join(", "))
            }
            Self::Unreadable(digest, error) => write!(f, "blob {digest}: it cannot be read: {error}"),
            Self::Record(what) => f.write_str(what),
            Self::Foreign(path) => write!(f, "{}: t2t made no such file", path.display()),
        }
    }
}

impl Fault {
    /// Returns whether something is missing rather than damaged.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(..))
    }

    /// Returns what happens to it.
    #[must_use]
    pub fn then(&self) -> &'static str {
        match self {
            Self::Journal => "every action runs again",
            Self::Line(_) => "its action runs again, or an earlier result stands",
            Self::Damaged(_, names) if names.is_empty() => "nothing needs it",
            Self::Missing(_, names) | Self::Damaged(_, names)
                if names.iter().all(|name| name.starts_with(MANIFEST)) =>
            {
                "the result stands; `t2t explain` cannot say what changed since"
            }
            Self::Missing(..) | Self::Damaged(..) | Self::Unreadable(..) | Self::Record(_) => {
                "where it is needed, the action that made it runs again; `t2t cache verify --repair` has it run in any case"
            }
            Self::Foreign(_) => "it is never read",
        }
    }
}

/// How the name of a manifest among the uses of a blob starts.
const MANIFEST: &str = "the manifest of ";

/// What an audit found.
#[derive(Debug, Default)]
pub struct Audit {
    /// All damages.
    pub faults: Vec<Fault>,
    /// How many records count.
    pub records: usize,
    /// How many blobs were read.
    pub blobs: usize,
    /// Their length together, in bytes.
    pub bytes: u64,
    /// How many artifacts are left out on purpose: compiled kernels, of an export or a publication without them.
    pub left_out: usize,
    /// How many whole blobs no record names.
    pub unnamed: usize,
    /// How many files were being written, or were when a process was killed.
    pub unfinished: usize,
}

/// Reads everything in the store under `cache`.
pub fn audit(cache: &Path) -> io::Result<Audit> {
    let journal = Journal::open(cache);
    for _ in 1..RESTARTS {
        let before = journal.bytes()?;
        let audit = look(cache, &before);
        // Faults count only if the journal is unchanged, or a build has only appended whole lines. A collection rewrites the journal before it removes blobs,
        // so blobs that it removed are no damage.
        let now = journal.bytes()?;
        if audit.faults.is_empty() || now == before || (now.starts_with(&before) && before.ends_with(b"\n")) {
            return Ok(audit);
        }
    }
    Ok(look(cache, &journal.bytes()?))
}

fn look(cache: &Path, journal: &[u8]) -> Audit {
    let lines = Lines::read(journal);
    let cas = Cas::open(cache);
    let listing = cas.list();
    let live = lines.live();
    let mut audit = Audit {
        records: live.len(),
        blobs: listing.blobs.len(),
        bytes: listing.bytes(),
        unfinished: listing.unfinished.len(),
        ..Audit::default()
    };
    audit.faults.extend(lines.is_foreign.then_some(Fault::Journal));
    audit.faults.extend(lines.damaged.iter().copied().map(Fault::Line));
    let uses = named(&live);
    let digests: BTreeSet<Digest> = uses.keys().chain(listing.blobs.keys()).copied().collect();
    let digests: Vec<Digest> = digests.into_iter().collect();
    let looks: Vec<_> = digests.par_iter().map(|digest| cas.look_at(*digest)).collect();
    let mut lengths: HashMap<Digest, u64> = HashMap::new();
    for (digest, look) in digests.into_iter().zip(looks) {
        let names = uses.get(&digest).cloned().unwrap_or_default();
        match look {
            Ok(Some(Ok(length))) => {
                lengths.insert(digest, length);
                audit.unnamed += usize::from(names.is_empty());
            }
            Ok(Some(Err(Damaged))) => audit.faults.push(Fault::Damaged(digest, texts(&names))),
            Ok(None) if names.iter().all(|(_, is_needed)| !is_needed) => audit.left_out += names.len(),
            Ok(None) => audit.faults.push(Fault::Missing(digest, texts(&names))),
            Err(error) => audit.faults.push(Fault::Unreadable(digest, error.to_string())),
        }
    }
    let disagreements: Vec<Vec<String>> = live.par_iter().map(|record| disagreements(&cas, &lengths, record)).collect();
    audit.faults.extend(disagreements.into_iter().flatten().map(Fault::Record));
    audit.faults.extend(listing.foreign.into_iter().map(Fault::Foreign));
    let others =
        fs::names(cache).into_iter().filter(|name| !KNOWN.contains(&name.as_str()) && !fs::is_unfinished(name));
    audit.faults.extend(others.map(|name| Fault::Foreign(cache.join(name))));
    audit
}

fn texts(names: &[(String, bool)]) -> Vec<String> {
    names.iter().map(|(name, _)| name.clone()).collect()
}

/// Returns the blobs that records name: as what, and whether each must be there.
fn named(records: &[&Record]) -> BTreeMap<Digest, Vec<(String, bool)>> {
    let mut named: BTreeMap<Digest, Vec<(String, bool)>> = BTreeMap::new();
    for record in records {
        named.entry(record.key).or_default().push((format!("{MANIFEST}{}", record.identity), true));
        for (name, blob) in &record.outputs {
            let of = format!("`{name}` of {}", record.identity);
            named.entry(blob.digest).or_default().push((of, is_published(name)));
        }
    }
    named
}

/// Returns the faults of a record: what it says of whole blobs that their `lengths` contradict.
fn disagreements(cas: &Cas, lengths: &HashMap<Digest, u64>, record: &Record) -> Vec<String> {
    let mut found = Vec::new();
    let manifest = lengths.get(&record.key).and_then(|_| fs::read_own(&cas.path(record.key)).ok());
    // It may have been damaged since it was read above.
    let manifest = manifest.filter(|bytes| Digest::of(bytes) == record.key);
    if manifest.is_some_and(|bytes| Manifest::decode(&bytes).is_none()) {
        found.push(format!("record of {}: its manifest {} is no manifest", record.identity, record.key));
    }
    for (name, blob) in &record.outputs {
        if lengths.get(&blob.digest).is_some_and(|length| *length != blob.size) {
            found.push(format!("record of {}: `{name}` is not {} bytes long", record.identity, blob.size));
        }
    }
    found
}

/// Removes damaged blobs, damaged lines, and records without an artifact or the manifest, so that their actions run again. Foreign files stay. The caller holds
/// the workspace's lock.
pub fn repair(cache: &Path, audit: &Audit) -> io::Result<()> {
    let cas = Cas::open(cache);
    let mut removed = BTreeSet::new();
    for fault in &audit.faults {
        if let Fault::Damaged(digest, _) = fault {
            cas.remove(*digest)?;
            removed.insert(*digest);
        }
    }
    let mut journal = Journal::open(cache);
    let lines = journal.lines()?;
    let there = cas.list().blobs;
    let is_whole = |record: &&Record| {
        let has_manifest = there.contains_key(&record.key);
        has_manifest
            && record.outputs.iter().all(|(name, blob)| match there.get(&blob.digest) {
                Some(stat) => stat.size == blob.size,
                None => !is_published(name) && !removed.contains(&blob.digest),
            })
    };
    let whole: Vec<&Record> = lines.live().into_iter().filter(is_whole).collect();
    if whole.len() < lines.records.len() || !lines.damaged.is_empty() || lines.is_foreign {
        journal.rewrite(whole)?;
    }
    Ok(())
}
