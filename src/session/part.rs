//! A part of a workspace: some of its ops, and what of the rest counts for it.
//!
//! It does not know why the rest need not be looked at.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use t2t_model::digest::Digest;
use t2t_report::render::build_page::OpSummary;
use t2t_store::store::journal::LinePlace;
use t2t_store::store::key_index::KeyIndex;

/// A part of a workspace: some of its ops, and where what is known of them stands.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Every op of the workspace, with the line of its key in ops.yaml.
    pub(crate) lines: Vec<(String, u32)>,
    /// Those that the part has.
    pub(crate) ops: BTreeSet<String>,
    /// The last record of each of their actions, and of those of no op.
    pub(crate) records: Vec<LinePlace>,
    /// Where all records stand, by key.
    pub(crate) keys: KeyIndex<'static>,
    /// What the summary of the whole takes of the rest. None where the part is built without it.
    pub(crate) rest: Option<Rest>,
}

/// What the summary of a workspace takes of the ops that a part of it does not have.
#[derive(Debug, Clone)]
pub(crate) struct Rest {
    /// Of every op of the workspace, in order, what is told of it; None for those of the part.
    pub(crate) ops: Arc<Vec<Option<Box<OpSummary>>>>,
    /// How long the actions ran that the part does not have, in all.
    pub(crate) wall: Duration,
    /// How long those held a device.
    pub(crate) device: Duration,
    /// The manifest of the summary that stood before.
    pub(crate) manifest: Digest,
}

impl Part {
    /// Returns what of ops.yaml speaks of the part.
    pub(super) fn of(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let lines: Vec<(&str, u32)> = self.lines.iter().map(|(op, line)| (op.as_str(), *line)).collect();
        let text = std::str::from_utf8(bytes).ok()?;
        t2t_spec::part::part(text, &lines, &|op| self.ops.contains(op)).map(String::into_bytes)
    }
}
