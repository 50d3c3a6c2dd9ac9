//! Artifacts that are gone or damaged: the results that lost one, and what is said of it.
//!
//! It does not know how the build starts over.

use std::collections::BTreeSet;

use t2t_model::digest::Digest;
use t2t_model::publication::is_published;
use t2t_model::record::Record;
use t2t_plan::schedule::Settled;

use super::Run;

/// Returns in words that `blob` is gone or damaged, and so many artifacts of other results.
pub(super) fn lost_text(blob: &str, others: usize) -> String {
    match others {
        0 => format!("{blob}; the action that made it runs again"),
        1 => {
            format!("{blob}; the action that made it runs again, and 1 other with an artifact that is gone or damaged")
        }
        more => format!(
            "{blob}; the action that made it runs again, and {more} others with an artifact that is gone or damaged"
        ),
    }
}

impl Run<'_, '_> {
    /// Returns the keys of the results this build stands on of which an artifact is gone or damaged. It reads them all: where one is, others may be, and to start
    /// over for each would take as many builds.
    pub(super) fn not_whole(&self) -> BTreeSet<Digest> {
        let standing = |index| {
            let settled = self.schedule.settled(index).and_then(Settled::record);
            settled.or_else(|| self.history.last(&self.session.graph.action(index).identity).map(AsRef::as_ref))
        };
        let is_whole = |record: &Record| {
            let mut needed = record.outputs.iter().filter(|(name, _)| is_published(name));
            needed.all(|(_, blob)| self.cas.get(blob.digest).is_ok())
        };
        let records = self.session.graph.indices().filter_map(standing);
        let damaged = records.filter(|record| !is_whole(record)).map(|record| record.key);
        damaged.chain(self.without_kernels()).collect()
    }

    /// Returns the keys of the results whose compiled kernels are gone, and that actions take with them to nodes.
    fn without_kernels(&self) -> BTreeSet<Digest> {
        let graph = &self.session.graph;
        let goes = graph.indices().filter(|index| {
            self.goes_away(*index) && self.wanted[index.number()] && self.schedule.settled(*index).is_none()
        });
        let taken = goes.flat_map(|index| graph.dependencies(index)).filter_map(|(source, _)| {
            let record = self.schedule.settled(source).and_then(Settled::record)?;
            let mut kernels = record.outputs.iter().filter(|(name, _)| !is_published(name));
            kernels.any(|(_, blob)| self.cas.get(blob.digest).is_err()).then_some(record.key)
        });
        taken.collect()
    }
}
