//! A job: everything that performing one action in children needs, as a value.
//!
//! It does not know how an action is performed.

use std::path::PathBuf;
use std::time::Duration;

use t2t_model::action::Target;
use t2t_protocol::{Arguments, ServerKind};

use super::asking::Asking;
use super::inputs::Inputs;

/// Everything that performing one action needs.
#[derive(Debug, Clone)]
pub struct Job {
    /// Which action.
    pub(crate) target: Target,
    /// The server that its children are forked from.
    pub(crate) kind: ServerKind,
    /// What every request of it holds.
    pub(crate) arguments: Arguments,
    /// Files and folders that its children may read, beside what every child may.
    pub(crate) read: Vec<PathBuf>,
    /// What kernel code may read of the workspace beside its kernels.
    pub(crate) readable: Vec<PathBuf>,
    /// Folders of the workspace that are imported from, beside those that are anyway.
    pub(crate) sources: Vec<String>,
    /// The workspace.
    pub(crate) root: PathBuf,
    /// An empty folder of its own.
    pub(crate) scratch: PathBuf,
    /// How long it may take.
    pub(crate) deadline: Duration,
    /// How many threads a child's arithmetic may use.
    pub(crate) threads: usize,
    /// The device that its children see.
    pub(crate) device: Option<String>,
    /// The cores that its children run on. None where they run on whichever they get.
    pub(crate) cores: Option<Vec<usize>>,
    /// The cores that children get ready on meanwhile, likewise.
    pub(crate) spare: Option<Vec<usize>>,
    /// How much they give way to others.
    pub(crate) nice: Option<i32>,
    /// How many processes a child may use to compile.
    pub(crate) processes: usize,
    /// How many children may be ready for its device: those that actions to come will take, or fewer.
    pub(crate) ready: usize,
    /// The inputs of the op's own cases, where the check of another variant prepared them.
    pub(crate) inputs: Option<Inputs>,
    /// Whether it is of a variant whose Python file has torch build CUDA C++.
    pub(crate) is_extension: bool,
    /// Whether there is a slot for a judge beside the candidate.
    pub(crate) has_room: bool,
    /// What an author is asked, where one is.
    pub(crate) asking: Option<Asking>,
}

impl Job {
    /// Returns whether it is of a variant in CUDA C++.
    pub(crate) fn is_cuda(&self) -> bool {
        self.arguments.variant.as_ref().is_some_and(|variant| variant.cuda.is_some())
    }
}
