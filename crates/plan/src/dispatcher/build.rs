//! One build: what is queued in it, what is still to come on devices, and which device measures which op.
//!
//! It does not know what runs, nor which children are warm.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use t2t_model::action::{Lane, Phase};

use super::binding::{Binding, Queued};
use super::calls::AT_REST;
use super::cost::{measures, predicted, times};
use super::queue::{Line, Precedence, Queue};
use super::{Beginning, Command};
use crate::graph::{Graph, Index};

/// How long a device waits for something to check where what it could measure would have to wait itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much of a device's memory children may hold together that are ready for kernels, and for baselines: one part of so many. A kernel that finds too little left is called
/// again without them.
const PART_FOR_KERNELS: u64 = 3;
const PART_FOR_BASELINES: u64 = 16;

/// How many bytes such a child holds: what CUDA keeps of a process, and what torch and Triton loaded there.
const HELD: u64 = 3 << 28;

/// What is known of a build.
#[derive(Default)]
pub(super) struct Build {
    devices: usize,
    jobs: usize,
    memory: u64,
    is_followed: bool,
    is_stopped: bool,
    queue: Queue,
    binding: Binding,
    ops: Ops,
    /// How long each action takes that will have a device and has not settled.
    costs: BTreeMap<Index, Duration>,
    /// By op: the sum of these.
    left: Vec<Duration>,
    /// Analyses that have not settled.
    unanalyzed: BTreeSet<Index>,
    /// Compiles that have neither begun nor settled, where there are devices: they wait for analyses before they are queued.
    uncompiled: BTreeSet<Index>,
    /// Checks, measurements of kernels and calibrations on devices that have neither begun nor settled.
    coming: BTreeSet<Index>,
    /// Baselines for which children may yet get ready.
    unprepared: BTreeSet<Index>,
    /// The devices on which an action is not to begin.
    barred: BTreeSet<(Index, usize)>,
    /// Since when what measures could begin on a device; none since something last began there.
    idle_since: Option<Duration>,
    /// Whether an action took a device.
    pub(super) has_used_device: bool,
}

/// The ops of a graph by number. Where one device has all, all are one.
#[derive(Debug, Default)]
struct Ops {
    /// By number of an action.
    of: Vec<usize>,
    actions: Vec<Vec<Index>>,
}

impl Ops {
    fn new(graph: &Graph) -> Self {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut ops = Self::default();
        for index in graph.indices() {
            let next = numbers.len();
            let number = *numbers.entry(&graph.action(index).target().op).or_insert(next);
            ops.of.push(number);
            ops.actions.resize(numbers.len(), Vec::new());
            ops.actions[number].push(index);
        }
        ops
    }

    fn of(&self, index: Index) -> usize {
        self.of.get(index.number()).copied().unwrap_or(0)
    }
}

impl fmt::Debug for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Build").field("queue", &self.queue).field("coming", &self.coming).finish_non_exhaustive()
    }
}

impl Build {
    /// Returns what is known of a build as it begins.
    pub(super) fn new(devices: usize, jobs: usize, beginning: &Beginning<'_>) -> Self {
        let graph = beginning.graph;
        let wanted_of = |phases: &[Phase]| {
            let is_of = |index: &Index| phases.contains(&graph.action(*index).target().phase);
            graph.indices().filter(|index| beginning.wanted[index.number()]).filter(is_of).collect::<BTreeSet<_>>()
        };
        let mut build = Self {
            devices,
            jobs,
            memory: beginning.memory,
            is_followed: beginning.is_followed,
            binding: Binding::new(devices, beginning.any_device),
            ..Self::default()
        };
        if devices > 0 {
            build.coming = wanted_of(&[Phase::Check, Phase::Bench, Phase::Calibrate]);
            // Later attempts are not expected: most are never made.
            build.coming.retain(|index| graph.action(*index).target().attempt == 1);
            build.uncompiled = wanted_of(&[Phase::Compile]);
            build.uncompiled.retain(|index| graph.action(*index).target().attempt == 1);
        }
        if devices > 0 && beginning.prewarms {
            build.unprepared = wanted_of(&[Phase::Baseline]);
            build.unprepared.retain(|index| (beginning.is_unknown)(*index));
        }
        if build.binding.matters() {
            build.ops = Ops::new(graph);
            build.left = vec![Duration::ZERO; build.ops.actions.len()];
            build.unanalyzed = wanted_of(&[Phase::Analyze]);
        }
        build
    }

    /// Has children get ready for each device that will measure a kernel without a known result.
    pub(super) fn devices_to_prepare(&self, beginning: &Beginning<'_>) -> Vec<Command> {
        if !beginning.prewarms {
            return Vec::new();
        }
        let unknown: Vec<Index> = self.coming.iter().copied().filter(|index| (beginning.is_unknown)(*index)).collect();
        let is_bench = |index: &Index| beginning.graph.action(*index).target().phase == Phase::Bench;
        if !unknown.iter().any(is_bench) {
            return Vec::new();
        }
        let awaited = self.of_one(unknown.len());
        (0..self.devices).map(|device| Command::PrepareDevice(device, awaited)).collect()
    }

    /// Queues an action, unless nothing more is to begin.
    pub(super) fn enqueue(&mut self, index: Index, lane: Lane, phase: Phase, devices: usize) {
        if self.is_stopped {
            return;
        }
        let precedence = self.precedence(index, phase, devices);
        self.queue.insert(lane.into(), precedence, phase);
    }

    /// Queues an action for the cores that other machines lend, unless nothing more is to begin.
    pub(super) fn enqueue_away(&mut self, index: Index, phase: Phase, devices: usize) {
        if !self.is_stopped {
            let precedence = self.precedence(index, phase, devices);
            self.queue.insert(Line::Away, precedence, phase);
        }
    }

    /// What devices wait for comes first: analyses, which take no time, then the ops with the most to measure.
    fn precedence(&self, index: Index, phase: Phase, devices: usize) -> Precedence {
        let is_late = devices > 0 && phase != Phase::Analyze;
        Precedence { is_late, left: Reverse(self.left(index)), index }
    }

    /// Notes how long an action takes that will have a device.
    pub(super) fn set_cost(&mut self, index: Index, cost: Duration) {
        if self.binding.matters() {
            let before = self.costs.insert(index, cost).unwrap_or_default();
            self.change_left(index, before, cost);
        }
    }

    /// Notes that an action has settled.
    pub(super) fn settle(&mut self, index: Index) {
        self.forget(index);
        self.unprepared.remove(&index);
        self.unanalyzed.remove(&index);
        if let Some(cost) = self.costs.remove(&index) {
            self.change_left(index, cost, Duration::ZERO);
        }
    }

    /// Notes that an action has begun.
    pub(super) fn forget(&mut self, index: Index) {
        self.coming.remove(&index);
        self.uncompiled.remove(&index);
    }

    /// Notes that an action has a slot.
    pub(super) fn take(&mut self, index: Index, is_on_device: bool) {
        self.queue.remove(index);
        self.forget(index);
        if is_on_device {
            self.idle_since = None;
            self.has_used_device = true;
        }
    }

    /// Notes that nothing more is to begin.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.queue = Queue::default();
    }

    /// Binds the op of an action to a device, if it is not bound yet.
    pub(super) fn bind(&mut self, index: Index, device: usize) {
        self.binding.bind(self.ops.of(index), device);
    }

    /// Binds the ops of a device to none: another one takes what is left of them.
    pub(super) fn release(&mut self, device: usize) {
        self.binding.release(device);
    }

    /// Keeps an action from a device. What is left of its op is measured on another.
    pub(super) fn bar(&mut self, index: Index, device: usize) {
        self.barred.insert((index, device));
        self.binding.unbind(self.ops.of(index), device);
    }

    /// Returns the measurements that wait for devices and whose op is not bound to one.
    pub(super) fn unbound(&self) -> Vec<Index> {
        let waiting = self.queue.on_device().filter(|(_, phase)| measures(*phase));
        waiting.map(|(index, _)| index).filter(|index| !self.binding.knows(self.ops.of(*index))).collect()
    }

    /// Returns what the CPU lane and that of authors may take first.
    pub(super) fn first_on_cpu(&self) -> Vec<(Index, Lane, Phase)> {
        self.queue.first_on_cpu()
    }

    /// Counts what is to compile or does, where `in_flight` compiles are.
    pub(super) fn open_compiles(&self, in_flight: usize) -> usize {
        self.queue.compiles().max(self.uncompiled.len()) + in_flight
    }

    /// Returns what one of the free devices takes, with that device.
    ///
    /// Where it `is_early`, what measures would wait for children that get ready, and hold the device meanwhile: it begins once they are, or when nothing is compiled any more that a
    /// device could check, or when a device has waited for that long enough.
    pub(super) fn choose(&mut self, free: &[usize], is_early: bool, now: Duration) -> Option<(Index, Phase, usize)> {
        let since = *self.idle_since.get_or_insert(now);
        let are_held = is_early && now.saturating_sub(since) < PATIENCE;
        // What measures comes after all that does not.
        let mut could = self.queue.on_device().take_while(|(_, phase)| !(are_held && times(*phase)));
        if !self.binding.matters() {
            return could.next().map(|(index, phase)| (index, phase, free[0]));
        }
        // Which op has the most to measure is known once all are analyzed, a moment after the build began.
        let is_known =
            |index, phase| self.unanalyzed.is_empty() || !measures(phase) || self.binding.knows(self.ops.of(index));
        let waiting: Vec<(Index, Phase)> = could.filter(|(index, phase)| is_known(*index, *phase)).collect();
        let queued_as = |(index, phase): &(Index, Phase)| Queued {
            op: self.ops.of(*index),
            phase: *phase,
            left: self.left(*index).as_secs_f64(),
        };
        let queued: Vec<Queued> = waiting.iter().map(queued_as).collect();
        let chosen = free.iter().find_map(|device| {
            if self.barred.is_empty() {
                return Some((waiting[self.binding.choose(*device, &queued)?], *device));
            }
            let may = |(index, _): &&(Index, Phase)| !self.barred.contains(&(*index, *device));
            let able: Vec<&(Index, Phase)> = waiting.iter().filter(may).collect();
            let queued: Vec<Queued> = able.iter().map(|one| queued_as(one)).collect();
            Some((*able[self.binding.choose(*device, &queued)?], *device))
        });
        let ((index, phase), device) = chosen?;
        if measures(phase) {
            self.binding.bind(self.ops.of(index), device);
        }
        Some((index, phase, device))
    }

    /// Returns what one of these free places on lent cores takes, with that place.
    pub(super) fn choose_away(&self, free: &[usize]) -> Option<(Index, Phase, usize)> {
        free.iter().find_map(|place| {
            let mut may = self.queue.away().filter(|(index, _)| !self.barred.contains(&(*index, *place)));
            may.next().map(|(index, phase)| (index, phase, *place))
        })
    }

    /// Returns each baseline for which a child is to get ready, with the device where it is likely to run: as many as there may be. With several devices it waits until it is
    /// known which op has how much to measure.
    pub(super) fn baselines_to_prepare(&mut self) -> Vec<(Index, usize)> {
        if self.unprepared.is_empty() || !self.unanalyzed.is_empty() {
            return Vec::new();
        }
        let baselines: Vec<Index> = std::mem::take(&mut self.unprepared).into_iter().collect();
        let left: Vec<Duration> = baselines.iter().map(|index| self.left(*index)).collect();
        let (most, mut counts) = (self.most_prewarmed(), vec![0; self.devices]);
        let mut chosen = Vec::new();
        for (index, device) in baselines.into_iter().zip(predicted(self.devices, &left)) {
            if counts[device] < most {
                counts[device] += 1;
                self.binding.expect(self.ops.of(index), device);
                chosen.push((index, device));
            }
        }
        chosen
    }

    /// Returns how many children may be ready for one device: as many as checks and measurements are to come there, and a few where a build follows.
    pub(super) fn awaited(&self) -> usize {
        let coming = self.of_one(self.coming.len());
        if self.is_followed { coming.max(AT_REST) } else { coming }
    }

    /// Returns how many children may get ready for baselines of one device: each takes a core and some of the device's memory.
    fn most_prewarmed(&self) -> usize {
        self.fitting(PART_FOR_BASELINES).min(self.jobs / 2 / self.devices.max(1))
    }

    /// Returns how many children may be ready for one device where so many actions are to come on all.
    fn of_one(&self, left: usize) -> usize {
        left.div_ceil(self.devices.max(1)).min(self.fitting(PART_FOR_KERNELS))
    }

    /// Returns how many children may hold one part of so many of a device's memory.
    fn fitting(&self, part: u64) -> usize {
        usize::try_from(self.memory / part / HELD).unwrap_or(usize::MAX)
    }

    /// Returns how long devices have still to do for the op of an action, where there are several.
    fn left(&self, index: Index) -> Duration {
        self.left.get(self.ops.of(index)).copied().unwrap_or_default()
    }

    fn change_left(&mut self, index: Index, before: Duration, now: Duration) {
        let op = self.ops.of(index);
        let left = self.left[op].saturating_sub(before).saturating_add(now);
        self.left[op] = left;
        for index in &self.ops.actions[op] {
            self.queue.reorder(*index, left);
        }
    }
}
