//! Order: which of the queued actions a free device takes, and what an action is likely to cost.
//!
//! It holds no queue and no clock: the engine tells what is queued and asks.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use t2t_model::action::Phase;
use t2t_spec::Protocol;

/// An action that is queued for a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queued<'a> {
    /// Its op.
    pub(crate) op: &'a str,
    /// Its phase.
    pub(crate) phase: Phase,
    /// What is left to do on devices for its op, in seconds.
    pub(crate) left: f64,
}

/// Which device measures which op.
#[derive(Debug, Clone, Default)]
pub(crate) struct Binding {
    /// Whether measurements of one op may run on several devices.
    any: bool,
    devices: usize,
    bound: BTreeMap<String, usize>,
    /// The device that is ready for an op, which another takes only when it has nothing else to measure.
    expected: BTreeMap<String, usize>,
}

/// Returns whether a phase measures, so that its figures are compared with others of its op.
#[must_use]
pub(crate) fn measures(phase: Phase) -> bool {
    matches!(phase, Phase::Baseline | Phase::Tune | Phase::Bench)
}

/// Returns whether a phase times something, which waits for whatever else there is to do.
#[must_use]
pub(crate) fn times(phase: Phase) -> bool {
    measures(phase) || phase == Phase::Calibrate
}

impl Binding {
    /// Returns the binding for this many devices, no op bound. With `any`, none ever is.
    #[must_use]
    pub(crate) fn new(devices: usize, any: bool) -> Self {
        Self { any, devices, bound: BTreeMap::new(), expected: BTreeMap::new() }
    }

    /// Returns whether it matters which device measures what.
    #[must_use]
    pub(crate) fn matters(&self) -> bool {
        self.devices > 1
    }

    /// Returns whether the op is bound to a device, or need not be.
    #[must_use]
    pub(crate) fn knows(&self, op: &str) -> bool {
        self.any || !self.matters() || self.bound.contains_key(op)
    }

    /// Binds an op to a device, if it is not bound yet.
    pub(crate) fn bind(&mut self, op: &str, device: usize) {
        if !self.any {
            self.bound.entry(op.to_owned()).or_insert(device);
        }
    }

    /// Says that a device is ready for an op.
    pub(crate) fn expect(&mut self, op: &str, device: usize) {
        self.expected.insert(op.to_owned(), device);
    }

    /// Returns the place in `queued` of the action that the free `device` takes, if there is one for it.
    ///
    /// With one device, the order of the queue is as good as any. With several, checks come first, since most of what is left waits for them;
    /// then measurements of the device's own ops; then the op with the most left becomes its own; then it helps with checks of others' ops.
    #[must_use]
    pub(crate) fn choose(&self, device: usize, queued: &[Queued<'_>]) -> Option<usize> {
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

    fn rank(&self, device: usize, action: &Queued<'_>) -> Option<u8> {
        let home = self.bound.get(action.op);
        match (measures(action.phase), home) {
            (false, None) => Some(0),
            (false, Some(home)) if *home == device => Some(0),
            (true, _) if self.any => Some(1),
            (true, Some(home)) if *home == device => Some(1),
            (true, None) if self.expected.get(action.op).is_none_or(|expected| *expected == device) => Some(2),
            (false, Some(_)) => Some(3),
            (true, None) => Some(4),
            (true, Some(_)) => None,
        }
    }
}

/// Returns a device for each op: where it would be measured if the op with the most left always went to the device with the least to do. `left` says how much each op
/// has to measure.
#[must_use]
pub(crate) fn predicted(devices: usize, left: &[Duration]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by_key(|op| (Reverse(left[*op]), *op));
    let (mut loads, mut homes) = (vec![Duration::ZERO; devices.max(1)], vec![0; left.len()]);
    for op in order {
        let home = (0..loads.len()).min_by_key(|device| loads[*device]).unwrap_or(0);
        loads[home] += left[op];
        homes[op] = home;
    }
    homes
}

/// What one call of the op asks of a device at one size: operations, and bytes moved.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Work {
    /// Elementary results.
    pub(crate) flops: f64,
    /// Bytes.
    pub(crate) bytes: f64,
}

/// Operations and bytes that a kernel of middling quality does in a second.
const MIDDLING: Work = Work { flops: 5e12, bytes: 1e12 };

/// How often `do_bench` calls what it times beside the time that it is given: it estimates first, and a call is never cut short.
const CALLS: f64 = 6.0;

/// What an action costs beside its timing, in seconds: processes, inputs, references.
const AROUND: f64 = 3.0;

/// Returns what an action that never ran is likely to cost on a device, in seconds, from what the op asks at each size.
///
/// It need not be right: it says which op has more to measure.
#[must_use]
pub(crate) fn guess(phase: Phase, protocol: &Protocol, sizes: &[Work]) -> f64 {
    let call = |work: &Work| work.flops / MIDDLING.flops + work.bytes / MIDDLING.bytes;
    let run = Duration::from_millis(protocol.warmup_ms + protocol.rep_ms).as_secs_f64();
    let runs = f64::from(u32::try_from(protocol.runs).unwrap_or(u32::MAX));
    // A bench times the variant and torch, a baseline torch and torch.compile.
    let timed: f64 = sizes.iter().map(|size| 2.0 * runs * (run + CALLS * call(size))).sum();
    match phase {
        Phase::Bench | Phase::Baseline => AROUND + timed,
        _ => AROUND,
    }
}

/// How many processes a compile may use whatever else is compiled.
const LEAST: usize = 4;

/// Returns how many processes a compile may use on a CPU lane of `slots`, while `open` compiles are queued or run, it included.
///
/// They share the slots. It may use four even where that is more than its share: a compile that other compiles outnumber at its start is
/// often the one that is left at the end, and for a while more processes than cores cost only their own kind.
#[must_use]
pub(crate) fn processes(slots: usize, open: usize) -> usize {
    (slots / open.max(1)).max(LEAST).min(slots.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiles_share_the_slots_and_none_has_less_than_four_where_there_are_four() {
        let of = |slots| [1, 2, 5, 14, 40].map(|open| processes(slots, open));
        assert_eq!(of(14), [14, 7, 4, 4, 4]);
        assert_eq!(of(2), [2; 5]);
        assert_eq!(of(1), [1; 5]);
    }

    /// An action of the simulation: op, phase, seconds, and how many others must have ended before it.
    #[derive(Debug, Clone)]
    struct Made {
        op: usize,
        phase: Phase,
        cost: f64,
        after: Vec<usize>,
    }

    /// Makes the actions of ops with these costs: a baseline, and four variants with check, tune and bench.
    fn actions(costs: &[f64]) -> Vec<Made> {
        let mut made = Vec::new();
        for (op, cost) in costs.iter().enumerate() {
            made.push(Made { op, phase: Phase::Baseline, cost: cost * 0.2, after: Vec::new() });
            for _ in 0..4 {
                for (phase, part) in [(Phase::Check, 0.03), (Phase::Tune, 0.02), (Phase::Bench, 0.15)] {
                    let after = if phase == Phase::Check { Vec::new() } else { vec![made.len() - 1] };
                    made.push(Made { op, phase, cost: cost * part, after });
                }
            }
        }
        made
    }

    /// Runs the actions and returns how long each device was at it until the last one ended, and where each action ran.
    fn simulate(costs: &[f64], devices: usize, any: bool) -> (f64, Vec<usize>) {
        let names: Vec<String> = (0..costs.len()).map(|op| format!("op{op}")).collect();
        let made = actions(costs);
        let mut binding = Binding::new(devices, any);
        let (mut ended, mut place) = (vec![None; made.len()], vec![None; made.len()]);
        let mut running: Vec<Option<(usize, f64)>> = vec![None; devices];
        let mut now = 0.0;
        loop {
            for (device, slot) in running.iter_mut().enumerate().filter(|(_, slot)| slot.is_none()) {
                let ready: Vec<usize> = (0..made.len())
                    .filter(|at| place[*at].is_none() && made[*at].after.iter().all(|other| ended[*other].is_some()))
                    .collect();
                let left = |op| {
                    let open = made.iter().zip(&ended).filter(|(one, end)| one.op == op && end.is_none());
                    open.map(|(one, _)| one.cost).sum::<f64>()
                };
                let queued: Vec<Queued<'_>> = ready
                    .iter()
                    .map(|at| Queued { op: &names[made[*at].op], phase: made[*at].phase, left: left(made[*at].op) })
                    .collect();
                if let Some(chosen) = binding.choose(device, &queued) {
                    let at = ready[chosen];
                    if measures(made[at].phase) {
                        binding.bind(&names[made[at].op], device);
                    }
                    place[at] = Some(device);
                    *slot = Some((at, now + made[at].cost));
                }
            }
            let next = running.iter().flatten().map(|(_, end)| *end).min_by(f64::total_cmp);
            let Some(next) = next else { break };
            now = next;
            for slot in &mut running {
                if let Some((at, _)) = slot.filter(|(_, end)| *end <= now) {
                    ended[at] = Some(now);
                    *slot = None;
                }
            }
        }
        assert!(ended.iter().all(Option::is_some), "not all ran: {ended:?}");
        (now, place.into_iter().flatten().collect())
    }

    /// One op of 120 s, one of 60, four of 40, in an order that is not that of their costs.
    const COSTS: [f64; 6] = [40.0, 40.0, 120.0, 40.0, 60.0, 40.0];

    fn homes(costs: &[f64], place: &[usize]) -> Vec<usize> {
        let of = |op: usize| {
            let measured =
                actions(costs).into_iter().zip(place).filter(move |(one, _)| one.op == op && measures(one.phase));
            let mut homes: Vec<usize> = measured.map(|(_, device)| *device).collect();
            homes.sort_unstable();
            homes.dedup();
            homes.len()
        };
        (0..costs.len()).map(of).collect()
    }

    #[test]
    fn two_devices_end_within_a_tenth_of_half_the_work_and_no_op_is_measured_on_both() {
        let total: f64 = COSTS.iter().sum();
        let (wall, place) = simulate(&COSTS, 2, false);
        assert!(wall <= total / 2.0 * 1.1, "{wall} of {total}");
        assert_eq!(homes(&COSTS, &place), [1; 6]);
    }

    #[test]
    fn an_op_that_is_most_of_the_work_bounds_the_build_unless_any_device_will_do() {
        let costs = [30.0, 30.0, 300.0, 30.0];
        let (total, measured): (f64, f64) = (costs.iter().sum(), 300.0 * 0.88);
        let (bound, place) = simulate(&costs, 2, false);
        assert_eq!(homes(&costs, &place), [1; 4]);
        assert!(bound >= measured && bound <= measured * 1.15, "{bound} for {measured}");
        let (free, place) = simulate(&costs, 2, true);
        assert!(free <= total / 2.0 * 1.1, "{free} of {total}");
        assert!(homes(&costs, &place).contains(&2));
    }

    #[test]
    fn one_device_takes_what_was_declared_first() {
        let (wall, _) = simulate(&COSTS, 1, false);
        assert!((wall - COSTS.iter().sum::<f64>()).abs() < 1e-9);
        let queued = |op, phase, left| Queued { op, phase, left };
        let binding = Binding::new(1, false);
        let two = [queued("add", Phase::Bench, 1.0), queued("mha", Phase::Check, 9.0)];
        assert_eq!(binding.choose(0, &two), Some(0));
        assert_eq!(binding.choose(0, &[]), None);
    }

    #[test]
    fn a_measurement_waits_for_the_device_of_its_op() {
        let mut binding = Binding::new(2, false);
        binding.bind("mha", 0);
        binding.bind("mha", 1);
        let bench = [Queued { op: "mha", phase: Phase::Bench, left: 9.0 }];
        assert_eq!((binding.choose(0, &bench), binding.choose(1, &bench)), (Some(0), None));
        let check = [Queued { op: "mha", phase: Phase::Check, left: 9.0 }];
        assert_eq!(binding.choose(1, &check), Some(0));
    }

    #[test]
    fn a_device_that_is_ready_for_an_op_has_it_unless_the_other_would_have_nothing_to_measure() {
        let mut binding = Binding::new(2, false);
        binding.expect("mha", 1);
        let of = |op, left| Queued { op, phase: Phase::Baseline, left };
        let both = [of("mha", 9.0), of("add", 1.0)];
        assert_eq!((binding.choose(0, &both), binding.choose(1, &both)), (Some(1), Some(0)));
        assert_eq!(binding.choose(0, &both[..1]), Some(0));
    }

    #[test]
    fn ops_are_predicted_to_go_where_least_is_to_be_done_the_longest_first() {
        let seconds = |costs: &[u64]| costs.iter().map(|cost| Duration::from_secs(*cost)).collect::<Vec<_>>();
        assert_eq!(predicted(2, &seconds(&[40, 40, 120, 40, 60, 40])), [1, 1, 0, 0, 1, 1]);
        assert_eq!(predicted(1, &seconds(&[3, 4])), [0, 0]);
        assert_eq!(predicted(2, &[]), Vec::<usize>::new());
    }

    #[test]
    fn more_work_and_more_runs_are_guessed_to_cost_more() {
        let protocol = Protocol { runs: 10, warmup_ms: 25, rep_ms: 100 };
        let small = [Work { flops: 1e8, bytes: 1e8 }];
        let large = [Work { flops: 3e11, bytes: 1e8 }];
        let of = |phase, sizes: &[Work]| guess(phase, &protocol, sizes);
        assert!(of(Phase::Bench, &large) > of(Phase::Bench, &small) * 2.0);
        assert!(of(Phase::Bench, &small) > of(Phase::Check, &large));
        assert!(guess(Phase::Bench, &Protocol { runs: 20, ..protocol }, &small) > of(Phase::Bench, &small) * 1.3);
    }
}
