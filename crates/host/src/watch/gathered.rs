//! A batch of changes so far: what came, changed or went, and what is still being written.
//!
//! It does not know when the batch is over: it says how long nothing more may happen.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use notify::event::{CreateKind, Event, EventKind, ModifyKind, RenameMode};

use super::{How, QUIET, Raw};

/// How long, if nothing came or went, and the last event closed a file or renamed it over another.
pub(super) const WHOLE: Duration = Duration::from_millis(2);

/// A batch so far.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) count: u64,
    /// Files that were not there when the batch began.
    pub(super) created: BTreeSet<PathBuf>,
    /// Files that were there, and changed.
    pub(super) changed: BTreeSet<PathBuf>,
    /// Files that were there, and went.
    pub(super) gone: BTreeSet<PathBuf>,
    /// Folders that came.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Files that were written to and are not closed yet.
    open: BTreeSet<PathBuf>,
    /// Whether the last event left a file whole.
    is_whole: bool,
    pub(super) is_partial: bool,
    pub(super) trouble: Option<notify::Error>,
    pub(super) since: Option<Instant>,
}

impl Gathered {
    /// Returns an empty batch that begins now.
    pub(super) fn since(moment: Instant) -> Self {
        Self { since: Some(moment), ..Self::default() }
    }

    pub(super) fn take(&mut self, raw: Raw) {
        self.count += 1;
        match raw {
            Raw::Event(event) => self.take_event(event),
            Raw::Trouble(error) => self.trouble = Some(error),
            Raw::Stop => {}
        }
    }

    fn take_event(&mut self, event: Event) {
        self.is_partial |= event.need_rescan();
        self.is_whole = match event.kind {
            EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => true,
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => self.is_whole,
            _ => false,
        };
        match event.kind {
            // The two halves of the rename were reported already.
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => {}
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => {
                event.paths.into_iter().for_each(|path| self.lose(path));
            }
            EventKind::Create(kind) => event.paths.into_iter().for_each(|path| self.gain(path, kind)),
            // It may have replaced a file of that name.
            EventKind::Modify(ModifyKind::Name(_)) => event.paths.into_iter().for_each(|path| {
                self.changed.insert(path.clone());
                self.gain(path, CreateKind::Any);
            }),
            EventKind::Access(_) => event.paths.into_iter().for_each(|path| {
                self.open.remove(&path);
                self.alter(path);
            }),
            EventKind::Modify(ModifyKind::Data(_)) => event.paths.into_iter().for_each(|path| {
                self.open.insert(path.clone());
                self.alter(path);
            }),
            _ => event.paths.into_iter().for_each(|path| self.alter(path)),
        }
    }

    /// Returns how long nothing more may happen. After a removal another file may be about to take its place, and a new file may be about to go.
    pub(super) fn quiet(&self) -> Duration {
        let of_files_that_were_there = self.created.is_empty() && self.gone.is_empty() && self.folders.is_empty();
        let is_over = self.is_whole && of_files_that_were_there && self.open.is_empty() && !self.is_partial;
        if is_over { WHOLE } else { QUIET }
    }

    /// Whether a file may be half-written. Only inotify reports when one is closed.
    pub(super) fn is_being_written(&self, how: How) -> bool {
        how == How::Told && !self.open.is_empty()
    }

    fn gain(&mut self, path: PathBuf, kind: CreateKind) {
        if kind == CreateKind::Folder || (kind == CreateKind::Any && path.is_dir()) {
            self.folders.insert(path.clone());
        }
        // A link is whole at once; a file is open while it is written.
        if kind == CreateKind::File && path.symlink_metadata().is_ok_and(|facts| facts.is_file() && facts.nlink() == 1)
        {
            self.open.insert(path.clone());
        }
        if self.gone.contains(&path) || self.changed.contains(&path) {
            self.changed.insert(path);
        } else {
            self.created.insert(path);
        }
    }

    fn alter(&mut self, path: PathBuf) {
        if !self.created.contains(&path) && !path.is_dir() {
            self.changed.insert(path);
        }
    }

    /// A file that came and went within this batch is no change. One that was there before is.
    fn lose(&mut self, path: PathBuf) {
        self.changed.remove(&path);
        self.open.remove(&path);
        if !self.created.contains(&path) {
            self.gone.insert(path);
        }
    }
}
