//! Files that are written in parts and appear whole.
#![expect(clippy::disallowed_methods, reason = "a part of the file where files are touched")]

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{created, temporary_name};

/// A file that is written in parts and appears whole: until it is finished it has another name beside its place. Dropping it before removes it.
#[derive(Debug)]
pub struct Draft {
    file: File,
    temporary: PathBuf,
    place: PathBuf,
}

impl Draft {
    /// Starts the file for `place`. Makes the folders above it. Before anything is written, `note` gets the temporary path; its result is returned, too.
    pub fn start<T>(place: &Path, note: impl FnOnce(&Path) -> T) -> io::Result<(Self, T)> {
        let temporary = temporary_name(place);
        let noted = note(&temporary);
        Ok((Self { file: created(&temporary)?, temporary, place: place.to_owned() }, noted))
    }

    /// Starts again: the bytes so far are dropped.
    pub(crate) fn start_again(&mut self) -> io::Result<()> {
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
        // After `finish` there is nothing to remove, and that is no error.
        let _ = fs::remove_file(&self.temporary);
    }
}
