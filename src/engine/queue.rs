//! The queue: what runs next. Which action a free slot takes, where an op is measured, and how many processes a compile may use.
//!
//! It does not know how an action is performed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lanes::Slot;
use super::order::{self, Queued, Work, measures};
use super::{Run, Stop};
use crate::action::{Action, Lane, Phase, Target};
use crate::graph::Index;
use crate::graph::expand::profile;
use crate::schedule::Settled;

impl Run<'_, '_> {
    /// Takes a slot for a queued action, if there is one that a free slot may take.
    pub(super) fn next_queued(&mut self) -> Result<Option<(Index, Slot)>, Stop> {
        let left = if self.binding.matters() { self.left()? } else { BTreeMap::new() };
        let taken = match self.next_on_cpu(&left) {
            Some(taken) => Some(taken),
            None => self.next_on_device(&left)?,
        };
        if let Some((index, _)) = &taken {
            self.queue.remove(index);
        }
        Ok(taken)
    }

    /// What devices wait for comes first: analyses, which take no time, then the ops with the most to measure.
    fn next_on_cpu(&mut self, left: &BTreeMap<String, f64>) -> Option<(Index, Slot)> {
        let has_devices = !self.session.devices.is_empty();
        let mut order: Vec<Index> = self.queued(|lane| lane != Lane::Device);
        let key = |index: &Index| {
            let target = self.session.graph.action(*index).target();
            (has_devices && target.phase != Phase::Analyze, left.get(&target.op).copied().unwrap_or(0.0))
        };
        // The sort is stable: what is alike stays in the declared order.
        order.sort_by(|one, other| {
            let ((late, seconds), (other_late, other_seconds)) = (key(one), key(other));
            late.cmp(&other_late).then(other_seconds.total_cmp(&seconds))
        });
        let lanes = &mut self.underway.lanes;
        let graph = &self.session.graph;
        order.into_iter().find_map(|index| Some((index, lanes.take(graph.action(index).lane)?)))
    }

    fn next_on_device(&mut self, left: &BTreeMap<String, f64>) -> Result<Option<(Index, Slot)>, Stop> {
        let free = self.underway.lanes.free_devices();
        let mut waiting = self.queued(|lane| lane == Lane::Device);
        if free.is_empty() || waiting.is_empty() {
            return Ok(None);
        }
        for index in &waiting {
            self.bind_to_home(*index)?;
        }
        let analyzed = self.unsettled(|action| action.target().phase == Phase::Analyze).next().is_none();
        let target = |index: &Index| self.session.graph.action(*index).target();
        // Which op has the most to measure is known once all are analyzed, a moment after the build began.
        waiting.retain(|index| analyzed || !measures(target(index).phase) || self.binding.knows(&target(index).op));
        for device in free {
            let queued: Vec<Queued<'_>> = waiting
                .iter()
                .map(|index| {
                    let Target { op, phase, .. } = target(index);
                    Queued { op, phase: *phase, left: left.get(op).copied().unwrap_or(0.0) }
                })
                .collect();
            let Some(place) = self.binding.choose(device, &queued) else { continue };
            if measures(queued[place].phase) {
                self.binding.bind(queued[place].op, device);
            }
            let index = waiting[place];
            return Ok(Some((index, self.underway.lanes.take_device(device))));
        }
        Ok(None)
    }

    fn queued(&self, of: impl Fn(Lane) -> bool) -> Vec<Index> {
        self.queue.iter().copied().filter(|index| of(self.session.graph.action(*index).lane)).collect()
    }

    fn unsettled(&self, of: impl Fn(&Action) -> bool) -> impl Iterator<Item = Index> {
        let graph = &self.session.graph;
        let open = move |index: &Index| self.wanted[index.number()] && self.schedule.settled(*index).is_none();
        graph.indices().filter(open).filter(move |index| of(graph.action(*index)))
    }

    /// Binds the op of a measurement to the device on which those of its measurements ran that stand in this build.
    fn bind_to_home(&mut self, index: Index) -> Result<(), Stop> {
        let target = self.session.graph.action(index).target().clone();
        if !measures(target.phase) || self.binding.knows(&target.op) {
            return Ok(());
        }
        for index in self.session.graph.indices() {
            let other = self.session.graph.action(index).target();
            let Some(record) = self.schedule.settled(index).and_then(Settled::record) else { continue };
            if other.op != target.op || !matches!(other.phase, Phase::Baseline | Phase::Bench) {
                continue;
            }
            let Some(blob) = record.outputs.get(other.phase.name()) else { continue };
            let document = self.document(blob.digest)?;
            if let Some(device) = document["device"]["uuid"].as_str().and_then(|uuid| self.underway.lanes.device(uuid))
            {
                self.binding.bind(&target.op, device);
            }
        }
        Ok(())
    }

    /// Returns, by op, how many seconds of work on devices are left.
    fn left(&mut self) -> Result<BTreeMap<String, f64>, Stop> {
        let mut left: BTreeMap<String, f64> = BTreeMap::new();
        let open: Vec<Index> = self.unsettled(|action| action.lane == Lane::Device).collect();
        for index in open {
            let cost = self.cost(index)?;
            *left.entry(self.session.graph.action(index).target().op.clone()).or_default() += cost;
        }
        Ok(left)
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
        let graph = &self.session.graph;
        let open = self.pending.keys().filter(|index| graph.action(**index).target().phase == Phase::Compile).count();
        order::processes(self.settings.jobs, open)
    }
}
