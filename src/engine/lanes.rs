//! Lanes: which slots are free, and which cores belong to them. The CPU lane has several slots, each device exactly one.
//!
//! It does not know what runs in a slot.

use std::collections::BTreeMap;

use t2t_host::cores::Shares;
use t2t_model::action::Lane;

/// How much children of the CPU lane give way where there are devices: what analyzes and the first compiles, for which devices wait, and the others.
const NICE: i32 = 10;
const NICER: i32 = 15;

/// How many compiles others give way to.
const FIRST: usize = 2;

/// The number of a slot that was taken, never given twice.
pub(crate) type Ticket = u64;

/// A slot that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
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

/// The slots of a build.
#[derive(Debug)]
pub(crate) struct Lanes {
    cpu_slots: usize,
    devices: Vec<String>,
    shares: Shares,
    taken: BTreeMap<Ticket, Taken>,
    next: Ticket,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Taken {
    Cpu,
    WholeCpu,
    Device(usize),
}

impl Lanes {
    /// Returns lanes with nothing in them: `cpu_slots` slots, and one slot for each of `devices`, which are UUIDs, on their cores.
    #[must_use]
    pub(crate) fn new(cpu_slots: usize, devices: Vec<String>, shares: Shares) -> Self {
        Self { cpu_slots: cpu_slots.max(1), devices, shares, taken: BTreeMap::new(), next: 0 }
    }

    /// Takes a free slot of the CPU lane, if there is one and `lane` is the CPU's.
    ///
    /// A measurement on the host waits until nothing else uses the CPU lane, and nothing else starts there while it runs. Where there are devices, children give way, and more so
    /// where two compiles or more that began `before` go on.
    pub(crate) fn take(&mut self, lane: Lane, before: usize) -> Option<Slot> {
        let taken = match lane {
            Lane::Cpu if self.has_room() => Taken::Cpu,
            Lane::WholeCpu if self.exclusive() == 0 && self.shared() == 0 => Taken::WholeCpu,
            Lane::Cpu | Lane::WholeCpu | Lane::Device => return None,
        };
        let ticket = self.give(taken);
        // What is measured on a device does not wait for what is made ready for it.
        let nice = (!self.devices.is_empty()).then_some(if before < FIRST { NICE } else { NICER });
        Some(Slot { ticket, name: "cpu".to_owned(), device: None, cores: self.shares.cpu.clone(), nice })
    }

    /// Takes the slot of a device, which must be free.
    pub(crate) fn take_device(&mut self, number: usize) -> Slot {
        debug_assert!(!self.holds(&Taken::Device(number)), "a device has one slot");
        let ticket = self.give(Taken::Device(number));
        let cores = self.shares.devices.get(number).cloned();
        Slot { ticket, name: name(number), device: Some(self.devices[number].clone()), cores, nice: None }
    }

    /// Returns the numbers of the devices that are free.
    #[must_use]
    pub(crate) fn free_devices(&self) -> Vec<usize> {
        (0..self.devices.len()).filter(|number| !self.holds(&Taken::Device(*number))).collect()
    }

    /// Returns the number of the device with this UUID.
    #[must_use]
    pub(crate) fn device(&self, uuid: &str) -> Option<usize> {
        self.devices.iter().position(|device| device == uuid)
    }

    /// Returns whether a slot of the CPU lane is free.
    #[must_use]
    pub(crate) fn has_room(&self) -> bool {
        self.exclusive() == 0 && self.shared() < self.cpu_slots
    }

    /// Frees a slot.
    pub(crate) fn free(&mut self, ticket: Ticket) {
        self.taken.remove(&ticket);
    }

    fn give(&mut self, taken: Taken) -> Ticket {
        self.next += 1;
        self.taken.insert(self.next, taken);
        self.next
    }

    fn shared(&self) -> usize {
        self.taken.values().filter(|taken| **taken == Taken::Cpu).count()
    }

    fn exclusive(&self) -> usize {
        self.taken.values().filter(|taken| **taken == Taken::WholeCpu).count()
    }

    fn holds(&self, taken: &Taken) -> bool {
        self.taken.values().any(|other| other == taken)
    }
}

/// Returns the name of a device's lane, as in `cuda:0`.
#[must_use]
pub(crate) fn name(number: usize) -> String {
    format!("cuda:{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_are_devices_children_give_way_and_more_so_beside_two_compiles() {
        let nice = |devices: &[&str], before| {
            let devices = devices.iter().map(|device| (*device).to_owned()).collect();
            Lanes::new(4, devices, Shares::default()).take(Lane::Cpu, before).unwrap().nice
        };
        assert_eq!([0, 1, 2, 13].map(|before| nice(&["GPU-0"], before)), [Some(10), Some(10), Some(15), Some(15)]);
        assert_eq!([0, 2].map(|before| nice(&[], before)), [None, None]);
    }
}
