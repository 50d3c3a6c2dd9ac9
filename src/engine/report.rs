//! What became of a build, or why it could not go on.

use std::collections::BTreeSet;
use std::io;

use t2t_model::digest::Digest;
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_report::render::RenderError;

use super::control::Ended;

/// What became of a build.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// By number: what became of each wanted action that settled.
    pub(crate) settled: Vec<Option<Settled>>,
    /// The numbers of the actions of attempts in whose place later ones were made: how they ended is no word on their variants.
    pub(crate) replaced: BTreeSet<usize>,
    /// The actions that were not to run and whose results do not stand, with the reasons; what depends on them is among them.
    pub(crate) missing: Vec<(Index, Vec<String>)>,
    /// A file that changed while an action ran that reads it, which has no result then: of a build that is not controlled.
    pub(crate) changed: Option<String>,
    /// How often nodes lost an action that then ran again.
    pub(crate) again: usize,
    /// Whether the user stopped it.
    pub(crate) interrupted: bool,
    /// Whether it stopped after a rejection.
    pub(crate) stopped: bool,
    /// How many lines of the journal were damaged, and ignored.
    pub(crate) damaged: usize,
    /// How it came to its end.
    pub(crate) ended: Ended,
    /// What is wrong with templates: of a build that is controlled, which goes on without the logs that they make.
    pub(crate) faults: Vec<EngineError>,
}

impl Report {
    /// Returns whether the action of this number is of an attempt in whose place a later one was made.
    pub(crate) fn is_replaced(&self, number: usize) -> bool {
        self.replaced.contains(&number)
    }
}

/// Why a build cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// The store cannot be read or written.
    #[error("cannot use the store `cache/`: {0}")]
    Store(#[from] io::Error),
    /// A log cannot be read or written.
    #[error("cannot write `{path}`: {source}")]
    Log {
        /// Its place in the workspace.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A template is wrong.
    #[error(transparent)]
    Template(#[from] RenderError),
    /// A template cannot be read.
    #[error("{path}: {message}")]
    NoTemplate {
        /// Its place in the workspace.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// A file is not what it was when the build began.
    #[error("`{0}` changed while the build ran")]
    Changed(String),
    /// Artifacts keep vanishing from the store.
    #[error("artifacts keep vanishing from the store; the last one: {0}")]
    Vanishing(Digest),
}

impl EngineError {
    /// Returns whether a template is at fault: whoever edits it mends it.
    pub(super) fn is_of_template(&self) -> bool {
        matches!(self, Self::Template(_) | Self::NoTemplate { .. })
    }
}
