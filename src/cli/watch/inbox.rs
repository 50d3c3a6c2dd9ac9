//! The inbox: events from outside of the build, and what to do next about them.
//!
//! It does not know how anything is built.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use t2t_host::watch::Batch;
use t2t_model::path::RepoPath;

use crate::engine::Touched;
use crate::reporter::View;

/// What happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// A batch of changes.
    Batch(Batch),
    /// A key.
    Key(char),
    /// Somebody is to look: a signal came, or changes came to nothing.
    Look,
}

/// What runs although a result of it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// What ran last.
    Last,
    /// What failed.
    Failed,
}

/// What is to be done next.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// Whether there is anything to do.
    pub(crate) is_any: bool,
    /// What changed.
    pub(crate) batch: Batch,
    /// What the user asked for.
    pub(crate) again: Option<Again>,
}

impl Due {
    /// Returns a first look.
    pub(crate) fn at_first() -> Self {
        Self { is_any: true, ..Self::default() }
    }

    /// Returns the changed files of the workspace at `root`.
    pub(crate) fn files(&self, root: &Path) -> BTreeSet<RepoPath> {
        self.batch.paths.iter().filter_map(|path| RepoPath::below(root, path).ok()).collect()
    }

    /// Returns what was touched meanwhile in the workspace at `root`.
    pub(crate) fn touched(&self, root: &Path) -> Touched {
        if self.batch.is_partial { Touched::Anything } else { Touched::Files(self.files(root)) }
    }
}

/// Pending events, and what they require.
pub(crate) struct Inbox {
    inputs: Receiver<Input>,
    /// What is due.
    pub(crate) due: Due,
    /// What changed that nothing was made of.
    passed: BTreeSet<RepoPath>,
    /// Whether the user asked to leave.
    pub(crate) is_quit: bool,
}

/// Whether a change at a path, of a folder or a file, matters to the workspace that is built.
pub(crate) type IsRelevant<'a> = dyn Fn(&Path) -> bool + 'a;

impl Inbox {
    /// Returns the inbox of `inputs`.
    pub(crate) fn new(inputs: Receiver<Input>, due: Due) -> Self {
        Self { inputs, due, passed: BTreeSet::new(), is_quit: false }
    }

    /// Takes all that has come. Of changes those count that `minds` says count.
    pub(crate) fn take(&mut self, view: &mut dyn View, root: &Path, is_relevant: &IsRelevant<'_>) {
        while let Ok(input) = self.inputs.try_recv() {
            self.take_one(input, view, root, is_relevant);
        }
    }

    /// Waits until something comes, or for a time.
    pub(crate) fn wait(&mut self, patience: Duration, view: &mut dyn View, root: &Path, is_relevant: &IsRelevant<'_>) {
        match self.inputs.recv_timeout(patience) {
            Ok(input) => self.take_one(input, view, root, is_relevant),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_quit = true,
        }
        self.take(view, root, is_relevant);
    }

    /// Returns the ignored files since the last call.
    pub(crate) fn take_passed(&mut self) -> Option<Touched> {
        (!self.passed.is_empty()).then(|| Touched::Files(std::mem::take(&mut self.passed)))
    }

    fn take_one(&mut self, input: Input, view: &mut dyn View, root: &Path, is_relevant: &IsRelevant<'_>) {
        match input {
            Input::Batch(mut batch) => {
                let (minded, passed) = std::mem::take(&mut batch.paths).into_iter().partition(|path| is_relevant(path));
                batch.paths = minded;
                self.pass(root, &passed);
                if batch.is_empty() {
                    return;
                }
                let due = &mut self.due;
                due.is_any = true;
                due.batch.since = due.batch.since.or(batch.since);
                due.batch.paths.extend(batch.paths);
                due.batch.is_partial |= batch.is_partial;
                due.batch.trouble = batch.trouble.or(due.batch.trouble.take());
            }
            Input::Key('q' | 'Q') => self.is_quit = true,
            Input::Key('e' | 'E') => view.explain(),
            Input::Key('r' | 'R') => self.ask(Again::Last),
            Input::Key('f' | 'F') => self.ask(Again::Failed),
            Input::Key(_) | Input::Look => {}
        }
    }

    fn pass(&mut self, root: &Path, paths: &BTreeSet<PathBuf>) {
        self.passed.extend(paths.iter().filter_map(|path| RepoPath::below(root, path).ok()));
    }

    fn ask(&mut self, again: Again) {
        self.due.is_any = true;
        self.due.again = Some(again);
    }
}
