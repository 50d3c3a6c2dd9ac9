//! The dispatcher: what runs next, where, and which children get ready before their requests. One value: it is told what happened and says what is to be done.
//!
//! It owns every count that this takes: slots, what is queued, what devices have still to do, warm children. It does not know how anything is done, what time it is,
//! or what is stale: whoever drives it carries its commands out, and tells it times.

use std::time::Duration;

use t2t_model::action::{Lane, Phase};
use t2t_protocol::ServerKind;

use crate::functions::{Function, Queues};
use crate::graph::{Graph, Index};

mod cost;
mod binding;
mod queue;
mod slots;
mod warm;
mod calls;
mod build;
#[cfg(test)]
mod tests;

pub use self::calls::{Caller, Wanted, of_a_check, of_device};
pub use self::cost::{Work, guess, measures};
pub use self::slots::{Place, Slot, Ticket};
pub use self::warm::{Call, Server};

use self::build::Build;
use self::slots::Slots;
use self::warm::Warm;

/// A build, as it begins.
#[derive(Clone, Copy)]
pub struct Beginning<'a> {
    /// Its graph.
    pub graph: &'a Graph,
    /// By number: which actions are wanted.
    pub wanted: &'a [bool],
    /// The slots of earlier builds in which something still runs.
    pub running: &'a [Ticket],
    /// How many authors may work at once.
    pub authors: usize,
    /// Whether measurements of one op may run on several devices.
    pub any_device: bool,
    /// Whether children may get ready for actions that are not decided yet, where devices have nothing to do.
    pub prewarms: bool,
    /// Whether another build follows, for which children are left ready.
    pub is_followed: bool,
    /// Bytes of memory of the smallest device.
    pub memory: u64,
    /// Whether nothing is remembered of an action, so that it will run as far as that is known before anything is decided.
    pub is_unknown: &'a dyn Fn(Index) -> bool,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// An action is to run, in children.
    Ready {
        /// Which.
        index: Index,
        /// The slot that it needs.
        lane: Lane,
        /// Its phase.
        phase: Phase,
    },
    /// An action is to run on cores that another machine lends.
    ReadyAway {
        /// Which.
        index: Index,
        /// Its phase.
        phase: Phase,
    },
    /// An action that an earlier build started goes on for this one.
    Reused(Index),
    /// It is known, or known anew, how long an action takes that will have a device.
    Costs(Index, Duration),
    /// The op of this action is measured on this device: its figures that stand are from there, or one is measured now.
    Measured(Index, usize),
    /// An action settled.
    Settled(Index),
    /// What has this slot was cancelled. The slot is free once its child is gone.
    Cancelled(Ticket),
    /// What had this slot is over.
    Ended(Ticket),
    /// This device is not to be had any more: nothing begins there, and the ops that were measured there are bound anew.
    Withdrawn(usize),
    /// An action is to begin on this device no more, as far as there are others.
    Barred(Index, usize),
    /// Nothing more is to begin in this build.
    Stopped,
    /// The time has come to look what may begin.
    Turn {
        /// What time it is, counted from anywhere.
        now: Duration,
    },
    /// A request was sent: the server takes a child that waits for it, else it forks one.
    Called {
        /// The call.
        call: Call,
        /// Whose call it is.
        caller: Caller<'a>,
        /// What is called.
        function: &'static Function,
        /// Over how many queues of its device the streams of the child are spread.
        queues: Queues,
    },
    /// That call is over.
    Returned {
        /// The call.
        call: Call,
        /// Whether the child stayed, and waits for another request.
        has_stayed: bool,
    },
    /// Children are to be ready at a server, for a device or for the interpreter.
    Wanted {
        /// The server.
        server: Server,
        /// What requests ask for them by.
        key: &'a str,
        /// How many.
        most: usize,
    },
    /// The server that [`Command::PrepareBaseline`] needs was told, or none was found.
    Asked,
    /// A server has said of so many children in all that they are ready, or never will be.
    Prepared(Server, u64),
    /// A server is gone, with all its children.
    Gone(Server),
    /// An action on this device lacked something there, which children that wait may hold.
    Lacked(ServerKind, &'a str),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start an action. Its slot is taken until it ended.
    Start(Start),
    /// Have a child get ready for the baseline at this place on this device, and say [`Event::Asked`] once its server was told.
    PrepareBaseline(Index, usize),
    /// Have children get ready for this device, as [`of_device`] says for so many, unless an action takes it first.
    PrepareDevice(usize, usize),
    /// Have the server of the event make so many children of this key.
    Prepare(String, usize),
    /// End the children that wait for the device of the event.
    Dismiss,
}

/// How an action is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Which action.
    pub index: Index,
    /// Its slot.
    pub slot: Slot,
    /// How many processes a child of it may use to compile.
    pub processes: usize,
    /// How many children may be ready for its device.
    pub awaited: usize,
    /// Whether a slot of the CPU lane is left for a judge beside its candidate.
    pub has_room: bool,
}

/// What runs, what waits, which children are warm.
#[derive(Debug)]
pub struct Dispatcher {
    slots: Slots,
    warm: Warm,
    build: Build,
}

impl Dispatcher {
    /// Returns the dispatcher of a machine of which nothing is in use: `jobs` slots on the CPU, and so many devices.
    #[must_use]
    pub fn new(jobs: usize, devices: usize) -> Self {
        Self { slots: Slots::new(jobs, devices), warm: Warm::default(), build: Build::default() }
    }

    /// Adds so many places on cores that other machines lend. Their numbers follow those of devices.
    #[must_use]
    pub fn lent(self, cores: usize) -> Self {
        Self { slots: self.slots.lent(cores), ..self }
    }

    /// Begins a build: of the one before, what runs and the warm children are left.
    pub fn begin(&mut self, beginning: &Beginning<'_>) -> Vec<Command> {
        self.slots.keep(beginning.running);
        self.slots.set_authors(beginning.authors);
        self.build = Build::new(self.slots.devices(), self.slots.on_cpu(), beginning);
        self.build.devices_to_prepare(beginning)
    }

    /// Takes note of what happened, and returns what is to be done about it, in order.
    pub fn handle(&mut self, event: Event<'_>) -> Vec<Command> {
        match event {
            Event::Ready { index, lane, phase } => self.build.enqueue(index, lane, phase, self.slots.devices()),
            Event::ReadyAway { index, phase } => self.build.enqueue_away(index, phase, self.slots.devices()),
            Event::Reused(index) => self.build.forget(index),
            Event::Costs(index, cost) => self.build.set_cost(index, cost),
            Event::Measured(index, device) => self.build.bind(index, device),
            Event::Settled(index) => self.build.settle(index),
            Event::Cancelled(ticket) => self.slots.cancel(ticket),
            Event::Ended(ticket) => self.slots.free(ticket),
            Event::Barred(index, device) => self.build.bar(index, device),
            Event::Withdrawn(device) => {
                self.slots.withdraw(device);
                self.build.release(device);
            }
            Event::Stopped => self.build.stop(),
            Event::Turn { now } => return self.turn(now),
            Event::Called { call, caller, function, queues } => return self.call(call, &caller, function, queues),
            Event::Returned { call, has_stayed } => self.warm.put_back(call, has_stayed),
            Event::Wanted { server, key, most } => return self.fill(server, &Wanted { key: key.to_owned(), most }),
            Event::Asked => self.warm.end_asking(),
            Event::Prepared(server, count) => self.warm.note_prepared(server, count),
            Event::Gone(server) => self.warm.forget(server),
            Event::Lacked(kind, device) => {
                self.warm.dismiss(kind, device);
                return vec![Command::Dismiss];
            }
        }
        Vec::new()
    }

    /// Returns whether children get ready for devices, or will.
    #[must_use]
    pub fn prepares_devices(&self) -> bool {
        self.warm.get_ready(ServerKind::Device)
    }

    /// Returns whether an action of this build took a device.
    #[must_use]
    pub fn has_used_device(&self) -> bool {
        self.build.has_used_device
    }

    /// Returns the measurements that a free device could take if it were known where their ops are measured. Whoever knows says [`Event::Measured`]; else their ops are bound to
    /// the device that takes them.
    #[must_use]
    pub fn unbound(&self) -> Vec<Index> {
        if self.slots.free_devices().is_empty() { Vec::new() } else { self.build.unbound() }
    }

    /// Returns whether it matters how long actions take: where several devices share them.
    #[must_use]
    pub fn shares_devices(&self) -> bool {
        self.slots.devices() > 1
    }

    fn turn(&mut self, now: Duration) -> Vec<Command> {
        let baselines = self.build.baselines_to_prepare();
        let mut commands: Vec<Command> =
            baselines.into_iter().map(|(index, device)| Command::PrepareBaseline(index, device)).collect();
        for _ in &commands {
            self.warm.begin_asking();
        }
        while let Some(start) = self.start(now) {
            commands.push(Command::Start(start));
        }
        commands
    }

    fn start(&mut self, now: Duration) -> Option<Start> {
        let started = self.start_on_cpu().or_else(|| self.start_away());
        let (index, phase, slot) = started.or_else(|| self.start_on_device(now))?;
        let is_on_device = matches!(slot.place, Place::Device(number) if number < self.slots.devices());
        self.build.take(index, is_on_device);
        let processes =
            if phase == Phase::Compile { cost::processes(self.slots.on_cpu(), self.open_compiles()) } else { 1 };
        let has_room = self.slots.has_room();
        Some(Start { index, slot, processes, awaited: self.build.awaited(), has_room })
    }

    fn start_on_cpu(&mut self) -> Option<(Index, Phase, Slot)> {
        let firsts = self.build.first_on_cpu();
        firsts.into_iter().find_map(|(index, lane, phase)| Some((index, phase, self.slots.take(lane, phase)?)))
    }

    fn start_away(&mut self) -> Option<(Index, Phase, Slot)> {
        let (index, phase, place) = self.build.choose_away(&self.slots.free_lent())?;
        Some((index, phase, self.slots.take_device(place, phase)))
    }

    fn start_on_device(&mut self, now: Duration) -> Option<(Index, Phase, Slot)> {
        let free = self.slots.free_devices();
        if free.is_empty() {
            return None;
        }
        let is_early = self.prepares_devices() && self.open_compiles() > 0;
        let (index, phase, device) = self.build.choose(&free, is_early, now)?;
        Some((index, phase, self.slots.take_device(device, phase)))
    }

    /// Counts what compiles, or is to.
    fn open_compiles(&self) -> usize {
        self.build.open_compiles(self.slots.compiles())
    }

    fn call(&mut self, call: Call, caller: &Caller<'_>, function: &Function, queues: Queues) -> Vec<Command> {
        if let Some(key) = caller.key(function, queues) {
            self.warm.take(call, &key, caller.stays(function));
        }
        caller.beside(function).iter().flat_map(|wanted| self.fill(call.server, wanted)).collect()
    }

    fn fill(&mut self, server: Server, wanted: &Wanted) -> Vec<Command> {
        let missing = self.warm.fill(server, &wanted.key, wanted.most);
        (missing > 0).then(|| Command::Prepare(wanted.key.clone(), missing)).into_iter().collect()
    }
}
