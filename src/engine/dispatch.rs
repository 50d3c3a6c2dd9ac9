//! Dispatch: what becomes of an action that is to run: it is performed here, or handed to the dispatcher, and started when that says so with what it is given, or it is missing.
//!
//! It does not know which action is to run, nor which of them runs next.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use t2t_host::cores;
use t2t_model::action::Phase;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_plan::dispatcher::{Command, Event as Told, Start};
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_protocol::read;
use t2t_store::store::cas::Unavailable;

use super::in_flight::{self, Slot, Starting};
use super::job::Job;
use super::perform::Performed;
use super::report::EngineError;
use super::request::{Given, Requests};
use super::settings::Children;
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
            if let Some(reason) = self.place(index)? {
                return self.commit(index, &Performed::lost(reason));
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

    pub(super) fn tell_started(&mut self, index: Index) {
        let pending = &self.pending[&index];
        let target = self.session.graph.action(index).target().clone();
        (self.emit)(Event::ActionStarted { target, lane: pending.lane.clone(), why: pending.why.clone() });
    }

    /// Starts what the dispatcher says may run now, and has children get ready as it says.
    pub(super) fn start_queued(&mut self) -> Result<(), Stop> {
        self.tell_news()?;
        self.look_at_nodes()?;
        let dispatcher = self.in_flight.dispatcher();
        dispatcher.hear_devices(&self.session.pool);
        if self.stopped {
            dispatcher.handle(Told::Stopped);
        }
        let commands = dispatcher.handle(Told::Turn { now: Duration::from_nanos(cores::monotonic()) });
        self.carry_out(commands)
    }

    /// Does what the dispatcher says. Where that fails the build is over, and the next one begins without the slots that were given.
    pub(super) fn carry_out(&mut self, commands: Vec<Command>) -> Result<(), Stop> {
        for command in commands {
            match command {
                Command::Start(start) => self.start(start)?,
                Command::PrepareBaseline(index, device) => self.prepare_baseline(index, device),
                Command::PrepareDevice(device, awaited) => self.prepare_device(device, awaited),
                // Threads that call children are told so, and do it themselves.
                Command::Prepare(..) | Command::Dismiss => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, start: Start) -> Result<(), Stop> {
        if self.send(&start)? {
            return Ok(());
        }
        let (index, slot) = (start.index, self.in_flight.slot(start.slot));
        if !self.may_ask(index, slot.ticket)? {
            return Ok(());
        }
        let job = self.job(&start, &slot)?;
        let pending = self.pending.get_mut(&index).expect("what is queued is pending");
        pending.lane.clone_from(&slot.name);
        let (manifest, why) = (pending.manifest.clone(), pending.why.clone());
        self.tell_started(index);
        let pool = &self.session.pool;
        let work = in_flight::here(job, pool, self.in_flight.dispatcher(), &self.settings.locks, self.interrupt);
        self.in_flight.start(self.schedule.action(index), Starting { slot, manifest, why, index, pool }, work);
        Ok(())
    }

    fn job(&self, start: &Start, slot: &Slot) -> Result<Job, Stop> {
        let action = self.schedule.action(start.index);
        let given = Given {
            cores: slot.cores.clone(),
            nice: slot.nice,
            processes: start.processes,
            ready: start.awaited,
            has_room: start.has_room,
            inputs: self.inputs.of(&action.target().op),
            ..self.given(start.index, slot.device.clone())?
        };
        let scratch = in_flight::folder(&self.scratch, slot.ticket);
        let asking = self.askings.get(&start.index).cloned();
        Ok(Job { asking, ..self.requests().job(action, &given, scratch) })
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
        given.warm.extend(self.parts_of_last(index));
        for (source, _) in self.session.graph.dependencies(index) {
            let Some(record) = self.schedule.settled(source).and_then(Settled::record) else { continue };
            if let (Some(archive), Some(_)) = (record.outputs.get("triton.tar.gz"), &given.device) {
                self.bytes(archive.digest)?;
                given.warm.push(self.cas.path(archive.digest));
            }
            if let Some(tune) = record.outputs.get("tune") {
                given.tune = Some(self.document(tune.digest)?);
            }
            if let Some(lengths) = record.outputs.get("lengths") {
                given.lengths = read::document(&self.bytes(lengths.digest)?).unwrap_or_default();
            }
        }
        Ok(given)
    }

    /// Returns the archive of the last compile of CUDA C++ that torch would build: the next one takes the parts that it need not make again.
    fn parts_of_last(&self, index: Index) -> Option<PathBuf> {
        let identity = &self.session.graph.action(index).identity;
        let target = &identity.target;
        let variant = self.session.spec.op(&target.op)?.variant(target.variant.as_deref()?)?;
        if target.phase != Phase::Compile || !self.session.inventory.is_extension(variant) {
            return None;
        }
        let archive = self.history.last(identity)?.outputs.get("triton.tar.gz")?.digest;
        // What is damaged or gone is made again.
        self.cas.get(archive).ok().map(|_| self.cas.path(archive))
    }

    pub(super) fn bytes(&self, digest: Digest) -> Result<Vec<u8>, Stop> {
        self.cas.get(digest).map_err(|error| self.lost(&error))
    }

    pub(super) fn document(&self, digest: Digest) -> Result<Value, Stop> {
        let bytes = self.bytes(digest)?;
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    pub(super) fn lost(&self, error: &Unavailable) -> Stop {
        let source = self.schedule.source_of(error.digest());
        match source {
            Some(source) => Stop::Lost { blob: error.to_string(), source },
            None => Stop::Error(EngineError::Vanishing(error.digest())),
        }
    }
}
