//! The journal: every record, one a line, each behind a checksum of its own.
//!
//! Lines are only ever added, by the one process that holds the workspace's lock. A torn or damaged line is skipped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::decide::History;
use crate::digest::Digest;
use crate::fs;
use crate::record::Record;

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

impl Journal {
    /// Returns the journal kept under `cache`.
    #[must_use]
    pub fn open(cache: &Path) -> Self {
        Self { path: cache.join("journal"), file: None }
    }

    /// Reads all records. A journal that is not there, or of another version, holds none.
    pub fn load(&self) -> io::Result<Loaded> {
        let bytes = fs::read_if_there(&self.path)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let mut loaded = Loaded::default();
        if lines.next() != Some(HEADER) {
            loaded.damaged = usize::from(!bytes.is_empty());
            return Ok(loaded);
        }
        for line in lines {
            match parse(line) {
                Some(record) => loaded.history.add(record),
                None => loaded.damaged += 1,
            }
        }
        Ok(loaded)
    }

    /// Adds a record. When it returns, the record is the action's last, also for a process that starts after a kill of this one.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        let body = serde_json::to_string(record).map_err(io::Error::other)?;
        let line = format!("{} {body}\n", check(&body));
        self.writer()?.write_all(line.as_bytes())
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
    let mut file = OpenOptions::new().append(true).open(path)?;
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

fn check(body: &str) -> String {
    Digest::of(body.as_bytes()).to_string().chars().take(CHECK).collect()
}

fn parse(line: &str) -> Option<Record> {
    let (sum, body) = line.split_once(' ')?;
    (sum == check(body)).then(|| serde_json::from_str(body).ok()).flatten()
}
