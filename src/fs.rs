//! Files: the few calls that t2t makes of the file system, each of which either happens whole or not at all.
//!
//! It does not know what the files mean.
#![expect(clippy::disallowed_methods, reason = "this file is where files are touched")]

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

/// What tells two states of a file apart without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stat {
    /// Length in bytes.
    pub size: u64,
    /// Time of the last write, in nanoseconds since 1970.
    pub mtime: i64,
    /// Time of the last change of the inode, in nanoseconds since 1970.
    pub ctime: i64,
    /// The inode's number.
    pub inode: u64,
}

/// Returns the state of the file at `path`, or None where there is no regular file.
#[must_use]
pub fn stat(path: &Path) -> Option<Stat> {
    let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Some(Stat {
        size: facts.size(),
        mtime: nanoseconds(facts.mtime(), facts.mtime_nsec()),
        ctime: nanoseconds(facts.ctime(), facts.ctime_nsec()),
        inode: facts.ino(),
    })
}

/// Returns when the folder (or file) at `path` last changed, in nanoseconds since 1970, or None where there is nothing.
#[must_use]
pub fn folder_time(path: &Path) -> Option<i64> {
    let facts = fs::metadata(path).ok()?;
    Some(facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec()))
}

/// Returns the time in nanoseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Opens the file at `path` to be written from its beginning on, bit by bit: for what somebody reads while it grows. A pipe or a device will do.
pub fn open_to_write(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// Returns the bytes of the file at `path`.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Returns the bytes of the file at `path`, or None where there is none.
pub fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes `bytes` to `path`, which holds the old bytes or the new ones at every moment. Makes the folders above it.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let temporary = temporary_name(path);
    let written = File::create(&temporary).and_then(|mut file| file.write_all(bytes));
    let moved = written.and_then(|()| fs::rename(&temporary, path));
    if moved.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    moved
}

/// Moves the file at `from` to `to`, over what is there. Both lie on one file system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    make_folder(to.parent().unwrap_or(Path::new(".")))?;
    fs::rename(from, to)
}

/// Makes the folder at `path` and those above it.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Removes the file or folder at `path`, if it is there.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns the names in the folder at `path`, sorted. Empty where there is no folder.
#[must_use]
pub fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Returns the files below `folder` with this ending, sorted. Links are not followed; what cannot be read is left out.
#[must_use]
pub fn files_below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let files = entries.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path);
    files.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// Returns the files below `folder` that [`write()`] had not finished, but for those in its folders named `but`. Links are not followed.
#[must_use]
pub fn unfinished_below(folder: &Path, but: &[&str]) -> Vec<PathBuf> {
    let is_left_out = |entry: &walkdir::DirEntry| {
        entry.depth() == 1 && entry.file_name().to_str().is_some_and(|name| but.contains(&name))
    };
    let entries = WalkDir::new(folder).into_iter().filter_entry(|entry| !is_left_out(entry)).flatten();
    let files = entries.filter(|entry| entry.file_type().is_file());
    files
        .filter(|entry| entry.file_name().to_str().is_some_and(is_unfinished))
        .map(walkdir::DirEntry::into_path)
        .collect()
}

/// Returns the error with the place where it happened, which the system does not tell.
#[must_use]
pub fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// Returns whether a file of this name is one that [`write()`] had not finished.
#[must_use]
pub fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && Path::new(name).extension().is_some_and(|ending| ending == "tmp")
}

/// Returns the process that began to write a file of this name and did not finish it; None where the name is none of [`write()`]'s.
#[must_use]
pub fn writer_of(name: &str) -> Option<u32> {
    let parts = name.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (rest, number) = parts.rsplit_once('.')?;
    number.parse::<u64>().ok()?;
    rest.rsplit_once('.')?.1.parse().ok()
}

/// Returns whether there is a process of this number that is not this one. In a container, numbers come again soon.
#[must_use]
pub fn is_another_process(number: u32) -> bool {
    number != std::process::id() && Path::new("/proc").join(number.to_string()).is_dir()
}

fn temporary_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}.{number}.tmp", std::process::id()))
}
