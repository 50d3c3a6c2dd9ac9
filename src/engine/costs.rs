//! Costs: what the dispatcher is told of what earlier builds and documents say: how long actions take, and where ops are measured.
//!
//! It does not know what follows from that.

use std::time::Duration;

use t2t_model::action::{Lane, Phase, Target};
use t2t_plan::dispatcher::{Dispatcher, Event, Work, guess};
use t2t_plan::graph::Index;
use t2t_plan::graph::expand::profile;
use t2t_plan::schedule::Settled;

use super::{Run, Stop};

impl Run<'_, '_> {
    /// Tells the dispatcher what settled since it was told last, and what that says of what is to come.
    pub(super) fn tell_news(&mut self) -> Result<(), Stop> {
        let news = self.schedule.take_news();
        for index in &news {
            self.in_flight.dispatcher().handle(Event::Settled(*index));
        }
        if !self.in_flight.dispatcher().ask(Dispatcher::shares_devices) {
            return Ok(());
        }
        self.tell_costs(&news)?;
        for index in self.in_flight.dispatcher().ask(Dispatcher::unbound) {
            if let Some(device) = self.home(index)? {
                self.in_flight.dispatcher().handle(Event::Measured(index, device));
            }
        }
        Ok(())
    }

    /// Says how long actions take on devices: once of all, then again of those of ops that have been analyzed since.
    fn tell_costs(&mut self, news: &[Index]) -> Result<(), Stop> {
        let graph = &self.session.graph;
        let analyzed = |index: &&Index| graph.action(**index).target().phase == Phase::Analyze;
        let of_op = |index: &Index| graph.of_op(&graph.action(*index).target().op).to_vec();
        let are_told = std::mem::replace(&mut self.are_costs_told, true);
        let told: Vec<Index> =
            if are_told { news.iter().filter(analyzed).flat_map(of_op).collect() } else { graph.indices().collect() };
        for index in told {
            let is_open = self.wanted[index.number()] && self.schedule.settled(index).is_none();
            // Later attempts are most often not made.
            if is_open && graph.action(index).target().attempt == 1 && graph.action(index).lane == Lane::Device {
                let cost = self.cost(index)?;
                self.in_flight.dispatcher().handle(Event::Costs(index, cost));
            }
        }
        Ok(())
    }

    /// Returns the device on which those measurements of an action's op ran that stand in this build.
    fn home(&self, index: Index) -> Result<Option<usize>, Stop> {
        let graph = &self.session.graph;
        for index in graph.of_op(&graph.action(index).target().op) {
            let phase = graph.action(*index).target().phase;
            let Some(record) = self.schedule.settled(*index).and_then(Settled::record) else { continue };
            if !matches!(phase, Phase::Baseline | Phase::Bench) {
                continue;
            }
            let Some(blob) = record.outputs.get(phase.name()) else { continue };
            let document = self.document(blob.digest)?;
            let device = document["device"]["uuid"].as_str().and_then(|uuid| self.in_flight.device(uuid));
            if device.is_some() {
                return Ok(device);
            }
        }
        Ok(None)
    }

    /// Returns how long an action is likely to take: as long as last time, whatever has changed since.
    fn cost(&mut self, index: Index) -> Result<Duration, Stop> {
        let action = self.session.graph.action(index);
        if let Some(record) = self.history.last(&action.identity) {
            return Ok(Duration::from_millis(record.wall_ms));
        }
        // The calibration is of no op.
        let Some(op) = self.session.spec.op(&action.target().op) else { return Ok(Duration::ZERO) };
        let sizes = self.work(&op.name)?;
        let settings = op.settings(profile(&self.session.inventory.device.class));
        Ok(guess(action.target().phase, &settings.protocol, &sizes))
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
}
