//! The journal: every record, one a line, each behind a checksum of its own.
//!
//! A build only ever adds lines; what keeps house writes the file anew and renames it over. Both hold the workspace's lock. A torn or damaged line is
//! skipped and counted.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::decide::History;
use crate::digest::Digest;
use crate::fs;
use crate::record::{Outcome, Record};

/// The first line; another number is read as an empty journal. 1: first.
const HEADER: &str = "t2t journal 1";

/// How many hexadecimal digits of a line's digest stand before it.
const CHECK: usize = 16;

/// The journal of one store.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Option<File>,
}

/// What a journal held.
#[derive(Debug, Default)]
pub struct Loaded {
    /// All records, the last of each action among them.
    pub history: History,
    /// How many lines were damaged.
    pub damaged: usize,
}

/// From how many lines on a thread of its own saves more than it costs.
const WORTH_A_THREAD: usize = 512;

/// Where a line of the journal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinePlace {
    /// How many bytes stand before it.
    pub offset: u64,
    /// How many bytes it has, its end included.
    pub length: u32,
}

/// The lines of a journal.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Lines {
    /// All records, oldest first.
    pub records: Vec<Record>,
    /// The numbers of the damaged lines, counted from 1.
    pub damaged: Vec<usize>,
    /// Whether the bytes are no journal of this version.
    pub is_foreign: bool,
}

impl Lines {
    /// Returns the lines that `bytes` hold. No bytes are an empty journal.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines();
        let mut read = Self::default();
        if lines.next() != Some(HEADER) {
            read.is_foreign = !bytes.is_empty();
            return read;
        }
        let lines: Vec<&str> = lines.collect();
        let parsed: Vec<Option<Record>> =
            lines.par_iter().with_min_len(WORTH_A_THREAD).map(|line| parse(line)).collect();
        for (number, record) in (2..).zip(parsed) {
            match record {
                Some(record) => read.records.push(record),
                None => read.damaged.push(number),
            }
        }
        read
    }

    /// Returns the bytes of a journal of `records`, oldest first.
    pub fn write<'a>(records: impl IntoIterator<Item = &'a Record>) -> io::Result<Vec<u8>> {
        let mut bytes = format!("{HEADER}\n").into_bytes();
        for record in records {
            bytes.extend(line(record)?.into_bytes());
        }
        Ok(bytes)
    }

    /// Returns the records that count, oldest first: of those of one action with one key and the same discovered files, the newest.
    #[must_use]
    pub fn live(&self) -> Vec<&Record> {
        let mut seen = HashSet::new();
        let newest = self.records.iter().rev().filter(|record| seen.insert(sameness(record)));
        let mut live: Vec<&Record> = newest.collect();
        live.reverse();
        live
    }
}

/// Returns what two records share of which the older counts no more.
pub(super) fn sameness(record: &Record) -> (String, Digest, String, bool) {
    let discovered = serde_json::to_string(&record.discovered).unwrap_or_default();
    (record.identity.to_string(), record.key, discovered, matches!(record.outcome, Outcome::Lost { .. }))
}

impl Journal {
    /// Returns the journal kept under `cache`.
    #[must_use]
    pub fn open(cache: &Path) -> Self {
        Self { path: cache.join("journal"), file: None }
    }

    /// Reads all records. A journal that is not there, or of another version, holds none.
    pub fn load(&self) -> io::Result<Loaded> {
        let lines = self.lines()?;
        let damaged = lines.damaged.len() + usize::from(lines.is_foreign);
        let mut loaded = Loaded { damaged, ..Loaded::default() };
        lines.records.into_iter().for_each(|record| loaded.history.add(record));
        Ok(loaded)
    }

    /// Returns where the lines of each action stand, oldest first: the target as it is written there, the line's offset in bytes and its length. What they
    /// hold is not looked at.
    pub fn places(&self) -> io::Result<Vec<(String, LinePlace)>> {
        let bytes = self.bytes()?;
        let mut found = Vec::new();
        let mut offset = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let place = LinePlace { offset, length: u32::try_from(line.len()).unwrap_or(u32::MAX) };
            found.extend(target_of(line).map(|target| (target, place)));
            offset += line.len() as u64;
        }
        Ok(found)
    }

    /// Reads the records at `places` alone.
    #[expect(clippy::disallowed_methods, reason = "a few lines of a long file are read")]
    pub fn load_from(&self, places: &[LinePlace]) -> io::Result<Loaded> {
        let file = File::open(&self.path)?;
        let mut loaded = Loaded::default();
        for place in places {
            let mut line = vec![0; place.length as usize];
            file.read_exact_at(&mut line, place.offset)?;
            match std::str::from_utf8(&line).ok().and_then(|line| parse(line.trim_end_matches('\n'))) {
                Some(record) => loaded.history.add(record),
                None => loaded.damaged += 1,
            }
        }
        Ok(loaded)
    }

    /// Reads all lines, the damaged ones counted.
    pub fn lines(&self) -> io::Result<Lines> {
        Ok(Lines::read(&self.bytes()?))
    }

    /// Returns the bytes of the journal; none where there is none.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        Ok(fs::read_if_there(&self.path).map_err(|error| fs::at(&self.path, &error))?.unwrap_or_default())
    }

    /// Writes the journal anew: whoever reads meanwhile sees the old one or the new one. The caller holds the workspace's lock.
    pub fn rewrite<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> io::Result<()> {
        self.file = None;
        fs::write(&self.path, &Lines::write(records)?).map_err(|error| fs::at(&self.path, &error))
    }

    /// Adds a record. When it returns, the record is the action's last, also for a process that starts after a kill of this one.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        let line = line(record)?;
        let written = self.writer().and_then(|file| file.write_all(line.as_bytes()));
        written.map_err(|error| fs::at(&self.path, &error))
    }

    fn writer(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            self.file = Some(open_to_append(&self.path)?);
        }
        Ok(self.file.as_mut().expect("it was opened above"))
    }
}

/// Opens the journal to add lines: a missing or foreign one starts anew, and a torn last line is ended.
#[expect(clippy::disallowed_methods, reason = "the journal is kept open while a build adds to it")]
fn open_to_append(path: &Path) -> io::Result<File> {
    let bytes = fs::read_if_there(path)?.unwrap_or_default();
    if !bytes.starts_with(format!("{HEADER}\n").as_bytes()) {
        fs::write(path, format!("{HEADER}\n").as_bytes())?;
    }
    let open = || OpenOptions::new().append(true).open(path);
    let mut file = match open() {
        // A restored journal may be another user's, or one that may only be read: in a folder that can be written it is written anew.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::write(path, &bytes)?;
            open()
        }
        opened => opened,
    }?;
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Returns the target that a line names first, which is that of its identity.
fn target_of(line: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = br#" {"identity":{"target":""#;
    let rest = line.get(CHECK..)?.strip_prefix(BEFORE)?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    String::from_utf8(rest[..end].to_vec()).ok()
}

fn line(record: &Record) -> io::Result<String> {
    let body = serde_json::to_string(record).map_err(io::Error::other)?;
    Ok(format!("{} {body}\n", check(&body)))
}

fn check(body: &str) -> String {
    Digest::of(body.as_bytes()).to_string().chars().take(CHECK).collect()
}

fn parse(line: &str) -> Option<Record> {
    let (sum, body) = line.split_once(' ')?;
    (sum == check(body)).then(|| serde_json::from_str(body).ok()).flatten()
}
