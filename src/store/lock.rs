//! The workspace's lock: one build at a time; whoever waits is told for whom.
//!
//! The lock is advisory and ends with the process that holds it, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use crate::fs;

/// How many characters a signature has at least.
const WIDTH: usize = 200;

/// How often a lock is tried that somebody else holds.
const LOOK: Duration = Duration::from_millis(20);

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock under `cache` for `command`. Where another process holds it, `waiting` is told who, once, and the call waits.
    pub fn take(cache: &Path, command: &str, waiting: impl FnOnce(&str)) -> io::Result<Self> {
        let mut file = open(cache)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting(&holder(&mut file));
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        sign(&mut file, command)?;
        Ok(Self { _file: file })
    }

    /// Takes the lock as [`Self::take`] does, unless `stopped` says that nobody wants it any more: then None. It is asked many times a second.
    pub fn take_unless(
        cache: &Path,
        command: &str,
        waiting: impl FnOnce(&str),
        mut stopped: impl FnMut() -> bool,
    ) -> io::Result<Option<Self>> {
        let mut file = open(cache)?;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if stopped() => return Ok(None),
                Err(TryLockError::WouldBlock) => {
                    if let Some(waiting) = waiting.take() {
                        waiting(&holder(&mut file));
                    }
                    wait();
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        sign(&mut file, command)?;
        Ok(Some(Self { _file: file }))
    }
}

#[expect(clippy::disallowed_methods, reason = "the lock is the open file")]
fn open(cache: &Path) -> io::Result<File> {
    fs::make_folder(cache)?;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(cache.join("lock"))
}

#[expect(clippy::disallowed_methods, reason = "the system tells nobody when a lock is free, but who sleeps for it")]
fn wait() {
    std::thread::sleep(LOOK);
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
    if text.is_empty() { "another t2t".to_owned() } else { text.trim_end().to_owned() }
}

#[expect(clippy::disallowed_methods, reason = "who waits is told which process holds the lock")]
fn sign(file: &mut File, command: &str) -> io::Result<()> {
    let since = time_of_day(fs::now());
    let text = format!("pid {}, `{command}`, since {since}", std::process::id());
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
