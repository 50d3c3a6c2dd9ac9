//! Reuse: what becomes of actions that are in flight when a build begins, because an earlier one was left.
//!
//! Those whose key is still the one to have go on, and their results are kept. The others are cancelled, and exactly those. It does not know what changed:
//! it compares manifests.

use t2t_model::event::Event;
use t2t_model::manifest::Manifest;
use t2t_model::path::RepoPath;
use t2t_model::record::Outcome;
use t2t_plan::dispatcher::{Event as Told, Ticket, measures};
use t2t_plan::explain;
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_store::fs;

use super::in_flight::{self, Running, Touched};
use super::{Pending, Run, Stop};
use crate::engine::perform::Performed;

/// Facts that other actions make: they are known when those have settled.
const UPSTREAM: &str = "from.";

/// Facts of files of the workspace, and that of a file that cannot be used.
const SOURCE: &str = "source.";
const FAULT: &str = "fault";

impl Run<'_, '_> {
    /// Cancels what is in flight and cannot be wanted: what is not in the graph, or not asked for, or has other facts of its own.
    pub(super) fn withdraw(&mut self) {
        let running: Vec<(Ticket, Option<String>)> =
            self.in_flight.live().map(|(ticket, running)| (ticket, self.objection(running))).collect();
        for (ticket, objection) in running {
            self.in_flight.place(ticket, None);
            match objection {
                Some(reason) => self.cancel(ticket, reason),
                None => self.bind(ticket),
            }
        }
    }

    fn objection(&self, running: &Running) -> Option<String> {
        let identity = &running.action.identity;
        let found = self.session.graph.find(&identity.target);
        let same = found.filter(|index| self.session.graph.action(*index).identity == *identity);
        let Some(index) = same.filter(|index| self.wanted[index.number()]) else {
            return Some("it is not part of the build any more".to_owned());
        };
        let action = self.session.graph.action(index);
        let mut facts = action.facts.clone();
        if action.generated.is_some() {
            // What is known by a kernel file that is made first is compared when that is read.
            let made = running.manifest.facts.iter().filter(|(name, _)| name.starts_with(SOURCE) || *name == FAULT);
            facts.extend(made.map(|(name, fact)| (name.clone(), fact.clone())));
        }
        let upstream = running.manifest.facts.iter().filter(|(name, _)| name.starts_with(UPSTREAM));
        facts.extend(upstream.map(|(name, fact)| (name.clone(), fact.clone())));
        differs(&running.manifest, &Manifest { facts })
    }

    /// An op whose measurement is in flight is measured on that device.
    fn bind(&mut self, ticket: Ticket) {
        let Some(running) = self.in_flight.get(ticket) else { return };
        let target = running.action.target();
        let device = self.in_flight.lane(running);
        let index = self.session.graph.find(target).filter(|_| measures(target.phase));
        if let Some((index, device)) = index.zip(device) {
            self.in_flight.dispatcher().handle(Told::Measured(index, device));
        }
    }

    /// Takes over the run of the action at `index` that is in flight, if its key is that of `manifest`. One with another key is cancelled.
    pub(super) fn reuse(&mut self, index: Index, manifest: &Manifest) -> bool {
        let Some(ticket) = self.in_flight.find(&self.session.graph.action(index).identity) else { return false };
        let running = self.in_flight.get(ticket).expect("it was found");
        if let Some(reason) = differs(&running.manifest, manifest) {
            self.cancel(ticket, reason);
            return false;
        }
        let Running { why, lane, since, .. } = running;
        let pending = Pending { manifest: manifest.clone(), why: why.clone(), lane: lane.clone(), since: *since };
        self.pending.insert(index, pending);
        self.in_flight.place(ticket, Some(index));
        self.in_flight.dispatcher().handle(Told::Reused(index));
        true
    }

    /// Cancels the run of the action at `index` that is in flight, if there is one: it settled without.
    pub(super) fn cancel_orphan(&mut self, index: Index) {
        if let Some(ticket) = self.in_flight.find(&self.session.graph.action(index).identity) {
            self.cancel(ticket, "its result is known, or not wanted any more".to_owned());
        }
    }

    fn cancel(&mut self, ticket: Ticket, reason: String) {
        self.in_flight.cancel(ticket);
        if let Some(running) = self.in_flight.get(ticket) {
            let target = running.action.target().clone();
            (self.emit)(Event::ActionCancelled { target, lane: running.lane.clone(), reason });
        }
    }

    /// Takes what came of an action that ran in children, and removes what they left.
    pub(super) fn land(&mut self, ticket: Ticket, performed: &Performed) -> Result<(), Stop> {
        let landed = self.take(ticket, performed);
        // What cannot be removed now is tried again when nothing is in flight.
        let _ = fs::remove(&in_flight::folder(&self.scratch, ticket));
        landed
    }

    fn take(&mut self, ticket: Ticket, performed: &Performed) -> Result<(), Stop> {
        let Some(running) = self.in_flight.land(ticket) else { return Ok(()) };
        if running.cancel.is_set() {
            // That was told when it was cancelled.
            return Ok(());
        }
        if let Some(away) = &performed.away {
            return self.take_away(&running, performed, away);
        }
        if let Some(index) = running.index {
            self.count_use(index, performed);
        }
        self.count_tokens(performed);
        match (self.changed_meanwhile(&running, performed), running.index) {
            (Some(path), index) => {
                let (target, lane) = (running.action.target().clone(), running.lane);
                let reason = format!("`{path}` changed while it ran");
                (self.emit)(Event::ActionCancelled { target, lane, reason: reason.clone() });
                match index.filter(|_| !self.control.is_controlled()) {
                    Some(index) => {
                        self.pending.remove(&index);
                        self.schedule.finish(index, Settled::Lost(reason));
                        self.changed.get_or_insert(path);
                        Ok(())
                    }
                    None => Err(Stop::Outdated(path)),
                }
            }
            (None, Some(index)) => {
                self.keep_inputs(ticket, index, performed);
                self.commit(index, performed)
            }
            (None, None) => self.commit_undecided(&running, performed),
        }
    }

    /// Keeps what a check prepared for those of the op's other variants. One that was lost may have read sources in another state than theirs.
    fn keep_inputs(&mut self, ticket: Ticket, index: Index, performed: &Performed) {
        let has_ended = performed.outcome.as_ref().is_some_and(|outcome| !outcome.is_lost());
        if let Some(inputs) = performed.inputs.as_ref().filter(|_| has_ended) {
            let op = &self.session.graph.action(index).target().op;
            self.inputs.keep(op, &in_flight::folder(&self.scratch, ticket), inputs);
        }
    }

    /// Keeps the result of an action whose dependencies have not settled in this build: it stands if they end as they did.
    fn commit_undecided(&mut self, running: &Running, performed: &Performed) -> Result<(), Stop> {
        match &performed.outcome {
            Some(outcome) if !outcome.is_lost() => {
                let record = self.commit_record(&running.action, &running.manifest, outcome, performed)?;
                self.tell_committed(&running.action, running.lane.clone(), &record, performed)
            }
            // It is decided again.
            _ => Ok(()),
        }
    }

    /// Returns a file that the children of an action may have seen in another state than the one its result would be kept under.
    fn changed_meanwhile(&self, running: &Running, performed: &Performed) -> Option<String> {
        if performed.outcome.as_ref().is_none_or(Outcome::is_lost) {
            return None;
        }
        let action = &running.action;
        let own = action.sources.iter().find(|(path, source)| {
            let now = self.session.sources.at_this_moment(path, source);
            now.is_none_or(|now| now.meaning != source.meaning || (performed.cites && now.bytes != source.bytes))
        });
        let is_touched = |path: &RepoPath| match &running.touched {
            Touched::Files(files) => files.contains(path),
            Touched::Anything => true,
        };
        let discovered = self.discovered(action, performed);
        let other = || discovered.keys().find(|path| !action.sources.contains_key(*path) && is_touched(path));
        own.map(|(path, _)| path).or_else(other).map(ToString::to_string)
    }
}

/// Returns the first way in which two manifests differ, in words; None where they are the same.
fn differs(old: &Manifest, new: &Manifest) -> Option<String> {
    explain::differences(old, new).first().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use t2t_model::manifest::Fact;

    use super::*;

    #[test]
    fn manifests_differ_by_their_first_fact_that_does() {
        let manifest = |code: &str| {
            let facts = [("kind", "check"), ("source.kernels/a.py", code)];
            Manifest { facts: facts.map(|(name, text)| (name.to_owned(), Fact::Text(text.to_owned()))).into() }
        };
        assert_eq!(differs(&manifest("one"), &manifest("one")), None);
        let reason = differs(&manifest("one"), &manifest("two")).unwrap();
        assert!(reason.starts_with("code of `kernels/a.py` changed"), "{reason}");
    }
}
