//! In flight: the actions that run in children, each on a thread of its own. They may outlive the build that started them.
//!
//! It does not know which of them are still wanted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use t2t_host::cores::Shares;
use t2t_host::device::{DeviceLock, Holder};
use t2t_host::interrupt::Interrupt;
use t2t_host::pool::{Cancel, Pool};
use t2t_model::action::{Action, Identity};
use t2t_model::manifest::Manifest;
use t2t_model::path::RepoPath;
use t2t_model::record::Record;
use t2t_plan::dispatcher::{self, Event, Place, Ticket};
use t2t_plan::graph::Index;
use t2t_report::figures;
use t2t_store::fs;
use t2t_store::store::remote::Blobs;
use t2t_store::store::remote::entry::Entry;

use super::dispatcher::SharedDispatcher;
use crate::engine::job::Job;
use crate::engine::perform::{Performed, perform};

/// What the thread of an action tells the loop.
pub(super) enum Message {
    /// It waits for a device that somebody else holds.
    Waiting { what: String, holder: String },
    /// It is done.
    Done(Ticket, Box<Performed>),
    /// The remote cache answered for an action of this round.
    Answered(u64, Index, Option<Entry>),
    /// The blobs of a result of this round came, or cannot be had.
    Fetched(u64, Index, Box<Record>, Option<Blobs>),
    /// Somebody has something for the loop to look at.
    Wake,
}

/// Which files changed while actions were in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Touched {
    /// These.
    Files(BTreeSet<RepoPath>),
    /// Any may have.
    Anything,
}

/// An action that runs.
pub(super) struct Running {
    /// As it was when it was started.
    pub(crate) action: Action,
    pub(crate) manifest: Manifest,
    pub(crate) why: Vec<String>,
    /// The name of its lane.
    pub(crate) lane: String,
    pub(crate) since: Instant,
    /// Where it is in the present graph, once it is decided there that its result is the one to have.
    pub(crate) index: Option<Index>,
    pub(crate) cancel: Cancel,
    pub(crate) touched: Touched,
    pool: Arc<Pool>,
    thread: JoinHandle<()>,
}

/// A slot that an action has, as its children have to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    /// Its number, which frees it.
    pub(crate) ticket: Ticket,
    /// The lane's name, for people.
    pub(crate) name: String,
    /// The device's UUID, for a device's slot.
    pub(crate) device: Option<String>,
    /// The cores that children in it run on. None where they run on whichever they get.
    pub(crate) cores: Option<Vec<usize>>,
    /// How much they give way to others.
    pub(crate) nice: Option<i32>,
}

/// A device, as a lane, or a place on cores that another machine lends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaneOfDevice {
    /// Its name, for people.
    pub(super) name: String,
    /// Its UUID, where it is one of this machine.
    pub(super) uuid: Option<String>,
}

/// The actions that run, and the dispatcher, which knows their slots.
pub(crate) struct InFlight {
    dispatcher: SharedDispatcher,
    devices: Vec<LaneOfDevice>,
    shares: Shares,
    running: BTreeMap<Ticket, Running>,
    messages: (Sender<Message>, Receiver<Message>),
    held: VecDeque<Message>,
    round: u64,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets = self.running.values().map(|running| running.action.target().to_string());
        f.debug_list().entries(targets).finish()
    }
}

/// Has the loop of a build look at once, from any thread.
#[derive(Clone)]
pub(crate) struct Waker(Sender<Message>);

impl Waker {
    /// Has it look.
    pub(crate) fn wake(&self) {
        // Where nothing is in flight any more nobody is to be woken.
        let _ = self.0.send(Message::Wake);
    }
}

/// What starting an action takes, beside the action.
pub(super) struct Starting<'a> {
    pub(crate) slot: Slot,
    pub(crate) manifest: Manifest,
    pub(crate) why: Vec<String>,
    pub(crate) index: Index,
    pub(crate) pool: &'a Arc<Pool>,
}

impl InFlight {
    /// Returns lanes with nothing in them: `jobs` slots of the CPU, one for each of `devices`, and one for each of the places that are `lent` on cores of other machines.
    #[must_use]
    pub(super) fn new(jobs: usize, devices: Vec<LaneOfDevice>, lent: Vec<LaneOfDevice>, shares: Shares) -> Self {
        Self {
            dispatcher: SharedDispatcher::new(jobs, devices.len(), lent.len()),
            devices: devices.into_iter().chain(lent).collect(),
            shares,
            running: BTreeMap::new(),
            messages: channel(),
            held: VecDeque::new(),
            round: 0,
        }
    }

    /// Returns whether nothing runs.
    #[must_use]
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns the ops of which something runs that was not cancelled.
    #[must_use]
    pub(crate) fn ops(&self) -> BTreeSet<String> {
        self.live().map(|(_, running)| running.action.target().op.clone()).collect()
    }

    /// Returns the dispatcher.
    #[must_use]
    pub(crate) fn dispatcher(&self) -> &SharedDispatcher {
        &self.dispatcher
    }

    /// Returns the number of the device with this UUID.
    pub(super) fn device(&self, uuid: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.uuid.as_deref() == Some(uuid))
    }

    /// Returns the number of the device on whose lane an action runs, if it is a device's.
    pub(super) fn lane(&self, running: &Running) -> Option<usize> {
        self.devices.iter().position(|device| device.name == running.lane)
    }

    /// Returns the slots in which something runs.
    pub(super) fn tickets(&self) -> Vec<Ticket> {
        self.running.keys().copied().collect()
    }

    /// Returns a slot that the dispatcher gave, as children have to know it.
    pub(super) fn slot(&self, slot: dispatcher::Slot) -> Slot {
        let dispatcher::Slot { ticket, place, nice } = slot;
        match place {
            Place::Cpu => Slot { ticket, name: "cpu".to_owned(), device: None, cores: self.shares.cpu.clone(), nice },
            Place::Author => Slot { ticket, name: "author".to_owned(), device: None, cores: None, nice },
            Place::Device(number) => Slot {
                ticket,
                name: self.devices[number].name.clone(),
                device: self.devices[number].uuid.clone(),
                cores: self.shares.devices.get(number).cloned(),
                nice,
            },
        }
    }

    /// Returns what wakes the loop.
    #[must_use]
    pub(crate) fn waker(&self) -> Waker {
        Waker(self.messages.0.clone())
    }

    /// Begins a build over what is in flight, and returns its number.
    pub(super) fn begin_round(&mut self) -> u64 {
        self.round += 1;
        self.round
    }

    /// Returns where threads tell the loop something.
    pub(super) fn messages(&self) -> Sender<Message> {
        self.messages.0.clone()
    }

    /// Says that files changed while all that is in flight ran.
    pub(crate) fn touch(&mut self, touched: &Touched) {
        for running in self.running.values_mut() {
            match (&mut running.touched, touched) {
                (Touched::Files(known), Touched::Files(more)) => known.extend(more.iter().cloned()),
                (known, _) => *known = Touched::Anything,
            }
        }
    }

    /// Kills all that is in flight, its servers too, and waits until it is gone.
    pub(crate) fn stop(&mut self) {
        for (ticket, running) in std::mem::take(&mut self.running) {
            running.pool.stop();
            // It waits for no server, where it asks an author.
            running.pool.cancel(&running.cancel);
            // A thread that panicked has said so.
            let _ = running.thread.join();
            self.dispatcher.handle(Event::Ended(ticket));
        }
        while self.messages.1.try_recv().is_ok() {}
        self.held.clear();
    }

    /// Starts `action`: `work` performs it, on a thread of its own. It may tell the loop something, and ends soon once it is cancelled.
    pub(super) fn start(
        &mut self,
        action: &Action,
        starting: Starting<'_>,
        work: impl FnOnce(&Sender<Message>, &Cancel) -> Performed + Send + 'static,
    ) {
        let Starting { slot, manifest, why, index, pool } = starting;
        let (ticket, cancel) = (slot.ticket, Cancel::default());
        let thread = {
            let (messages, cancel) = (self.messages.0.clone(), cancel.clone());
            std::thread::spawn(move || {
                let performed = work(&messages, &cancel);
                let _ = messages.send(Message::Done(ticket, Box::new(performed)));
            })
        };
        let running = Running {
            action: action.clone(),
            manifest,
            why,
            lane: slot.name,
            since: Instant::now(),
            index: Some(index),
            cancel,
            touched: Touched::Files(BTreeSet::new()),
            pool: Arc::clone(pool),
            thread,
        };
        self.running.insert(ticket, running);
    }

    /// Returns what is told next, within a time.
    pub(super) fn next(&mut self, patience: Duration) -> Option<Message> {
        if let Some(message) = self.held.pop_front() {
            return Some(message);
        }
        match self.messages.1.recv_timeout(patience) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is held here"),
        }
    }

    /// Waits for a time, or for a wake. What is told meanwhile comes first afterwards.
    pub(super) fn hold(&mut self, patience: Duration) {
        if let Ok(message) = self.messages.1.recv_timeout(patience)
            && !matches!(message, Message::Wake)
        {
            self.held.push_back(message);
        }
    }

    /// Takes an action that is done from what is in flight, and frees its slot.
    pub(super) fn land(&mut self, ticket: Ticket) -> Option<Running> {
        self.dispatcher.handle(Event::Ended(ticket));
        self.running.remove(&ticket)
    }

    /// Returns the actions that run and were not cancelled.
    pub(super) fn live(&self) -> impl Iterator<Item = (Ticket, &Running)> {
        self.running.iter().filter(|(_, running)| !running.cancel.is_set()).map(|(ticket, running)| (*ticket, running))
    }

    /// Returns the number under which `identity` runs, if it does.
    pub(super) fn find(&self, identity: &Identity) -> Option<Ticket> {
        self.live().find(|(_, running)| running.action.identity == *identity).map(|(ticket, _)| ticket)
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Running> {
        self.running.get(&ticket)
    }

    /// Says where an action that runs is in the present graph.
    pub(super) fn place(&mut self, ticket: Ticket, index: Option<Index>) {
        if let Some(running) = self.running.get_mut(&ticket) {
            running.index = index;
        }
    }

    /// Kills an action. Its slot is free once its child is gone.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        if let Some(running) = self.running.get(&ticket) {
            running.pool.cancel(&running.cancel);
            self.dispatcher.handle(Event::Cancelled(ticket));
        }
    }
}

/// Returns what performs `job` in children of this machine, under the lock of its device.
pub(super) fn here(
    job: Job,
    pool: &Arc<Pool>,
    dispatcher: &SharedDispatcher,
    locks: &Path,
    interrupt: &Interrupt,
) -> impl FnOnce(&Sender<Message>, &Cancel) -> Performed + Send + use<> {
    let (pool, dispatcher) = (Arc::clone(pool), dispatcher.clone());
    let (locks, interrupt) = (locks.to_owned(), interrupt.clone());
    move |messages, cancel| {
        let stopped = || interrupt.is_set() || cancel.is_set();
        locked(&job, &locks, messages, stopped, || perform(&job, &pool, &dispatcher, cancel))
    }
}

/// Runs `work` under the lock of the job's device, where it has one. Whoever waits says for whom.
fn locked(
    job: &Job,
    locks: &Path,
    messages: &Sender<Message>,
    stopped: impl Fn() -> bool,
    work: impl FnOnce() -> Performed,
) -> Performed {
    let Some(uuid) = &job.device else { return work() };
    let who = || Holder {
        pid: std::process::id(),
        target: job.target.to_string(),
        workspace: job.root.to_string_lossy().into_owned(),
        since: figures::moment(fs::now()),
    };
    let waiting = |holder: &str| {
        let _ = messages.send(Message::Waiting { what: format!("device {uuid}"), holder: holder.to_owned() });
    };
    match DeviceLock::take(locks, uuid, who, waiting, stopped) {
        Ok(Some(_lock)) => work(),
        Ok(None) => Performed::lost("interrupted"),
        Err(error) => Performed::lost(format!("cannot lock device {uuid}: {error}")),
    }
}

/// Returns the folder in which the children of an action work, among those of this process.
pub(super) fn folder(scratch: &Path, ticket: Ticket) -> PathBuf {
    scratch.join(ticket.to_string())
}
