//! The workspace's lock: one build at a time. A process that waits learns for whom.
//!
//! The lock is advisory and ends with the process that holds it, however it ends. A process that releases it strikes its name out. So a name on a free lock
//! belongs to a killed process, and its leftovers are removed before anything else.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::leftovers;
use crate::fs;

/// How many characters a signature has at least.
const WIDTH: usize = 200;

/// What a name starts with while its process holds the lock, and after the release.
const HOLDS: &str = "pid ";
const HELD: &str = "was ";

/// How often, and at what interval, a held lock without a name is looked at again.
const LOOKS: usize = 100;
const LOOK: Duration = Duration::from_millis(10);

/// The interval at which a call that may give up tries a held lock again.
const TRY: Duration = Duration::from_millis(20);

/// Who holds a lock, as its file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    /// The number of the process.
    pub(super) process: u32,
    /// Its command line.
    pub(super) command: String,
    /// When it took the lock, `HH:MM:SS UTC`.
    pub(super) since: String,
}

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock under `cache` for `command`. If another process holds it, `waiting` is called once with its name, and the call waits.
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

    /// Like [`Self::take`], but gives up with None once `stopped` is true. It is called many times a second.
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

/// Returns who holds the lock under `cache`; None where nobody does, or who cannot sign it. It does not try the lock: whoever takes it then would have to wait.
pub(super) fn holder(cache: &Path) -> Option<Holder> {
    let name = name_on(&mut File::open(cache.join("lock")).ok()?);
    let (process, rest) = name.trim_end().strip_prefix(HOLDS)?.split_once(", `")?;
    let (command, since) = rest.rsplit_once("`, since ")?;
    // The name of a process that was killed stays.
    let process = process.parse().ok().filter(|process| fs::is_another_process(*process))?;
    Some(Holder { process, command: command.to_owned(), since: since.to_owned() })
}

fn wait() {
    thread::sleep(TRY);
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A failure is no error: if the name stays, the next holder looks for leftovers in vain.
        let _ = self.file.rewind().and_then(|()| self.file.write_all(HELD.as_bytes()));
    }
}

/// Opens the file, and says whether it can be written. A read-only file, such as a restored one of another user, can be locked as well, and keeps the name of
/// an earlier holder.
fn open(cache: &Path) -> io::Result<(File, bool)> {
    if !cache.is_dir() {
        fs::make_folder(cache)?;
        // Nobody commits it by accident. A folder that somebody made is left as it is.
        let _ = fs::write(&cache.join(".gitignore"), b"*\n");
    }
    let path = cache.join("lock");
    match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            File::open(path).map(|file| (file, false)).map_err(|_| error)
        }
        opened => opened.map(|file| (file, true)),
    }
}

/// Returns the name on the lock, empty if it was released and nobody has signed since.
fn name_on(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
    if text.starts_with(HELD) { String::new() } else { text }
}

/// Takes the lock, or returns its holder. The name may be missing for a moment: a holder signs right after it took the lock.
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
    // One write, padded to a fixed length in most cases: truncating the file would cost more than everything else here.
    // The padding also overwrites a longer name of an earlier holder.
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
