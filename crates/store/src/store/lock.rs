//! The workspace's lock: one build at a time; whoever waits is told for whom.
//!
//! The lock is advisory and ends with the process that holds it, however it ends. Who lets go of it strikes its name out: a name that is found on a free lock is
//! that of a process which was killed, and what it left is removed before anything else is done.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::leftovers;
use crate::fs;

/// How many characters a signature has at least.
const WIDTH: usize = 200;

/// What a name starts with while it counts, and when its process let go of the lock.
const HOLDS: &str = "pid ";
const HELD: &str = "was ";

/// How often, and how long apart, a lock is looked at that somebody holds and has not signed.
const LOOKS: usize = 100;
const LOOK: Duration = Duration::from_millis(10);

/// How often a lock is tried that somebody else holds, by who may give up.
const TRY: Duration = Duration::from_millis(20);

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock under `cache` for `command`. Where another process holds it, `waiting` is told who, once, and the call waits.
    pub fn take(cache: &Path, command: &str, waiting: impl FnOnce(&str)) -> io::Result<Self> {
        let (mut file, can_be_signed) = open(cache)?;
        if let Some(holder) = taken_or_held(&mut file)? {
            waiting(&holder);
            file.lock()?;
        }
        if !name_on(&mut file).is_empty() {
            leftovers::sweep(cache);
        }
        if can_be_signed {
            sign(&mut file, command)?;
        }
        Ok(Self { file })
    }

    /// Takes the lock as [`Self::take`] does, unless `stopped` says that nobody wants it any more: then None. It is asked many times a second.
    pub fn take_unless(
        cache: &Path,
        command: &str,
        waiting: impl FnOnce(&str),
        mut stopped: impl FnMut() -> bool,
    ) -> io::Result<Option<Self>> {
        let (mut file, can_be_signed) = open(cache)?;
        if let Some(holder) = taken_or_held(&mut file)? {
            waiting(&holder);
            loop {
                match file.try_lock() {
                    Ok(()) => break,
                    Err(TryLockError::WouldBlock) if stopped() => return Ok(None),
                    Err(TryLockError::WouldBlock) => wait(),
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
        }
        if !name_on(&mut file).is_empty() {
            leftovers::sweep(cache);
        }
        if can_be_signed {
            sign(&mut file, command)?;
        }
        Ok(Some(Self { file }))
    }
}

fn wait() {
    thread::sleep(TRY);
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A name that stays costs the next holder a look for what is not there.
        let _ = self.file.rewind().and_then(|()| self.file.write_all(HELD.as_bytes()));
    }
}

/// Opens the file, and says whether it can be signed. One that may only be read, as a restored one of another user, locks as well, and keeps the name of an earlier
/// holder.
fn open(cache: &Path) -> io::Result<(File, bool)> {
    fs::make_folder(cache)?;
    let path = cache.join("lock");
    match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            File::open(path).map(|file| (file, false)).map_err(|_| error)
        }
        opened => opened.map(|file| (file, true)),
    }
}

/// Returns the name on the lock, empty where nobody has signed since it was let go.
fn name_on(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
    if text.starts_with(HELD) { String::new() } else { text }
}

/// Takes the lock, or returns who holds it. Who has just taken it has not signed yet.
fn taken_or_held(file: &mut File) -> io::Result<Option<String>> {
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(None),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let text = name_on(file);
        if !text.is_empty() {
            return Ok(Some(text.trim_end().to_owned()));
        }
        thread::sleep(LOOK);
    }
    Ok(Some("another t2t".to_owned()))
}

fn sign(file: &mut File, command: &str) -> io::Result<()> {
    let since = time_of_day(fs::now());
    let text = format!("{HOLDS}{}, `{command}`, since {since}", std::process::id());
    // Written at once, and to one length most often: a file that is cut costs more than all else here.
    let padded = format!("{text:WIDTH$}\n");
    file.rewind()?;
    file.write_all(padded.as_bytes())?;
    let length = padded.len() as u64;
    if file.metadata()?.len() == length { Ok(()) } else { file.set_len(length) }
}

/// Returns a moment as `HH:MM:SS UTC`.
fn time_of_day(nanoseconds: i64) -> String {
    let seconds = nanoseconds / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
