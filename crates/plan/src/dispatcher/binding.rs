//! Binding: which device measures which op, and which of the queued actions a free device takes.
//!
//! It holds no queue. Ops and devices are numbers to it.

use std::collections::BTreeMap;

use t2t_model::action::Phase;

use super::cost::measures;

/// An action that is queued for a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queued {
    /// Its op.
    pub(super) op: usize,
    /// Its phase.
    pub(super) phase: Phase,
    /// What is left to do on devices for its op, in seconds.
    pub(super) left: f64,
}

/// Which device measures which op.
#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    /// Whether measurements of one op may run on several devices.
    any: bool,
    devices: usize,
    bound: BTreeMap<usize, usize>,
    /// The device that is ready for an op, which another takes only when it has nothing else to measure.
    expected: BTreeMap<usize, usize>,
}

impl Binding {
    /// Returns the binding for this many devices, no op bound. With `any`, none ever is.
    pub(super) fn new(devices: usize, any: bool) -> Self {
        Self { any, devices, bound: BTreeMap::new(), expected: BTreeMap::new() }
    }

    /// Returns whether it matters which device measures what.
    pub(super) fn matters(&self) -> bool {
        self.devices > 1
    }

    /// Returns whether the op is bound to a device, or need not be.
    pub(super) fn knows(&self, op: usize) -> bool {
        self.any || !self.matters() || self.bound.contains_key(&op)
    }

    /// Binds an op to a device, if it is not bound yet.
    pub(super) fn bind(&mut self, op: usize, device: usize) {
        if !self.any {
            self.bound.entry(op).or_insert(device);
        }
    }

    /// Binds the ops of a device to none.
    pub(super) fn release(&mut self, device: usize) {
        self.bound.retain(|_, home| *home != device);
        self.expected.retain(|_, expected| *expected != device);
    }

    /// Binds an op to none, if it is this device's.
    pub(super) fn unbind(&mut self, op: usize, device: usize) {
        self.bound.retain(|bound, home| *bound != op || *home != device);
    }

    /// Says that a device is ready for an op.
    pub(super) fn expect(&mut self, op: usize, device: usize) {
        self.expected.insert(op, device);
    }

    /// Returns the place in `queued` of the action that the free `device` takes, if there is one for it.
    ///
    /// With one device, the order of the queue is as good as any. With several, checks come first, since most of what is left waits for them;
    /// then measurements of the device's own ops; then the op with the most left becomes its own; then it helps with checks of others' ops.
    pub(super) fn choose(&self, device: usize, queued: &[Queued]) -> Option<usize> {
        if !self.matters() {
            return (!queued.is_empty()).then_some(0);
        }
        let ranked = queued.iter().enumerate().filter_map(|(place, action)| Some((self.rank(device, action)?, place)));
        let more_left = |place: usize, other: usize| queued[other].left.total_cmp(&queued[place].left);
        let first = ranked.min_by(|(rank, place), (other_rank, other)| {
            rank.cmp(other_rank).then(more_left(*place, *other)).then(place.cmp(other))
        });
        first.map(|(_, place)| place)
    }

    fn rank(&self, device: usize, action: &Queued) -> Option<u8> {
        let home = self.bound.get(&action.op);
        match (measures(action.phase), home) {
            (false, None) => Some(0),
            (false, Some(home)) if *home == device => Some(0),
            (true, _) if self.any => Some(1),
            (true, Some(home)) if *home == device => Some(1),
            (true, None) if self.expected.get(&action.op).is_none_or(|expected| *expected == device) => Some(2),
            (false, Some(_)) => Some(3),
            (true, None) => Some(4),
            (true, Some(_)) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: usize = 0;
    const MHA: usize = 1;

    #[test]
    fn one_device_takes_what_was_queued_first() {
        let queued = |op, phase, left| Queued { op, phase, left };
        let binding = Binding::new(1, false);
        let two = [queued(ADD, Phase::Bench, 1.0), queued(MHA, Phase::Check, 9.0)];
        assert_eq!(binding.choose(0, &two), Some(0));
        assert_eq!(binding.choose(0, &[]), None);
    }

    #[test]
    fn a_measurement_waits_for_the_device_of_its_op() {
        let mut binding = Binding::new(2, false);
        binding.bind(MHA, 0);
        binding.bind(MHA, 1);
        let bench = [Queued { op: MHA, phase: Phase::Bench, left: 9.0 }];
        assert_eq!((binding.choose(0, &bench), binding.choose(1, &bench)), (Some(0), None));
        let check = [Queued { op: MHA, phase: Phase::Check, left: 9.0 }];
        assert_eq!(binding.choose(1, &check), Some(0));
    }

    #[test]
    fn an_op_whose_device_is_gone_is_measured_on_another() {
        let mut binding = Binding::new(2, false);
        binding.bind(MHA, 0);
        binding.expect(ADD, 0);
        let of = |op| [Queued { op, phase: Phase::Bench, left: 9.0 }];
        assert_eq!(binding.choose(1, &of(MHA)), None);
        binding.release(0);
        assert_eq!((binding.choose(1, &of(MHA)), binding.choose(1, &of(ADD))), (Some(0), Some(0)));
    }

    #[test]
    fn a_device_that_is_ready_for_an_op_has_it_unless_the_other_would_have_nothing_to_measure() {
        let mut binding = Binding::new(2, false);
        binding.expect(MHA, 1);
        let of = |op, left| Queued { op, phase: Phase::Baseline, left };
        let both = [of(MHA, 9.0), of(ADD, 1.0)];
        assert_eq!((binding.choose(0, &both), binding.choose(1, &both)), (Some(1), Some(0)));
        assert_eq!(binding.choose(0, &both[..1]), Some(0));
    }
}
