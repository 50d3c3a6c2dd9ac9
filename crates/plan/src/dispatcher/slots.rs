//! Slots: which are free, and what has the others. The CPU lane and that of authors have several, each device exactly one.
//!
//! It does not know cores, nor devices by more than their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use t2t_model::action::{Lane, Phase};

/// How much children of the CPU lane give way where there are devices: what analyzes and the first compiles, for which devices wait, and the others.
const NICE: i32 = 10;
const NICER: i32 = 15;

/// How many compiles others give way to.
const FIRST: usize = 2;

/// The number of a slot that was taken, never given twice.
pub type Ticket = u64;

/// Where a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On the CPU lane: one slot, or all of them.
    Cpu,
    /// On the device of this number; after those of the devices come the numbers of places on cores that other machines lend.
    Device(usize),
    /// On the lane of authors.
    Author,
}

/// A slot that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its number, which frees it.
    pub ticket: Ticket,
    /// Where it is.
    pub place: Place,
    /// How much children in it give way to others.
    pub nice: Option<i32>,
}

/// The slots of a machine. They outlive builds.
#[derive(Debug)]
pub(super) struct Slots {
    cpu: usize,
    devices: usize,
    /// Places on cores that other machines lend.
    lent: usize,
    authors: usize,
    taken: BTreeMap<Ticket, Taken>,
    /// The devices that are not to be had any more.
    withdrawn: BTreeSet<usize>,
    next: Ticket,
}

#[derive(Debug)]
struct Taken {
    what: What,
    phase: Phase,
    is_cancelled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Cpu,
    WholeCpu,
    Device(usize),
    Author,
}

impl Slots {
    /// Returns so many slots of the CPU lane, at least one, one of each device, and one of authors, none taken.
    pub(super) fn new(cpu: usize, devices: usize) -> Self {
        let (taken, withdrawn) = (BTreeMap::new(), BTreeSet::new());
        Self { cpu: cpu.max(1), devices, lent: 0, authors: 1, taken, withdrawn, next: 0 }
    }

    /// Adds so many places on cores that other machines lend.
    pub(super) fn lent(self, cores: usize) -> Self {
        Self { lent: cores, ..self }
    }

    /// Says how many authors may work at once, at least one.
    pub(super) fn set_authors(&mut self, authors: usize) {
        self.authors = authors.max(1);
    }

    pub(super) fn devices(&self) -> usize {
        self.devices
    }

    pub(super) fn on_cpu(&self) -> usize {
        self.cpu
    }

    /// Takes a free slot of the CPU lane or of authors, if there is one and `lane` is theirs.
    ///
    /// A measurement on the host waits until nothing else uses the CPU lane, and nothing else starts there while it runs. Where there are devices, children give way, and more so
    /// where two compiles or more that began before go on. Where there is none, compiles alone give way.
    pub(super) fn take(&mut self, lane: Lane, phase: Phase) -> Option<Slot> {
        let what = match lane {
            Lane::Cpu if self.has_room() => What::Cpu,
            Lane::WholeCpu if self.exclusive() == 0 && self.shared() == 0 => What::WholeCpu,
            Lane::Author if self.count(What::Author) < self.authors => {
                return Some(Slot { ticket: self.give(What::Author, phase), place: Place::Author, nice: None });
            }
            Lane::Cpu | Lane::WholeCpu | Lane::Device | Lane::Author => return None,
        };
        let nice = match (self.devices, phase) {
            // After a save people wait for the check's verdict, which does not need the compile that begins with it.
            (0, Phase::Compile) => Some(NICE),
            (0, _) => None,
            // What is measured on a device does not wait for what is made ready for it.
            _ => Some(if self.compiles() < FIRST { NICE } else { NICER }),
        };
        Some(Slot { ticket: self.give(what, phase), place: Place::Cpu, nice })
    }

    /// Takes the slot of a device, which must be free.
    pub(super) fn take_device(&mut self, number: usize, phase: Phase) -> Slot {
        debug_assert!(!self.holds(What::Device(number)), "a device has one slot");
        Slot { ticket: self.give(What::Device(number), phase), place: Place::Device(number), nice: None }
    }

    /// Returns the numbers of the devices that are free.
    pub(super) fn free_devices(&self) -> Vec<usize> {
        self.free_of(0..self.devices)
    }

    /// Returns the numbers of the lent places that are free.
    pub(super) fn free_lent(&self) -> Vec<usize> {
        self.free_of(self.devices..self.devices + self.lent)
    }

    fn free_of(&self, numbers: Range<usize>) -> Vec<usize> {
        let is_free = |number: &usize| !self.withdrawn.contains(number) && !self.holds(What::Device(*number));
        numbers.filter(is_free).collect()
    }

    /// Gives out a device, or a lent place, no more.
    pub(super) fn withdraw(&mut self, device: usize) {
        self.withdrawn.insert(device);
    }

    /// Returns whether a slot of the CPU lane is free.
    pub(super) fn has_room(&self) -> bool {
        self.exclusive() == 0 && self.shared() < self.cpu
    }

    /// Counts what compiles, and was not cancelled.
    pub(super) fn compiles(&self) -> usize {
        self.taken.values().filter(|taken| taken.phase == Phase::Compile && !taken.is_cancelled).count()
    }

    /// Notes that what has a slot was cancelled. It has it until its child is gone.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        if let Some(taken) = self.taken.get_mut(&ticket) {
            taken.is_cancelled = true;
        }
    }

    /// Frees a slot.
    pub(super) fn free(&mut self, ticket: Ticket) {
        self.taken.remove(&ticket);
    }

    /// Frees all slots but those.
    pub(super) fn keep(&mut self, tickets: &[Ticket]) {
        self.taken.retain(|ticket, _| tickets.contains(ticket));
    }

    fn give(&mut self, what: What, phase: Phase) -> Ticket {
        self.next += 1;
        self.taken.insert(self.next, Taken { what, phase, is_cancelled: false });
        self.next
    }

    fn shared(&self) -> usize {
        self.count(What::Cpu)
    }

    fn exclusive(&self) -> usize {
        self.count(What::WholeCpu)
    }

    fn count(&self, what: What) -> usize {
        self.taken.values().filter(|taken| taken.what == what).count()
    }

    fn holds(&self, what: What) -> bool {
        self.taken.values().any(|other| other.what == what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_are_devices_children_give_way_and_more_so_beside_two_compiles() {
        let nice = |devices, before| {
            let mut slots = Slots::new(20, devices);
            let compile = |slots: &mut Slots| slots.take(Lane::Cpu, Phase::Compile).unwrap();
            let cancelled = compile(&mut slots);
            slots.cancel(cancelled.ticket);
            (0..before).for_each(|_| _ = compile(&mut slots));
            slots.take(Lane::Cpu, Phase::Analyze).unwrap().nice
        };
        assert_eq!([0, 1, 2, 13].map(|before| nice(1, before)), [Some(10), Some(10), Some(15), Some(15)]);
        assert_eq!([0, 2].map(|before| nice(0, before)), [None, None]);
    }

    #[test]
    fn where_there_is_no_device_compiles_give_way_to_checks() {
        let nice = |phase| Slots::new(2, 0).take(Lane::Cpu, phase).unwrap().nice;
        assert_eq!([Phase::Compile, Phase::Check].map(nice), [Some(NICE), None]);
    }

    #[test]
    fn authors_have_slots_of_their_own_beside_a_measurement_on_the_host() {
        let mut slots = Slots::new(1, 0);
        slots.set_authors(2);
        let whole = slots.take(Lane::WholeCpu, Phase::Bench).unwrap();
        let first = slots.take(Lane::Author, Phase::Generate).unwrap();
        assert_eq!((whole.place, first.place), (Place::Cpu, Place::Author));
        assert!(slots.take(Lane::Author, Phase::Generate).is_some());
        assert_eq!(slots.take(Lane::Author, Phase::Generate), None);
        slots.free(first.ticket);
        assert!(slots.take(Lane::Author, Phase::Generate).is_some());
    }

    #[test]
    fn a_device_that_was_withdrawn_is_given_to_nothing_more() {
        let mut slots = Slots::new(1, 2);
        let first = slots.take_device(0, Phase::Check);
        slots.withdraw(0);
        slots.free(first.ticket);
        assert_eq!(slots.free_devices(), [1]);
        slots.withdraw(1);
        assert!(slots.free_devices().is_empty());
    }

    #[test]
    fn lent_places_have_the_numbers_after_those_of_devices_and_are_none() {
        let mut slots = Slots::new(1, 2).lent(2);
        assert_eq!((slots.devices(), slots.free_devices(), slots.free_lent()), (2, vec![0, 1], vec![2, 3]));
        let first = slots.take_device(2, Phase::Compile);
        slots.withdraw(3);
        assert_eq!((slots.free_devices(), slots.free_lent()), (vec![0, 1], vec![]));
        slots.free(first.ticket);
        assert_eq!(slots.free_lent(), [2]);
    }

    #[test]
    fn what_has_the_whole_cpu_lane_shares_it_with_nothing() {
        let mut slots = Slots::new(2, 0);
        let first = slots.take(Lane::Cpu, Phase::Compile).unwrap();
        assert_eq!(slots.take(Lane::WholeCpu, Phase::Bench), None);
        slots.free(first.ticket);
        let whole = slots.take(Lane::WholeCpu, Phase::Bench).unwrap();
        assert_eq!((slots.take(Lane::Cpu, Phase::Check), slots.has_room()), (None, false));
        slots.keep(&[]);
        assert!(slots.take(Lane::Cpu, Phase::Check).unwrap().ticket > whole.ticket, "no ticket is given twice");
    }
}
