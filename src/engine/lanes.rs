//! Lanes: which slots are free. The CPU lane has several, each device exactly one.
//!
//! It does not know what runs in a slot.

use std::collections::HashMap;

use crate::action::Lane;
use crate::graph::Index;

/// A slot that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The lane's name, for people.
    pub name: String,
    /// The device's UUID, for a device's slot.
    pub device: Option<String>,
}

/// The slots of a build.
#[derive(Debug)]
pub struct Lanes {
    cpu_slots: usize,
    devices: Vec<String>,
    taken: HashMap<Index, Taken>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Taken {
    Cpu,
    WholeCpu,
    Device(usize),
}

impl Lanes {
    /// Returns lanes with nothing in them: `cpu_slots` slots, and one slot for each of `devices`, which are UUIDs.
    #[must_use]
    pub fn new(cpu_slots: usize, devices: Vec<String>) -> Self {
        Self { cpu_slots: cpu_slots.max(1), devices, taken: HashMap::new() }
    }

    /// Takes a free slot of `lane` for the action at `index`, if there is one.
    ///
    /// A measurement on the host waits until nothing else uses the CPU lane, and nothing else starts there while it runs.
    pub fn take(&mut self, index: Index, lane: Lane) -> Option<Slot> {
        let (taken, slot) = match lane {
            Lane::Cpu if self.exclusive() == 0 && self.shared() < self.cpu_slots => (Taken::Cpu, slot("cpu", None)),
            Lane::WholeCpu if self.exclusive() == 0 && self.shared() == 0 => (Taken::WholeCpu, slot("cpu", None)),
            Lane::Device => {
                let number = (0..self.devices.len()).find(|number| !self.holds(&Taken::Device(*number)))?;
                (Taken::Device(number), slot(&format!("cuda:{number}"), Some(self.devices[number].clone())))
            }
            Lane::Cpu | Lane::WholeCpu => return None,
        };
        self.taken.insert(index, taken);
        Some(slot)
    }

    /// Frees the slot of the action at `index`.
    pub fn free(&mut self, index: Index) {
        self.taken.remove(&index);
    }

    /// Returns whether no slot is taken.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.taken.is_empty()
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

fn slot(name: &str, device: Option<String>) -> Slot {
    Slot { name: name.to_owned(), device }
}
