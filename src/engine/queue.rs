//! The queue: what runs next. Which action a free slot takes, where an op is measured, and how many processes a compile may use.
//!
//! It does not know how an action is performed.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use t2t_model::action::{Action, Lane, Phase, Target};
use t2t_plan::graph::Index;
use t2t_plan::graph::expand::profile;
use t2t_plan::schedule::Settled;

use super::lanes::Slot;
use super::order::{self, Queued, Work, measures, times};
use super::waiting::Precedence;
use super::{Run, Stop};

/// How long a device waits for something to check where what it could measure would have to wait itself.
const PATIENCE: Duration = Duration::from_secs(20);

impl Run<'_, '_> {
    /// Queues an action that runs in children.
    pub(super) fn enqueue(&mut self, index: Index) {
        let action = self.session.graph.action(index);
        let Target { op, phase, .. } = action.target();
        // What devices wait for comes first: analyses, which take no time, then the ops with the most to measure.
        let is_late = !self.session.devices.is_empty() && *phase != Phase::Analyze;
        let left = self.left.get(op).copied().unwrap_or_default();
        self.queue.insert(action.lane, Precedence { is_late, left: Reverse(left), index }, *phase);
    }

    /// Takes a slot for a queued action, if there is one that a free slot may take.
    pub(super) fn next_queued(&mut self) -> Result<Option<(Index, Slot)>, Stop> {
        if self.binding.matters() {
            self.count_left()?;
        }
        let taken = match self.next_on_cpu() {
            Some(taken) => Some(taken),
            None => self.next_on_device()?,
        };
        if let Some((index, slot)) = &taken {
            self.queue.remove(*index);
            if slot.device.is_some() {
                self.prewarm.idle_since = None;
                self.prewarm.is_taken.store(true, Ordering::Relaxed);
            }
        }
        Ok(taken)
    }

    fn next_on_cpu(&mut self) -> Option<(Index, Slot)> {
        let before = self.running_compiles();
        let lanes = &mut self.in_flight.lanes;
        self.queue.first_on_cpu().find_map(|(index, lane)| Some((index, lanes.take(lane, before)?)))
    }

    fn next_on_device(&mut self) -> Result<Option<(Index, Slot)>, Stop> {
        let free = self.in_flight.lanes.free_devices();
        if free.is_empty() {
            return Ok(None);
        }
        if !self.binding.matters() {
            let first = self.ready_for_devices().next();
            return Ok(first.map(|index| (index, self.in_flight.lanes.take_device(free[0]))));
        }
        let mut waiting: Vec<Index> = self.ready_for_devices().collect();
        for index in &waiting {
            self.bind_to_home(*index)?;
        }
        let analyzed = self.are_all_analyzed();
        let target = |index: &Index| self.session.graph.action(*index).target();
        // Which op has the most to measure is known once all are analyzed, a moment after the build began.
        waiting.retain(|index| analyzed || !measures(target(index).phase) || self.binding.knows(&target(index).op));
        for device in free {
            let queued: Vec<Queued<'_>> = waiting
                .iter()
                .map(|index| {
                    let Target { op, phase, .. } = target(index);
                    Queued { op, phase: *phase, left: self.left.get(op).copied().unwrap_or_default().as_secs_f64() }
                })
                .collect();
            let Some(place) = self.binding.choose(device, &queued) else { continue };
            if measures(queued[place].phase) {
                self.binding.bind(queued[place].op, device);
            }
            let index = waiting[place];
            return Ok(Some((index, self.in_flight.lanes.take_device(device))));
        }
        Ok(None)
    }

    /// Returns what waits for devices and could begin. What measures waits for children that get ready, and would hold a device meanwhile: it begins once they are,
    /// or when nothing is compiled any more that a device could check, or when a device has waited for that long enough.
    fn ready_for_devices(&mut self) -> impl Iterator<Item = Index> {
        let is_early = self.get_ready() && self.open_compiles() > 0;
        let since = *self.prewarm.idle_since.get_or_insert_with(Instant::now);
        let are_held = is_early && since.elapsed() < PATIENCE;
        let graph = &self.session.graph;
        // What measures comes after all that does not.
        self.queue.on_device().take_while(move |index| !(are_held && times(graph.action(*index).target().phase)))
    }

    /// Counts what compiles, or is queued to.
    fn open_compiles(&self) -> usize {
        self.queue.compiles() + self.running_compiles()
    }

    fn running_compiles(&self) -> usize {
        let is_compile = |action: &Action| action.target().phase == Phase::Compile;
        self.in_flight.live().filter(|(_, running)| is_compile(&running.action)).count()
    }

    pub(super) fn are_all_analyzed(&mut self) -> bool {
        while self.unanalyzed.last().is_some_and(|index| self.schedule.settled(*index).is_some()) {
            self.unanalyzed.pop();
        }
        self.unanalyzed.is_empty()
    }

    /// Binds the op of a measurement to the device on which those of its measurements ran that stand in this build.
    fn bind_to_home(&mut self, index: Index) -> Result<(), Stop> {
        let target = self.session.graph.action(index).target().clone();
        if !measures(target.phase) || self.binding.knows(&target.op) {
            return Ok(());
        }
        let graph = &self.session.graph;
        for index in graph.of_op(&target.op) {
            let other = graph.action(*index).target();
            let Some(record) = self.schedule.settled(*index).and_then(Settled::record) else { continue };
            if !matches!(other.phase, Phase::Baseline | Phase::Bench) {
                continue;
            }
            let Some(blob) = record.outputs.get(other.phase.name()) else { continue };
            let document = self.document(blob.digest)?;
            if let Some(device) = document["device"]["uuid"].as_str().and_then(|uuid| self.in_flight.lanes.device(uuid))
            {
                self.binding.bind(&target.op, device);
            }
        }
        Ok(())
    }

    /// Counts, by op, how much work on devices is left: anew where something settled.
    pub(super) fn count_left(&mut self) -> Result<(), Stop> {
        let graph = &self.session.graph;
        let news = self.schedule.take_news();
        let op = |index: Index| graph.action(index).target().op.as_str();
        let changed: BTreeSet<&str> =
            if self.left.is_empty() { graph.indices().map(op).collect() } else { news.into_iter().map(op).collect() };
        for op in changed {
            let mut left = 0.0;
            for index in graph.of_op(op) {
                let is_open = self.wanted[index.number()] && self.schedule.settled(*index).is_none();
                if is_open && graph.action(*index).lane == Lane::Device {
                    left += self.cost(*index)?;
                }
            }
            let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX);
            self.left.insert(op.to_owned(), left);
            graph.of_op(op).iter().for_each(|index| self.queue.reorder(*index, left));
        }
        Ok(())
    }

    /// Returns how many seconds an action is likely to take: as many as last time, whatever has changed since.
    fn cost(&mut self, index: Index) -> Result<f64, Stop> {
        let action = self.session.graph.action(index);
        if let Some(record) = self.history.last(&action.identity) {
            return Ok(Duration::from_millis(record.wall_ms).as_secs_f64());
        }
        // The calibration is of no op.
        let Some(op) = self.session.spec.op(&action.target().op) else { return Ok(0.0) };
        let sizes = self.work(&op.name)?;
        Ok(order::guess(
            action.target().phase,
            &op.settings(profile(&self.session.inventory.device.class)).protocol,
            &sizes,
        ))
    }

    /// Returns what an op asks of a device at each size; nothing where its analysis does not tell.
    fn work(&mut self, op: &str) -> Result<Vec<Work>, Stop> {
        if let Some(known) = self.work.get(op) {
            return Ok(known.clone());
        }
        let analyze = self.session.graph.find(&Target::of_op(op, Phase::Analyze));
        let Some(settled) = analyze.and_then(|index| self.schedule.settled(index)) else { return Ok(Vec::new()) };
        let blob = settled.record().and_then(|record| record.outputs.get("analysis").copied());
        let analysis = blob.map(|blob| self.document(blob.digest)).transpose()?.unwrap_or_default();
        let sizes = analysis["sizes"].as_object().into_iter().flatten().map(|(_, size)| Work {
            flops: size["flops"].as_f64().unwrap_or(0.0),
            bytes: size["bytes"].as_f64().unwrap_or(0.0),
        });
        let sizes: Vec<Work> = sizes.collect();
        self.work.insert(op.to_owned(), sizes.clone());
        Ok(sizes)
    }

    /// Returns how many processes a child of the action that starts now may use: more than one if it compiles.
    pub(super) fn processes(&self, index: Index) -> usize {
        if self.session.graph.action(index).target().phase != Phase::Compile {
            return 1;
        }
        order::processes(self.settings.jobs, 1 + self.open_compiles())
    }
}
