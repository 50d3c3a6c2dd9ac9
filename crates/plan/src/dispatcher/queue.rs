//! The queue: the actions that wait for a slot of their lane, in the order in which they are taken.
//!
//! It does not know when a slot is free. Nothing here looks at all that waits: there may be a hundred thousand.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use t2t_model::action::{Lane, Phase};

use super::cost::times;
use crate::graph::Index;

/// When an action of the CPU lane is taken: what sorts first is taken first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Precedence {
    /// Whether it can wait: no device waits for what it makes at once.
    pub(super) is_late: bool,
    /// How long devices have still to do for its op: the op with the most comes first.
    pub(super) left: Reverse<Duration>,
    /// What is alike is taken in the declared order.
    pub(super) index: Index,
}

/// The actions that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    cpu: BTreeSet<Precedence>,
    whole_cpu: BTreeSet<Precedence>,
    authors: BTreeSet<Precedence>,
    away: BTreeSet<Precedence>,
    /// Checks first, since most of what is left waits for them.
    device: BTreeSet<(bool, Index)>,
    places: HashMap<Index, Queued>,
    compiles: usize,
}

/// What an action waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// A slot of this machine.
    Of(Lane),
    /// Cores that another machine lends.
    Away,
}

impl From<Lane> for Line {
    fn from(lane: Lane) -> Self {
        Self::Of(lane)
    }
}

#[derive(Debug, Clone, Copy)]
struct Queued {
    line: Line,
    precedence: Precedence,
    phase: Phase,
}

impl Queue {
    /// Adds an action.
    pub(super) fn insert(&mut self, line: Line, precedence: Precedence, phase: Phase) {
        self.remove(precedence.index);
        self.compiles += usize::from(phase == Phase::Compile);
        self.place(Queued { line, precedence, phase });
    }

    /// Removes an action, if it waits.
    pub(super) fn remove(&mut self, index: Index) {
        if let Some(place) = self.displace(index) {
            self.compiles -= usize::from(place.phase == Phase::Compile);
        }
    }

    /// Says how long devices have still to do for the op of an action, if it waits.
    pub(super) fn reorder(&mut self, index: Index, left: Duration) {
        if let Some(place) = self.displace(index) {
            self.place(Queued { precedence: Precedence { left: Reverse(left), ..place.precedence }, ..place });
        }
    }

    /// Returns the first of each kind of slot of the CPU lane, and of authors, in the order in which they are taken, with the lane that each asks for and its phase.
    pub(super) fn first_on_cpu(&self) -> Vec<(Index, Lane, Phase)> {
        let firsts = [(&self.cpu, Lane::Cpu), (&self.whole_cpu, Lane::WholeCpu), (&self.authors, Lane::Author)];
        let mut firsts: Vec<(Precedence, Lane)> =
            firsts.into_iter().filter_map(|(those, lane)| Some((*those.first()?, lane))).collect();
        firsts.sort_by_key(|(precedence, _)| *precedence);
        firsts.into_iter().map(|(first, lane)| (first.index, lane, self.places[&first.index].phase)).collect()
    }

    /// Returns what waits for devices, with its phase: checks, then what times something, each in the declared order.
    pub(super) fn on_device(&self) -> impl Iterator<Item = (Index, Phase)> {
        self.device.iter().map(|(_, index)| (*index, self.places[index].phase))
    }

    /// Returns what waits for cores that other machines lend, with its phase, in the order in which it is taken.
    pub(super) fn away(&self) -> impl Iterator<Item = (Index, Phase)> {
        self.away.iter().map(|precedence| (precedence.index, self.places[&precedence.index].phase))
    }

    /// Returns how many of those that wait compile.
    pub(super) fn compiles(&self) -> usize {
        self.compiles
    }

    fn place(&mut self, place: Queued) {
        let index = place.precedence.index;
        match place.line {
            Line::Of(Lane::Cpu) => self.cpu.insert(place.precedence),
            Line::Of(Lane::WholeCpu) => self.whole_cpu.insert(place.precedence),
            Line::Of(Lane::Author) => self.authors.insert(place.precedence),
            Line::Of(Lane::Device) => self.device.insert((times(place.phase), index)),
            Line::Away => self.away.insert(place.precedence),
        };
        self.places.insert(index, place);
    }

    fn displace(&mut self, index: Index) -> Option<Queued> {
        let place = self.places.remove(&index)?;
        match place.line {
            Line::Of(Lane::Cpu) => self.cpu.remove(&place.precedence),
            Line::Of(Lane::WholeCpu) => self.whole_cpu.remove(&place.precedence),
            Line::Of(Lane::Author) => self.authors.remove(&place.precedence),
            Line::Of(Lane::Device) => self.device.remove(&(times(place.phase), index)),
            Line::Away => self.away.remove(&place.precedence),
        };
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use t2t_model::action::{Action, Identity, Target};

    use crate::graph::Graph;

    use super::*;

    /// The places of five actions that need nothing of one another.
    fn places() -> [Index; 5] {
        let alone = |op: &str| Action {
            identity: Identity { target: Target::of_op(op, Phase::Analyze), device: None },
            lane: Lane::Cpu,
            facts: BTreeMap::new(),
            sources: BTreeMap::new(),
            generated: None,
            dependencies: Vec::new(),
            deadline: Duration::ZERO,
            judging: None,
        };
        let graph = Graph::seal(["a", "b", "c", "d", "e"].map(alone).into()).unwrap();
        graph.indices().collect::<Vec<_>>().try_into().unwrap()
    }

    fn precedence(is_late: bool, seconds: u64, index: Index) -> Precedence {
        Precedence { is_late, left: Reverse(Duration::from_secs(seconds)), index }
    }

    #[test]
    fn what_devices_wait_for_is_first_then_the_op_with_the_most_left_then_what_was_declared_first() {
        let places = places();
        let mut waiting = Queue::default();
        for (place, (is_late, seconds)) in places.iter().zip([(true, 1), (true, 9), (true, 9), (false, 0), (true, 5)]) {
            waiting.insert(Lane::Cpu.into(), precedence(is_late, seconds, *place), Phase::Analyze);
        }
        let mut order = Vec::new();
        while let Some((index, ..)) = waiting.first_on_cpu().first().copied() {
            waiting.remove(index);
            order.push(index.number());
        }
        assert_eq!(order, [3, 1, 2, 4, 0]);
    }

    #[test]
    fn what_is_left_of_an_op_may_change_while_its_actions_wait() {
        let places = places();
        let mut waiting = Queue::default();
        waiting.insert(Lane::Cpu.into(), precedence(true, 5, places[0]), Phase::Compile);
        waiting.insert(Lane::Cpu.into(), precedence(true, 3, places[1]), Phase::Compile);
        waiting.reorder(places[0], Duration::from_secs(1));
        waiting.reorder(places[4], Duration::from_secs(100));
        let firsts: Vec<(Index, Lane)> =
            waiting.first_on_cpu().into_iter().map(|(index, lane, _)| (index, lane)).collect();
        assert_eq!(firsts, [(places[1], Lane::Cpu)]);
        assert_eq!(waiting.compiles(), 2);
    }

    #[test]
    fn each_kind_of_slot_has_its_own_first() {
        let places = places();
        let mut waiting = Queue::default();
        waiting.insert(Lane::WholeCpu.into(), precedence(true, 0, places[1]), Phase::Check);
        waiting.insert(Lane::Cpu.into(), precedence(true, 0, places[2]), Phase::Compile);
        waiting.insert(Lane::Cpu.into(), precedence(true, 0, places[0]), Phase::Compile);
        let firsts: Vec<(Index, Lane)> =
            waiting.first_on_cpu().into_iter().map(|(index, lane, _)| (index, lane)).collect();
        assert_eq!(firsts, [(places[0], Lane::Cpu), (places[1], Lane::WholeCpu)]);
        waiting.remove(places[0]);
        waiting.remove(places[0]);
        assert_eq!(waiting.compiles(), 1);
    }

    #[test]
    fn devices_check_before_they_measure() {
        let places = places();
        let mut waiting = Queue::default();
        for (place, phase) in [(1, Phase::Check), (4, Phase::Bench), (0, Phase::Baseline), (3, Phase::Check)] {
            waiting.insert(Lane::Device.into(), precedence(true, 0, places[place]), phase);
        }
        let order = |waiting: &Queue| waiting.on_device().map(|(index, _)| index.number()).collect::<Vec<_>>();
        assert_eq!(order(&waiting), [1, 3, 0, 4]);
        waiting.remove(places[1]);
        assert_eq!(order(&waiting), [3, 0, 4]);
    }
}
