//! The file that tells a measurement that nothing disturbs it: which actions get it, and when.
//!
//! It does not know what disturbs a measurement.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use t2t_protocol::{QUIET, Request};

/// How long an action runs at least before it gets the file: by then the warm children that were asked for with it have begun.
const SETTLES: Duration = Duration::from_millis(10);

/// Whether an action needs a quiet device.
#[derive(Debug)]
pub(crate) enum Quiet {
    /// It does not.
    Unasked,
    /// It does, and waits for this file.
    Awaited(PathBuf),
    /// It has the file.
    Told,
}

impl Quiet {
    /// Reads the need from `request`.
    pub(crate) fn of(request: &Request) -> Self {
        if request.undisturbed { Self::Awaited(Path::new(&request.scratch).join(QUIET)) } else { Self::Unasked }
    }

    /// Says whether an action that has run for so long may get the file.
    pub(crate) fn is_due(&self, age: Duration) -> bool {
        matches!(self, Self::Awaited(_)) && age >= SETTLES
    }

    /// Writes the file. It holds how many other children have started the device.
    pub(crate) fn tell(&mut self, beside: usize) {
        if let Self::Awaited(file) = std::mem::replace(self, Self::Told) {
            // A failure is no error: the action waits in vain, and then measures.
            put(&file, &beside.to_string()).ok();
        }
    }
}

/// Writes a file into a folder that kernel code may write to. It is renamed into place, because it is read as soon as it is there; so a link that kernel code
/// put there is replaced and not followed.
fn put(file: &Path, text: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    if fs::symlink_metadata(&new).is_ok() {
        fs::remove_file(&new)?;
    }
    File::options().write(true).create_new(true).open(&new)?.write_all(text.as_bytes())?;
    fs::rename(new, file)
}
