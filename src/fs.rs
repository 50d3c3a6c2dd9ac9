//! Files: the few calls that t2t makes of the file system, each of which either happens whole or not at all.
//!
//! It does not know what the files mean.
#![expect(clippy::disallowed_methods, reason = "this file is where files are touched")]

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
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

/// Returns whether `path`, which is relative, is or goes through a link below `root`.
#[must_use]
pub fn is_linked(root: &Path, path: &Path) -> bool {
    let is_link = |part: &Path| fs::symlink_metadata(root.join(part)).is_ok_and(|facts| facts.is_symlink());
    path.ancestors().filter(|part| !part.as_os_str().is_empty()).any(is_link)
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

/// Opens the file at `path` to be read bit by bit, or None where there is none.
pub fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the length of an open file in bytes.
pub fn length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
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
    write_by(path, |file| file.write_all(bytes))
}

/// Does what [`write()`] does, and waits before it renames until the bytes are on the disk: a loss of power leaves the old ones or the new ones, too.
pub fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_by(path, |file| file.write_all(bytes).and_then(|()| file.sync_all()))
}

fn write_by(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary_name(path);
    let written = created(&temporary).and_then(|mut file| write(&mut file));
    let moved = written.and_then(|()| fs::rename(&temporary, path));
    if moved.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    moved
}

/// Writes `bytes` to `path`, a file that nobody else knows of, in a folder that is there: one that is not finished does no harm.
pub fn write_unshared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)
}

/// A file that is written bit by bit and appears whole: until it is finished it lies under another name beside its place. One that is dropped before is removed.
#[derive(Debug)]
pub struct Draft {
    file: File,
    temporary: PathBuf,
    place: PathBuf,
}

impl Draft {
    /// Starts a file that is to be at `place`. Makes the folders above it.
    pub fn start(place: &Path) -> io::Result<Self> {
        let temporary = temporary_name(place);
        Ok(Self { file: created(&temporary)?, temporary, place: place.to_owned() })
    }

    /// Starts again: what was written is forgotten.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()
    }

    /// Puts the file in its place, over what is there.
    pub fn finish(self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.place)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Draft {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is not there any more where the draft was finished.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Moves the file or folder at `from` to `to`, over what is there: a file, or an empty folder. Makes the folders above it. Both lie on one file system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_folder(above(to))?;
            fs::rename(from, to)
        }
        moved => moved,
    }
}

/// Makes a file, and where need be the folders above it: they are there most often, and to look costs more than to try.
fn created(path: &Path) -> io::Result<File> {
    match File::create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_folder(above(path))?;
            File::create(path)
        }
        made => made,
    }
}

fn above(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
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

/// Returns how many files lie below `path`, itself if it is one, and how many bytes they have. What cannot be read is left out.
#[must_use]
pub fn weight(path: &Path) -> (usize, u64) {
    let entries = WalkDir::new(path).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    let sizes: Vec<u64> = entries.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).collect();
    (sizes.len(), sizes.iter().sum())
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
