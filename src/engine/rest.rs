//! The summary of a workspace of which a build has a part: what it takes of the rest is known, so that nothing of the rest is opened.
//!
//! Its manifest is the earlier one with what the part made in its place, and so its key is the one that a build of the whole finds. It does not know how the rest came to stand.

use std::sync::Arc;
use std::time::Instant;

use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::manifest::{self, Manifest};
use t2t_model::record::Outcome;
use t2t_plan::decide::{Decision, Why, decide};
use t2t_plan::explain;
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;

use super::control::Ended;
use super::{Pending, Run, Stop};

impl Run<'_, '_> {
    /// Settles the summary of the whole workspace at the end of a build of a part. It is left unsettled where it takes a look at the whole: something of the part has not
    /// settled for good, a fact of every op is another one, or the earlier manifest is gone.
    pub(super) fn settle_summary_of_all(&mut self, ended: Ended) -> Result<Ended, Stop> {
        let Some(rest) = self.session.rest() else { return Ok(ended) };
        let Some(index) = self.session.graph.find(&Target::summary()) else { return Ok(ended) };
        let is_left = ended != Ended::Settled || self.interrupt.is_set() || self.stopped;
        if is_left || self.settings.remote.is_some() || !self.has_settled_for_good(index) {
            return Ok(ended);
        }
        let Ok(mut encoded) = self.cas.get(rest.manifest) else { return Ok(ended) };
        let facts = self.schedule.upstream(index);
        let Some(replaced) = manifest::replace(&mut encoded, &facts) else { return Ok(ended) };
        let key = Digest::of(&encoded);
        if !self.history.has_all_of(key) {
            self.history.recall(key, self.session.recall(key)?);
        }
        let (action, sources) = (self.session.graph.action(index), &self.session.sources);
        let why = match decide(action, key, self.history, &|path, like| sources.seen(path, like)) {
            Decision::Fresh(record) => Err(Settled::Fresh(Arc::clone(record))),
            Decision::Restore(record) => Err(Settled::Restored(Arc::clone(record))),
            Decision::Stale(why) => Ok(why),
        };
        match why {
            Err(settled) => {
                self.schedule.finish(index, settled);
                self.tell_settled(index)?;
            }
            Ok(why) => {
                let (old, new) = match &why {
                    // What is not of the part is the same in both, and no reason.
                    Why::Changed { old, .. } if *old == rest.manifest => {
                        let old = facts.keys().cloned().zip(replaced).collect();
                        (Some(Manifest { facts: old }), Manifest { facts })
                    }
                    Why::Changed { old, .. } => (self.manifest(*old), Manifest::decode(&encoded).unwrap_or_default()),
                    _ => (None, Manifest { facts }),
                };
                let why = explain::reasons(&why, old.as_ref(), &new).iter().map(ToString::to_string).collect();
                self.make_summary_of_all(index, &encoded, why)?;
            }
        }
        Ok(ended)
    }

    fn make_summary_of_all(&mut self, index: Index, manifest: &[u8], why: Vec<String>) -> Result<(), Stop> {
        let since = Instant::now();
        let mut performed = match self.summary() {
            // The build of the whole says what is wrong with the template.
            Err(Stop::Error(fault)) if fault.is_of_template() => return Ok(()),
            made => made?,
        };
        performed.wall = since.elapsed();
        let lane = "cpu".to_owned();
        self.pending.insert(index, Pending { manifest: Manifest::default(), why, lane: lane.clone(), since });
        self.tell_started(index);
        self.pending.remove(&index);
        let action = self.session.graph.action(index);
        let record = self.commit_encoded(action, manifest, &Outcome::Passed, &performed)?;
        self.tell_committed(action, lane, &record, &performed)?;
        self.schedule.finish(index, Settled::Ran(Arc::new(record)));
        Ok(())
    }

    /// Returns whether the part settled so that a build of the whole would find it so, and what all ops stand on is as it was.
    fn has_settled_for_good(&self, summary: Index) -> bool {
        self.session.graph.indices().filter(|index| *index != summary).all(|index| {
            let settled = self.schedule.settled(index);
            match self.session.graph.action(index).target().phase {
                Phase::Calibrate => matches!(settled, Some(Settled::Fresh(_))),
                _ => settled.is_some_and(|settled| {
                    settled.record().is_some() || matches!(settled, Settled::Skipped(_) | Settled::NotNeeded)
                }),
            }
        })
    }
}
