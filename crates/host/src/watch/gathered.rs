//! What came so far of a batch of changes: what came, what is different, what went, and what is still being written.
//!
//! It does not know when the batch is over: it says how long nothing more may happen.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use notify::event::{CreateKind, Event, EventKind, ModifyKind, RenameMode};

use super::{How, QUIET, Raw};

/// How long, where nothing came or went, and the last that happened was that a file was closed or put over another.
pub(super) const WHOLE: Duration = Duration::from_millis(5);

/// What came so far of a batch.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) count: u64,
    /// What was not there when the batch began.
    pub(super) created: BTreeSet<PathBuf>,
    /// What was there, and is different.
    pub(super) changed: BTreeSet<PathBuf>,
    /// What was there, and went.
    pub(super) gone: BTreeSet<PathBuf>,
    /// Folders that came.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Files that somebody has written to and not closed.
    open: BTreeSet<PathBuf>,
    /// Whether what happened last left a file whole.
    is_whole: bool,
    pub(super) is_partial: bool,
    pub(super) trouble: Option<notify::Error>,
    pub(super) since: Option<Instant>,
}

impl Gathered {
    /// Returns what came by the moment when the first of it did: nothing.
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
            // Told as from and to already.
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => {}
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => {
                event.paths.into_iter().for_each(|path| self.lose(path));
            }
            EventKind::Create(kind) => event.paths.into_iter().for_each(|path| self.gain(path, kind)),
            // It may have been put over another of that name.
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

    /// Returns how long nothing more may happen. Whoever takes a file away may be about to put another in its place, and a file that came may be about to go.
    pub(super) fn quiet(&self) -> Duration {
        let of_files_that_were_there = self.created.is_empty() && self.gone.is_empty() && self.folders.is_empty();
        let is_over = self.is_whole && of_files_that_were_there && self.open.is_empty() && !self.is_partial;
        if is_over { WHOLE } else { QUIET }
    }

    /// Whether a file may be half-written. Only the system tells when one is closed.
    pub(super) fn is_being_written(&self, how: How) -> bool {
        how == How::Told && !self.open.is_empty()
    }

    fn gain(&mut self, path: PathBuf, kind: CreateKind) {
        if kind == CreateKind::Folder || (kind == CreateKind::Any && path.is_dir()) {
            self.folders.insert(path.clone());
        }
        // A link is there at once; a file is opened by whoever makes it.
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

    /// What was created in this batch and went is no change, what else went is one.
    fn lose(&mut self, path: PathBuf) {
        self.changed.remove(&path);
        self.open.remove(&path);
        if !self.created.contains(&path) {
            self.gone.insert(path);
        }
    }
}
