//! The journal: every record, one a line, each behind a checksum of its own.
//!
//! A build appends lines. Garbage collection rewrites the file and renames it over, and so does a build if most lines only repeat others. Both hold the
//! workspace's lock. A torn or damaged line is skipped and counted.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::record::{Outcome, Record};

use crate::fs;

#[cfg(test)]
mod tests;
mod extent;
mod named;
mod wear;

pub use self::extent::Extent;
pub use self::named::Named;

/// The first line; another number is read as an empty journal. 1: first.
const HEADER: &str = "t2t journal 1";

/// How many hexadecimal digits of a line's digest stand before it.
const CHECK: usize = 16;

/// The journal of one store.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Option<File>,
    /// Lines that are not written yet.
    again: String,
}

/// What a journal held.
#[derive(Debug, Default)]
pub struct Loaded {
    /// All records, the last of each action among them.
    pub history: History,
    /// How many lines were damaged.
    pub damaged: usize,
    /// Whether so many lines repeat others that to read them costs more than to write the journal anew: see [`Journal::shed`].
    pub is_worn: bool,
}

/// How many bytes of lines wait at most to be written.
const MANY: usize = 1 << 20;

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
        let mut read = Self::default();
        let Some(lines) = body(&text) else {
            read.is_foreign = !bytes.is_empty();
            return read;
        };
        let lines: Vec<&str> = lines.collect();
        for (number, record) in (2..).zip(parse_all(&lines, |line| line)) {
            match record {
                Some(record) => read.records.push(record),
                None => read.damaged.push(number),
            }
        }
        read
    }

    /// Returns the bytes of a journal of `records`, oldest first.
    pub fn write<'a>(records: impl IntoIterator<Item = &'a Record>) -> io::Result<Vec<u8>> {
        let records: Vec<&Record> = records.into_iter().collect();
        let lines: io::Result<Vec<String>> =
            records.par_iter().with_min_len(WORTH_A_THREAD).map(|record| line(record)).collect();
        Ok(format!("{HEADER}\n{}", lines?.concat()).into_bytes())
    }

    /// Returns the records that count, oldest first: of several with the same action, key and discovered files only the newest.
    #[must_use]
    pub fn live(&self) -> Vec<&Record> {
        let mut seen = HashSet::new();
        let newest = self.records.iter().rev().filter(|record| seen.insert(sameness(record)));
        let mut live: Vec<&Record> = newest.collect();
        live.reverse();
        live
    }
}

/// Returns a record's identity for replacement: of two records with the same one, the older does not count.
pub(super) fn sameness(record: &Record) -> (String, Digest, String, bool) {
    let discovered = serde_json::to_string(&record.discovered).unwrap_or_default();
    (record.identity.to_string(), record.key, discovered, matches!(record.outcome, Outcome::Lost { .. }))
}

impl Journal {
    /// Returns the journal kept under `cache`.
    #[must_use]
    pub fn open(cache: &Path) -> Self {
        Self { path: cache.join("journal"), file: None, again: String::new() }
    }

    /// Reads all records. A journal that is not there, or of another version, holds none. A result that came back was added again as it was: of lines that are
    /// alike only the last is parsed, so that going back and forth costs no more each time.
    pub fn load(&self) -> io::Result<Loaded> {
        let bytes = self.bytes()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut loaded = Loaded::default();
        let Some(lines) = body(&text) else {
            loaded.damaged = usize::from(!bytes.is_empty());
            return Ok(loaded);
        };
        let lines = distinct(lines, |line| line.as_bytes());
        let mut repeats = 0;
        for ((_, times), record) in lines.iter().zip(parse_all(&lines, |(line, _)| line)) {
            match record {
                Some(record) => {
                    repeats += times - 1;
                    loaded.history.add(record);
                }
                None => loaded.damaged += times,
            }
        }
        loaded.is_worn = wear::is_worn(repeats, lines.len());
        Ok(loaded)
    }

    /// Returns what each line names, and where it stands, oldest first. What the line holds else is not looked at; of lines that are alike only the last is told.
    pub fn places(&self) -> io::Result<Vec<Named>> {
        let bytes = self.bytes()?;
        let lines: Vec<(&[u8], LinePlace)> = parted(&bytes, 0).collect();
        let lines = distinct(lines.into_iter(), |(line, _)| line);
        Ok(lines.into_iter().filter_map(|((line, place), _)| Named::of(line, place)).collect())
    }

    /// Reads the records at `places` alone.
    pub fn load_from(&self, places: &[LinePlace]) -> io::Result<Loaded> {
        let mut loaded = Loaded { history: History::default().in_part(), ..Loaded::default() };
        for record in self.records_at(places)? {
            match record {
                Some(record) => loaded.history.add(record),
                None => loaded.damaged += 1,
            }
        }
        Ok(loaded)
    }

    /// Reads the records at `places`; None for each that is damaged.
    pub fn records_at(&self, places: &[LinePlace]) -> io::Result<Vec<Option<Record>>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let file = File::open(&self.path)?;
        let read = |place: &LinePlace| {
            let mut line = vec![0; place.length as usize];
            file.read_exact_at(&mut line, place.offset)?;
            Ok(std::str::from_utf8(&line).ok().and_then(|line| parse(line.trim_end_matches('\n'))))
        };
        places.iter().map(read).collect()
    }

    /// Reads all lines, the damaged ones counted.
    pub fn lines(&self) -> io::Result<Lines> {
        Ok(Lines::read(&self.bytes()?))
    }

    /// Returns the bytes of the journal; none where there is none.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        Ok(fs::read_own_if_there(&self.path).map_err(|error| fs::at(&self.path, &error))?.unwrap_or_default())
    }

    /// Rewrites the journal. A reader sees the old one or the new one. The caller holds the workspace's lock.
    pub fn rewrite<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> io::Result<()> {
        self.file = None;
        fs::write(&self.path, &Lines::write(records)?).map_err(|error| fs::at(&self.path, &error))
    }

    /// Writes the journal anew without the lines that a later one repeats: whoever reads it is told the same, before and after. Damaged lines stay. It is on the
    /// disk before it takes the old one's place, since all that is known is in it. The caller holds the workspace's lock.
    pub fn shed(&mut self) -> io::Result<()> {
        let Some(bytes) = wear::without_repeats(&self.bytes()?) else { return Ok(()) };
        self.file = None;
        fs::write_through(&self.path, &bytes).map_err(|error| fs::at(&self.path, &error))
    }

    /// Adds a record. When it returns, the record is the action's last, also for a process that starts after a kill of this one.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        self.add_again(record)?;
        self.write_added()
    }

    /// Adds a record that the store knows: after a kill before the next [`Self::add`] or [`Self::write_added`] it is found again, and added then.
    pub fn add_again(&mut self, record: &Record) -> io::Result<()> {
        self.again.push_str(&line(record)?);
        if self.again.len() > MANY { self.write_added() } else { Ok(()) }
    }

    /// Writes the lines that were added and not written.
    pub fn write_added(&mut self) -> io::Result<()> {
        if self.again.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.again);
        let written = self.writer().and_then(|file| file.write_all(lines.as_bytes()));
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
fn open_to_append(path: &Path) -> io::Result<File> {
    let header = format!("{HEADER}\n");
    let there = fs::open_own_if_there(path)?;
    if !there.map_or(Ok(false), |file| begins_with(&file, header.as_bytes()))? {
        fs::write(path, header.as_bytes())?;
    }
    let open = || OpenOptions::new().read(true).append(true).open(path);
    let mut file = match open() {
        // A restored journal may be another user's, or one that may only be read: in a folder that can be written it is written anew.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::write(path, &fs::read_own(path)?)?;
            open()
        }
        opened => opened,
    }?;
    // A kill may have left half a line. The next record would be appended to it, and both would be lost.
    let mut last = [0];
    file.read_exact_at(&mut last, fs::length(&file)?.saturating_sub(1))?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

fn begins_with(file: &File, header: &[u8]) -> io::Result<bool> {
    let mut head = vec![0; header.len()];
    match file.read_exact_at(&mut head, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| head == header),
    }
}

/// Returns the lines behind the first, or None where that is not the one of this version.
fn body(text: &str) -> Option<impl DoubleEndedIterator<Item = &str>> {
    let mut lines = text.lines();
    (lines.next() == Some(HEADER)).then_some(lines)
}

/// Returns the lines of `bytes`, which begin at this offset of the journal, each with where it stands.
fn parted(bytes: &[u8], mut offset: u64) -> impl Iterator<Item = (&[u8], LinePlace)> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        let place = LinePlace { offset, length: u32::try_from(line.len()).unwrap_or(u32::MAX) };
        offset += line.len() as u64;
        (line, place)
    })
}

/// Returns the lines that differ, in the order in which each stands there last, and how often each does.
fn distinct<'a, T>(lines: impl DoubleEndedIterator<Item = T>, bytes: impl Fn(&T) -> &'a [u8]) -> Vec<(T, usize)> {
    // By their checks: to look at all of each line costs more than there is to save. A damaged line may have another one's.
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut found: Vec<(T, usize)> = Vec::new();
    for line in lines.rev() {
        let place = *places.entry(bytes(&line).get(..CHECK).unwrap_or_default()).or_insert(found.len());
        match found.get_mut(place) {
            Some((later, times)) if bytes(later) == bytes(&line) => *times += 1,
            _ => found.push((line, 1)),
        }
    }
    found.reverse();
    found
}

/// Returns the record of each line, on all cores where they are many; None for one that is damaged.
fn parse_all<T: Sync>(lines: &[T], text: impl Fn(&T) -> &str + Sync) -> Vec<Option<Record>> {
    lines.par_iter().with_min_len(WORTH_A_THREAD).map(|line| parse(text(line))).collect()
}

fn line(record: &Record) -> io::Result<String> {
    let body = serde_json::to_string(record).map_err(io::Error::other)?;
    Ok(format!("{} {body}\n", check(&body)))
}

fn check(body: &str) -> String {
    let mut digits = Digest::of(body.as_bytes()).to_string();
    digits.truncate(CHECK);
    digits
}

fn parse(line: &str) -> Option<Record> {
    whole(line).and_then(|body| serde_json::from_str(body).ok())
}

/// Returns the body of a line; None where it is not what its check says.
fn whole(line: &str) -> Option<&str> {
    line.split_once(' ').filter(|(sum, body)| *sum == check(body)).map(|(_, body)| body)
}
