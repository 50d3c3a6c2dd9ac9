//! Dispatch: an action that has to run is performed here, or queued and started with its inputs once it has a slot, or it counts as missing.
//!
//! It does not know which action is to run.

use serde_json::Value;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_store::store::cas::Unavailable;

use super::in_flight::{self, Start};
use super::job::Job;
use super::lanes::Slot;
use super::report::EngineError;
use super::request::{Given, Requests};
use super::settings::Children;
use super::waiting::Waiting;
use super::{Run, Stop};

impl Run<'_, '_> {
    /// Performs an action that needs no child, and queues one that does.
    pub(super) fn dispatch(&mut self, index: Index) -> Result<(), Stop> {
        if self.needs_what_is_missing(index) {
            self.miss(index);
            return Ok(());
        }
        let here = match self.performed_here(index) {
            Err(Stop::Error(fault)) if self.control.is_controlled() && fault.is_of_template() => {
                self.go_on_without(index, fault);
                return Ok(());
            }
            here => here?,
        };
        let Some(mut performed) = here else {
            if !self.may_run(index) {
                self.miss(index);
                return Ok(());
            }
            self.enqueue(index);
            return Ok(());
        };
        performed.wall = self.pending[&index].since.elapsed();
        self.tell_started(index);
        self.commit(index, &performed)
    }

    /// Goes on without a log that its template cannot make.
    fn go_on_without(&mut self, index: Index, fault: EngineError) {
        self.pending.remove(&index);
        self.schedule.finish(index, Settled::Lost(fault.to_string()));
        self.faults.push(fault);
    }

    pub(super) fn needs_what_is_missing(&self, index: Index) -> bool {
        let mut sources = self.session.graph.dependencies(index).into_iter().map(|(source, _)| source);
        sources.any(|source| self.schedule.settled(source) == Some(&Settled::Missing))
    }

    fn may_run(&self, index: Index) -> bool {
        match self.settings.children {
            Children::All => true,
            Children::WithoutDevice => self.session.graph.action(index).identity.device.is_none(),
            Children::None => false,
        }
    }

    fn miss(&mut self, index: Index) {
        let pending = self.pending.remove(&index).expect("what begins is pending");
        let target = self.session.graph.action(index).target().clone();
        (self.emit)(Event::ActionMissing { target, why: pending.why.clone() });
        self.missing.push((index, pending.why));
        self.schedule.finish(index, Settled::Missing);
    }

    fn tell_started(&mut self, index: Index) {
        let pending = &self.pending[&index];
        let target = self.session.graph.action(index).target().clone();
        (self.emit)(Event::ActionStarted { target, lane: pending.lane.clone(), why: pending.why.clone() });
    }

    /// Starts what is queued and finds a free slot.
    pub(super) fn start_queued(&mut self) -> Result<(), Stop> {
        if self.stopped {
            self.queue = Waiting::default();
        }
        while let Some((index, slot)) = self.next_queued()? {
            self.prewarm.forget(index);
            let job = self.job(index, &slot)?;
            let pending = self.pending.get_mut(&index).expect("what is queued is pending");
            pending.lane.clone_from(&slot.name);
            let (manifest, why) = (pending.manifest.clone(), pending.why.clone());
            self.tell_started(index);
            let (pool, locks, interrupt) = (&self.session.pool, self.settings.locks.as_path(), self.interrupt);
            let start = Start { job, slot, manifest, why, index, pool, locks, interrupt };
            self.in_flight.start(self.session.graph.action(index), start);
        }
        Ok(())
    }

    fn job(&self, index: Index, slot: &Slot) -> Result<Job, Stop> {
        let given = Given {
            cores: slot.cores.clone(),
            nice: slot.nice,
            processes: self.processes(index),
            ready: self.awaited(),
            has_room: self.in_flight.lanes.has_room(),
            inputs: self.inputs.of(&self.session.graph.action(index).target().op),
            ..self.given(index, slot.device.clone())?
        };
        let scratch = in_flight::folder(&self.scratch, slot.ticket);
        Ok(self.requests().job(self.session.graph.action(index), &given, scratch))
    }

    pub(super) fn requests(&self) -> Requests<'_> {
        Requests {
            spec: &self.session.spec,
            inventory: &self.session.inventory,
            root: &self.session.root,
            catalogue: &self.session.catalogue,
            readable: self.session.readable(),
            shares: &self.settings.shares,
            jobs: self.settings.jobs,
            salt: &self.settings.salt,
        }
    }

    /// Returns what an action gets of others beside what its manifest names: compiled kernels, the tuned configuration.
    fn given(&self, index: Index, device: Option<String>) -> Result<Given, Stop> {
        let mut given = Given { device, ..Given::default() };
        for (source, _) in self.session.graph.dependencies(index) {
            let Some(record) = self.schedule.settled(source).and_then(Settled::record) else { continue };
            if let (Some(archive), Some(_)) = (record.outputs.get("triton.tar.gz"), &given.device) {
                self.bytes(archive.digest)?;
                given.warm.push(self.cas.path(archive.digest));
            }
            if let Some(tune) = record.outputs.get("tune") {
                given.tune = Some(self.document(tune.digest)?);
            }
        }
        Ok(given)
    }

    pub(super) fn bytes(&self, digest: Digest) -> Result<Vec<u8>, Stop> {
        self.cas.get(digest).map_err(|error| self.lost(&error))
    }

    pub(super) fn document(&self, digest: Digest) -> Result<Value, Stop> {
        let bytes = self.bytes(digest)?;
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn lost(&self, error: &Unavailable) -> Stop {
        let source = self.schedule.source_of(error.digest());
        match source {
            Some(source) => Stop::Lost { blob: error.to_string(), source },
            None => Stop::Error(EngineError::Vanishing(error.digest())),
        }
    }
}
