//! Away: actions that nodes of a cluster perform. They are sent as bundles, and what comes back is kept if it is the result of the same key; what is lost runs again elsewhere.
//!
//! It does not know what a cluster is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use t2t_model::action::Lane;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_model::path::RepoPath;
use t2t_model::record::{Record, Seen};
use t2t_plan::dispatcher::{Event as Told, Place, Start, Ticket};
use t2t_plan::graph::Index;
use t2t_plan::schedule::{Settled, seen_by};
use t2t_store::fs;
use t2t_store::store::archive;

use super::bundle::{NoBundle, Subject, bundle};
use super::in_flight::{self, Running, Starting};
use super::nodes::{Away, Nodes, Seat, SeatKind, Sent, name_of};
use super::noise::Noise;
use super::perform::Performed;
use super::{Run, Stop};

/// How often an action that a node lost runs again.
const AGAIN: u32 = 2;

/// How often an action is sent again because it turned out to read a file that was not sent.
const FILES: u32 = 4;

/// Which actions were sent how often, and which seats are not to be had any more.
#[derive(Debug, Default)]
pub(super) struct Journeys {
    lost: BTreeMap<Index, u32>,
    /// How often one that was lost ran again, in this build.
    pub(super) again: usize,
    lacked: BTreeMap<Index, u32>,
    withdrawn: BTreeSet<usize>,
    /// The seats of nodes that lost an action.
    barred: BTreeSet<(Index, usize)>,
    pub(super) noise: Noise,
}

impl Run<'_, '_> {
    fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.settings.nodes.as_ref()
    }

    /// Says that an action is to run: on its own lane, or on what a node lends.
    pub(super) fn enqueue(&mut self, index: Index) {
        let action = self.session.graph.action(index);
        let phase = action.target().phase;
        let event = match self.taken_by(index) {
            Some(SeatKind::Cores) => Told::ReadyAway { index, phase },
            Some(SeatKind::Device) => Told::Ready { index, lane: Lane::Device, phase },
            None => Told::Ready { index, lane: action.lane, phase },
        };
        self.in_flight.dispatcher().handle(event);
    }

    /// Returns whether nodes perform an action.
    pub(super) fn goes_away(&self, index: Index) -> bool {
        self.taken_by(index).is_some()
    }

    /// Returns what of a node an action takes.
    fn taken_by(&self, index: Index) -> Option<SeatKind> {
        self.nodes()?.taken_by(&self.session.graph.action(index).identity)
    }

    /// Sends an action to the node whose seat it was given, if nodes perform it. Returns whether they do.
    pub(super) fn send(&mut self, start: &Start) -> Result<bool, Stop> {
        let (Some(nodes), Place::Device(number)) = (self.nodes().cloned(), start.slot.place) else { return Ok(false) };
        let (index, slot) = (start.index, self.in_flight.slot(start.slot));
        let ticket = slot.ticket;
        let sent = match self.bundled(index, &nodes, ticket) {
            Ok((bundle, blobs)) => {
                let Seat { node, kind, .. } = nodes.seats[number].clone();
                Sent { node, kind, bundle, blobs }
            }
            // What is not kept any more, or came without it as published compiles do, is made again here.
            Err(NoBundle::Blob(error)) => {
                self.in_flight.dispatcher().handle(Told::Ended(ticket));
                return Err(self.lost(&error));
            }
            Err(NoBundle::Changed(path)) if self.control.is_controlled() => {
                self.in_flight.dispatcher().handle(Told::Ended(ticket));
                return Err(Stop::Outdated(path.to_string()));
            }
            Err(error) => {
                self.in_flight.dispatcher().handle(Told::Ended(ticket));
                self.has_withheld = true;
                self.commit(index, &Performed::lost(error.to_string()))?;
                return Ok(true);
            }
        };
        let pending = self.pending.get_mut(&index).expect("what is queued is pending");
        pending.lane.clone_from(&slot.name);
        let (manifest, why) = (pending.manifest.clone(), pending.why.clone());
        self.tell_started(index);
        let interrupt = self.interrupt.clone();
        let starting = Starting { slot, manifest, why, index, pool: &self.session.pool };
        self.in_flight.start(self.schedule.action(index), starting, move |_, cancel| {
            let begun = Instant::now();
            let away = nodes.perform(&sent, || interrupt.is_set() || cancel.is_set());
            Performed { away: Some(away), wall: begun.elapsed(), ..Performed::default() }
        });
        Ok(true)
    }

    /// Returns the text of the bundle of an action, and where the bytes lie that it names.
    fn bundled(
        &self,
        index: Index,
        nodes: &Nodes,
        ticket: Ticket,
    ) -> Result<(String, BTreeMap<Digest, PathBuf>), NoBundle> {
        let subject = Subject {
            session: self.session,
            index,
            action: self.schedule.action(index),
            manifest: &self.pending[&index].manifest,
            settled: &|index| self.schedule.settled(index),
            history: self.history,
            architectures: nodes.architectures.clone(),
        };
        let bundled = bundle(&subject, self.cas)?;
        let folder = in_flight::folder(&self.scratch, ticket);
        let blobs = bundled.places(self.session, self.cas, &folder)?;
        Ok((bundled.bundle.write(), blobs))
    }

    /// Takes what came of an action from a node.
    pub(super) fn take_away(&mut self, running: &Running, performed: &Performed, away: &Away) -> Result<(), Stop> {
        let Some(index) = running.index else { return self.keep_undecided(running, performed, away) };
        match away {
            Away::Result(file, calibration) => match self.brought(running, file) {
                Ok(record) => {
                    self.keep_brought(index, record, (performed, &running.lane))?;
                    self.hear_calibration(name_of(&running.lane), calibration.as_deref());
                    Ok(())
                }
                Err(reason) => self.lost_away(index, &running.lane, &reason),
            },
            Away::Unfit(why) => {
                self.withdraw_node(&running.lane, &why.join("; "));
                self.tell_again(index, &running.lane, "the node does not fit", false);
                self.queue_again(index, "no node fits")
            }
            Away::Lost(reason) => self.lost_away(index, &running.lane, reason),
        }
    }

    /// Keeps what came of an action whose dependencies have not settled in this build, as of one that ran here: it stands if they end as they did.
    fn keep_undecided(&mut self, running: &Running, performed: &Performed, away: &Away) -> Result<(), Stop> {
        let Away::Result(file, _) = away else { return Ok(()) };
        let Ok(record) = self.brought(running, file) else { return Ok(()) };
        self.journal.add(&record)?;
        self.history.add(record.clone());
        self.share(&record);
        self.tell_committed(&running.action, running.lane.clone(), &record, performed)
    }

    /// Returns the one result that came in `file`, its blobs in the store. Fails where it is not that of the action.
    fn brought(&self, running: &Running, file: &Path) -> Result<Record, String> {
        let stage = self.scratch.join("brought");
        let opened = fs::open_if_there(file).map_err(|error| error.to_string())?;
        let mut opened = opened.ok_or("its result is gone")?;
        let records =
            archive::bring(&mut opened, &self.session.cache, &stage).map_err(|refused| refused.to_string())?;
        let _ = fs::remove(file);
        let (identity, key) = (&running.action.identity, running.manifest.key());
        let is_it = |record: &Record| {
            let is_alike = record.identity.target == identity.target.of_attempt(1);
            record.key == key && is_alike && record.identity.device == identity.device
        };
        let mut own = records.into_iter().filter(is_it).map(|record| Record { identity: identity.clone(), ..record });
        own.next().ok_or_else(|| "what came back is the result of another key".to_owned())
    }

    /// Keeps a result that came, unless the action read files there that are others here: then it is sent again with those.
    fn keep_brought(
        &mut self,
        index: Index,
        record: Record,
        (performed, lane): (&Performed, &str),
    ) -> Result<(), Stop> {
        if let Some(path) = self.read_otherwise(index, &record) {
            let times = self.journeys.lacked.entry(index).or_default();
            *times += 1;
            if *times > FILES {
                return self.commit(index, &Performed::lost(format!("`{path}` is another file on the nodes")));
            }
            self.history.learn(record);
            self.tell_again(index, lane, &format!("it looked for `{path}`, which was not sent"), false);
            return self.queue_again(index, "no node is left");
        }
        let action = self.schedule.action(index).clone();
        let lane = self.pending.remove(&index).expect("what ran was pending").lane;
        self.journal.add(&record)?;
        self.history.add(record.clone());
        self.share(&record);
        self.tell_disturbed(&action, &lane, &record)?;
        self.tell_committed(&action, lane, &record, performed)?;
        self.schedule.finish(index, Settled::Ran(Arc::new(record)));
        Ok(())
    }

    /// Returns a file that the action read elsewhere, and that is not the same here.
    fn read_otherwise(&self, index: Index, record: &Record) -> Option<RepoPath> {
        let (action, sources) = (self.schedule.action(index), &self.session.sources);
        let tree = |path: &RepoPath, like: Seen| sources.seen(path, like);
        let is_other = |(path, seen): &(&RepoPath, &Seen)| seen_by(action, path, **seen, &tree) != **seen;
        record.discovered.iter().find(is_other).map(|(path, _)| path.clone())
    }

    /// Has an action that was lost run on another node, unless it was lost too often or there is none.
    fn lost_away(&mut self, index: Index, lane: &str, reason: &str) -> Result<(), Stop> {
        self.withdraw_gone();
        let is_elsewhere = self.bar(index, lane);
        let times = self.journeys.lost.entry(index).or_default();
        *times += 1;
        if *times > AGAIN || self.interrupt.is_set() || !is_elsewhere {
            return self.commit(index, &Performed::lost(format!("on {lane}: {reason}")));
        }
        self.journeys.again += 1;
        self.tell_again(index, lane, reason, true);
        self.queue_again(index, reason)
    }

    /// Says that what ran on a lane runs again.
    fn tell_again(&mut self, index: Index, lane: &str, reason: &str, was_lost: bool) {
        let target = self.session.graph.action(index).target().clone();
        let (lane, reason) = (lane.to_owned(), reason.to_owned());
        (self.emit)(Event::ActionAgain { target, lane, reason, was_lost });
    }

    /// Keeps an action from the node of a lane. Returns whether another one is left for it.
    fn bar(&mut self, index: Index, lane: &str) -> bool {
        let Some(nodes) = self.nodes().cloned() else { return false };
        let node = nodes.seats.iter().find(|seat| seat.lane == lane).map(|seat| seat.node.as_str());
        for (number, _) in nodes.seats.iter().enumerate().filter(|(_, seat)| Some(seat.node.as_str()) == node) {
            self.journeys.barred.insert((index, number));
            self.in_flight.dispatcher().handle(Told::Barred(index, number));
        }
        self.has_seat(index)
    }

    /// Returns whether there is a seat on which an action may begin.
    fn has_seat(&self, index: Index) -> bool {
        let Journeys { withdrawn, barred, .. } = &self.journeys;
        let (Some(nodes), Some(kind)) = (self.nodes(), self.taken_by(index)) else { return false };
        let mut seats = nodes.seats.iter().enumerate().filter(|(_, seat)| seat.kind == kind);
        seats.any(|(number, _)| !withdrawn.contains(&number) && !barred.contains(&(index, number)))
    }

    /// Queues an action that was sent before. Where no seat is left for it it is lost for this reason.
    fn queue_again(&mut self, index: Index, reason: &str) -> Result<(), Stop> {
        if !self.has_seat(index) {
            return self.commit(index, &Performed::lost(self.none_left(reason)));
        }
        self.enqueue(index);
        Ok(())
    }

    fn none_left(&self, reason: &str) -> String {
        let fault = self.nodes().and_then(|nodes| nodes.cluster.fault());
        format!("no node of the cluster is left: {}", fault.as_deref().unwrap_or(reason))
    }

    /// Uses the node of a lane no more, and says why, once.
    fn withdraw_node(&mut self, lane: &str, why: &str) {
        let Some(nodes) = self.nodes().cloned() else { return };
        let Some(node) = nodes.seats.iter().find(|seat| seat.lane == lane).map(|seat| seat.node.clone()) else {
            return;
        };
        if self.withdraw_where(&nodes, |seat_of| seat_of == node) {
            let name = name_of(lane);
            (self.emit)(Event::Warning { text: format!("node {name} is not used: {why}") });
        }
    }

    /// Uses nodes that are not alive no more.
    fn withdraw_gone(&mut self) {
        let Some(nodes) = self.nodes().cloned() else { return };
        let alive = nodes.alive();
        self.withdraw_where(&nodes, |node| !alive.contains(node));
    }

    /// Returns whether a seat was withdrawn that was not before.
    fn withdraw_where(&mut self, nodes: &Nodes, is_gone: impl Fn(&str) -> bool) -> bool {
        let gone = nodes.seats.iter().enumerate().filter(|(_, seat)| is_gone(&seat.node)).map(|(number, _)| number);
        let new: Vec<usize> = gone.filter(|number| self.journeys.withdrawn.insert(*number)).collect();
        for number in &new {
            self.in_flight.dispatcher().handle(Told::Withdrawn(*number));
        }
        !new.is_empty()
    }

    /// Looks which nodes are alive. What waits for one and finds none left is lost.
    pub(super) fn look_at_nodes(&mut self) -> Result<(), Stop> {
        if self.nodes().is_none() {
            return Ok(());
        }
        self.withdraw_gone();
        let are_all_there = self.journeys.barred.is_empty() && self.journeys.withdrawn.is_empty();
        if are_all_there {
            return Ok(());
        }
        let runs: BTreeSet<Index> = self.in_flight.live().filter_map(|(_, running)| running.index).collect();
        let waits = self
            .pending
            .keys()
            .copied()
            .filter(|index| self.goes_away(*index) && !runs.contains(index) && !self.has_seat(*index));
        let mut waiting: Vec<Index> = waits.collect();
        waiting.sort();
        for index in waiting {
            self.has_withheld = true;
            self.commit(index, &Performed::lost(self.none_left("what they lent is gone")))?;
        }
        Ok(())
    }
}
