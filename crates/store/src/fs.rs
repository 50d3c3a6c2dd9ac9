//! Files: the few calls that t2t makes of the file system. Each happens whole or not at all.
//!
//! It does not know what the files mean.
#![expect(clippy::disallowed_methods, reason = "this file is where files are touched")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::statvfs::statvfs;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

mod below;
mod draft;

pub use self::below::read_below;
pub use self::draft::Draft;

/// A file's state: it tells two versions apart without reading them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stat {
    /// Length in bytes.
    pub size: u64,
    /// Time of the last write, in nanoseconds since 1970.
    pub(crate) mtime: i64,
    /// Time of the last change of the inode, in nanoseconds since 1970.
    pub(crate) ctime: i64,
    /// The inode's number.
    pub(crate) inode: u64,
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

/// Returns what the system knows the file or folder at `path` by, the numbers of its device and inode; None where there is nothing. What takes its place has another number.
#[must_use]
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

/// Returns the same of what is open.
#[must_use]
pub fn identity_of(open: &impl AsFd) -> Option<(u64, u64)> {
    let facts = File::from(open.as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
    Some((facts.dev(), facts.ino()))
}

/// Makes a link at `path` to `to`, and the folders above it.
pub fn link(to: &Path, path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), make_folder)?;
    std::os::unix::fs::symlink(to, path)
}

/// Returns where the file at `path` is without links, relative to `root`; None where it is not there, or lies elsewhere.
#[must_use]
pub fn resolved_below(root: &Path, path: &Path) -> Option<PathBuf> {
    let whole = fs::canonicalize(path).ok()?;
    whole.strip_prefix(fs::canonicalize(root).ok()?).ok().map(Path::to_owned)
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

/// Says of the file at `path` that it was written now, its bytes left as they are.
pub(crate) fn touch(path: &Path) -> io::Result<()> {
    File::open(path)?.set_modified(SystemTime::now())
}

/// Returns the time in nanoseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    // A clock before 1970 counts as 1970: then every file looks newer than its reading, and is read again.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Opens the file at `path` for writing from its beginning, for output that is read while it grows. A pipe or a device will do.
pub fn open_to_write(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// The most bytes that a file of t2t's own may have: far more than any has.
const LONGEST: u64 = 4 << 30;

/// Who may have put something in a file's place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// Others: links are followed.
    Given,
    /// Only t2t, which makes no links: a link is an error.
    Own,
}

/// Opens a file for reading. It never blocks, as opening a pipe would: anything but a file is an error.
fn opened(path: &Path, place: Ownership) -> io::Result<File> {
    let mut flags = OFlag::O_NONBLOCK;
    flags.set(OFlag::O_NOFOLLOW, place == Ownership::Own);
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    let no_file = |what: &str| io::Error::new(io::ErrorKind::Unsupported, format!("{what}, and no file"));
    let file = file.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ELOOP) if place == Ownership::Own => no_file("it is a link"),
        Some(Errno::ENXIO) => no_file("it is a socket or a device"),
        _ => error,
    })?;
    let facts = file.metadata()?;
    if facts.is_dir() {
        return Err(Errno::EISDIR.into());
    }
    if facts.is_file() { Ok(file) } else { Err(no_file("it is a pipe or a device")) }
}

/// Turns "not found" into None.
fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens the file at `path` for reading in parts, or None where there is none. A pipe will do.
pub fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    if_there(File::open(path))
}

/// Opens a file that t2t wrote for reading in parts, or None where there is none. A link, a pipe or a device in its place is an error.
pub(crate) fn open_own_if_there(path: &Path) -> io::Result<Option<File>> {
    if_there(opened(path, Ownership::Own))
}

/// Returns the bytes of a file that t2t wrote. Anything but a file, or one far longer than t2t writes, is an error.
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    whole(opened(path, Ownership::Own)?)
}

/// Returns the bytes of a file that t2t wrote, or None where there is none. The rest is as for [`read_own`].
pub(crate) fn read_own_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if_there(read_own(path))
}

fn whole(file: File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::Unsupported, format!("it is longer than {LONGEST} bytes")));
    }
    // Files of `/proc` and `/sys` claim to have no length, so they are read to their end.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns why `path` cannot be looked at, or None where it can: the rights to a folder above it, or to the file, are missing.
#[must_use]
pub(crate) fn denied(path: &Path) -> Option<io::Error> {
    opened(path, Ownership::Given).err().filter(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Returns the length of an open file in bytes.
pub(crate) fn length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// Returns the bytes of the file at `path`. What is no file is an error.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    whole(opened(path, Ownership::Given)?)
}

/// Returns the bytes of the file at `path`, or None where there is none.
pub fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if_there(read(path))
}

/// Writes `bytes` to `path`, which holds the old bytes or the new ones at every moment. Makes the folders above it.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_by(path, |file| file.write_all(bytes))
}

/// Like [`write()`], but a link stays, and the file that it leads to gets the bytes: a file that a person keeps.
pub fn write_linked(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = if_there(fs::canonicalize(path))?;
    write(place.as_deref().unwrap_or(path), bytes)
}

/// Like [`write()`], but waits until the bytes are on the disk before it renames: so a loss of power also leaves the old bytes or the new ones.
pub(crate) fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_by(path, |file| file.write_all(bytes).and_then(|()| file.sync_all()))
}

/// How often a write is tried again if its folder is removed meanwhile.
const WRITES: usize = 100;

fn write_by(path: &Path, write: impl Fn(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut written = write_once(path, &write);
    for _ in 1..WRITES {
        match &written {
            // `t2t clean` has moved the folder away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => written = write_once(path, &write),
            _ => break,
        }
    }
    written
}

fn write_once(path: &Path, write: impl Fn(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary_name(path);
    let written = created(&temporary).and_then(|mut file| write(&mut file));
    let moved = written.and_then(|()| fs::rename(&temporary, path));
    if moved.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    moved
}

/// Writes `bytes` to `path` without a rename, in a folder that is there. For a file that nobody reads before it is whole.
pub(crate) fn write_unshared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)
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

/// Makes a file, and the folders above it if they are missing. They seldom are, so trying costs less than looking first.
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

/// Returns how many bytes are free for this user where `path` lies; None if the system does not say.
#[must_use]
pub fn free(path: &Path) -> Option<u64> {
    let found = statvfs(path).ok()?;
    Some(found.blocks_available().saturating_mul(found.fragment_size()))
}

/// Makes the folder at `path` and those above it.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// How often a removal is tried again if files appear in the folder meanwhile.
const REMOVALS: usize = 100;

/// Removes the file or folder at `path`, if it is there. A folder that is being filled is tried again and again, but not for ever.
pub fn remove(path: &Path) -> io::Result<()> {
    let mut removed = remove_once(path);
    for _ in 1..REMOVALS {
        match &removed {
            // Another process may have removed an entry of the folder first.
            Err(error) if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {
                removed = remove_once(path);
            }
            _ => break,
        }
    }
    removed
}

fn remove_once(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes an empty folder; one that is not empty stays.
pub fn remove_if_empty(path: &Path) {
    let _ = fs::remove_dir(path);
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

/// Copies the file at `from`, or all files below that folder, to `to`. Links in the folder are left out; nothing is copied where there is nothing.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if stat(from).is_some() {
        return write(to, &read(from)?);
    }
    let files =
        WalkDir::new(from).sort_by_file_name().into_iter().flatten().filter(|entry| entry.file_type().is_file());
    for file in files {
        let below = file.path().strip_prefix(from).map_err(io::Error::other)?;
        write(&to.join(below), &read(file.path())?)?;
    }
    Ok(())
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
pub(crate) fn unfinished_below(folder: &Path, but: &[&str]) -> Vec<PathBuf> {
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

/// Adds the path to an error: the system's text has none.
#[must_use]
pub fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// Returns whether a file of this name is one that [`write()`] had not finished.
#[must_use]
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && Path::new(name).extension().is_some_and(|ending| ending == "tmp")
}

/// Returns the process that began a file of this name and did not finish it; None where the name is not one of [`write()`]'s.
#[must_use]
pub(crate) fn writer_of(name: &str) -> Option<u32> {
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
