//! The word that nothing disturbs what measures: whether an action is to get it, and how.
//!
//! It does not know what would disturb.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use t2t_protocol::{QUIET, Request};

/// How long an action runs at least before it is told that nothing disturbs it: what was asked for with it has come by then.
const SETTLES: Duration = Duration::from_millis(10);

/// Whether others must leave a device alone for an action.
#[derive(Debug)]
pub(crate) enum Quiet {
    /// They need not.
    Unasked,
    /// It is to be told by this file once they do.
    Awaited(PathBuf),
    /// It was told that they do.
    Told,
}

impl Quiet {
    /// Returns what `request` asks for.
    pub(crate) fn of(request: &Request) -> Self {
        if request.undisturbed { Self::Awaited(Path::new(&request.scratch).join(QUIET)) } else { Self::Unasked }
    }

    /// Says whether the word is to be given to an action that has run for so long.
    pub(crate) fn is_due(&self, age: Duration) -> bool {
        matches!(self, Self::Awaited(_)) && age >= SETTLES
    }

    /// Gives the word, and how many children have started the device beside the action.
    pub(crate) fn tell(&mut self, beside: usize) {
        if let Self::Awaited(file) = std::mem::replace(self, Self::Told) {
            // Without it the action waits in vain, and measures then.
            put(&file, &beside.to_string()).ok();
        }
    }
}

/// Puts a file into a folder that kernel code may write to, whole at once: it is read as soon as it is there. A link that waits there for it leads nowhere.
fn put(file: &Path, text: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    if fs::symlink_metadata(&new).is_ok() {
        fs::remove_file(&new)?;
    }
    File::options().write(true).create_new(true).open(&new)?.write_all(text.as_bytes())?;
    fs::rename(new, file)
}
