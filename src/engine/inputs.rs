//! Inputs of the op's own cases: one check of a build prepares them, and those of the op's other variants use them.
//!
//! It does not know how they are made, nor who reads them. Checks that run at once prepare them each for itself: none waits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use t2t_store::fs;

/// The folder beside those of actions in which they lie. It goes with them, once nothing is in flight.
const FOLDER: &str = "prepared";

/// What was prepared for one op.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Where it lies.
    pub(crate) folder: PathBuf,
    /// Workspace files that were opened or looked for to make it.
    pub(crate) opened: Vec<String>,
}

/// Those that are shared in one build, by op.
#[derive(Debug, Default)]
pub(crate) struct PreparedInputs(BTreeMap<String, Inputs>);

impl PreparedInputs {
    /// Returns what was prepared for an op, if something was.
    pub(crate) fn of(&self, op: &str) -> Option<Inputs> {
        self.0.get(op).cloned()
    }

    /// Moves the inputs that a check has prepared for an op out of its folder `scratch`, which is about to be removed. If that fails, the next check prepares
    /// them again.
    pub(crate) fn keep(&mut self, op: &str, scratch: &Path, inputs: &Inputs) {
        let place = scratch.file_name().map(|name| scratch.with_file_name(FOLDER).join(name));
        let Some(folder) = place.filter(|_| !self.0.contains_key(op)) else { return };
        if fs::rename(&inputs.folder, &folder).is_ok() {
            self.0.insert(op.to_owned(), Inputs { folder, ..inputs.clone() });
        }
    }
}
