//! Cost: what an action is likely to take of a device, where ops are likely to be measured, and how many processes a compile may use.
//!
//! It does not know what is queued, nor what earlier builds took.

use std::cmp::Reverse;
use std::time::Duration;

use t2t_model::action::Phase;
use t2t_spec::{Protocol, StopRule};

/// Returns whether a phase measures, so that its figures are compared with others of its op.
#[must_use]
pub fn measures(phase: Phase) -> bool {
    matches!(phase, Phase::Baseline | Phase::Tune | Phase::Bench)
}

/// Returns whether a phase times something, which waits for whatever else there is to do.
#[must_use]
pub(super) fn times(phase: Phase) -> bool {
    measures(phase) || phase == Phase::Calibrate
}

/// What one call of the op asks of a device at one size: operations, and bytes moved.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// Elementary results.
    pub flops: f64,
    /// Bytes.
    pub bytes: f64,
}

/// Operations and bytes that a kernel of middling quality does in a second.
const MIDDLING: Work = Work { flops: 5e12, bytes: 1e12 };

/// How often `do_bench` calls what it times beside the time that it is given: it estimates first, and a call is never cut short.
const CALLS: f64 = 6.0;

/// The share of all runs that is made where measuring ends as soon as enough is known.
const SHORTENED: f64 = 0.2;

/// What an action costs beside its timing, in seconds: processes, inputs, references.
const AROUND: f64 = 3.0;

/// No action is taken to cost more: about thirty years, so that a sum of them is still a time.
const MOST: Duration = Duration::from_secs(1_000_000_000);

/// Returns what an action that never ran is likely to cost on a device, from what the op asks at each size.
///
/// It need not be right: it says which op has more to measure.
#[must_use]
pub fn guess(phase: Phase, protocol: &Protocol, sizes: &[Work]) -> Duration {
    let call = |work: &Work| work.flops / MIDDLING.flops + work.bytes / MIDDLING.bytes;
    let run = Duration::from_millis(protocol.warmup_ms + protocol.rep_ms).as_secs_f64();
    let runs = f64::from(u32::try_from(protocol.runs).unwrap_or(u32::MAX));
    let runs = protocol.stop.map_or(runs, |StopRule::Auto| runs * SHORTENED);
    // A bench times the variant and torch, a baseline torch and torch.compile.
    let timed: f64 = sizes.iter().map(|size| 2.0 * runs * (run + CALLS * call(size))).sum();
    let seconds = match phase {
        Phase::Bench | Phase::Baseline => AROUND + timed,
        _ => AROUND,
    };
    Duration::try_from_secs_f64(seconds).unwrap_or(MOST).min(MOST)
}

/// Returns a device for each op: where it would be measured if the op with the most left always went to the device with the least to do. `left` says how much each op
/// has to measure.
#[must_use]
pub(super) fn predicted(devices: usize, left: &[Duration]) -> Vec<usize> {
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

/// How many processes a compile may use whatever else is compiled.
const LEAST: usize = 4;

/// Returns how many processes a compile may use on a CPU lane of `slots`, while `open` compiles are queued or run, it included.
///
/// They share the slots. It may use four even where that is more than its share: a compile that other compiles outnumber at its start is
/// often the one that is left at the end, and for a while more processes than cores cost only their own kind.
#[must_use]
pub(super) fn processes(slots: usize, open: usize) -> usize {
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

    #[test]
    fn ops_are_predicted_to_go_where_least_is_to_be_done_the_longest_first() {
        let seconds = |costs: &[u64]| costs.iter().map(|cost| Duration::from_secs(*cost)).collect::<Vec<_>>();
        assert_eq!(predicted(2, &seconds(&[40, 40, 120, 40, 60, 40])), [1, 1, 0, 0, 1, 1]);
        assert_eq!(predicted(1, &seconds(&[3, 4])), [0, 0]);
        assert_eq!(predicted(2, &[]), Vec::<usize>::new());
    }

    #[test]
    fn more_work_and_more_runs_are_guessed_to_cost_more_and_nothing_costs_for_ever() {
        let protocol = Protocol { runs: 10, warmup_ms: 25, rep_ms: 100, stop: None, passes: None };
        let small = [Work { flops: 1e8, bytes: 1e8 }];
        let large = [Work { flops: 3e11, bytes: 1e8 }];
        let of = |phase, sizes: &[Work]| guess(phase, &protocol, sizes);
        assert!(of(Phase::Bench, &large) > of(Phase::Bench, &small) * 2);
        assert!(of(Phase::Bench, &small) > of(Phase::Check, &large));
        let more_runs = guess(Phase::Bench, &Protocol { runs: 20, ..protocol }, &small);
        assert!(more_runs * 10 > of(Phase::Bench, &small) * 13);
        let ended = guess(Phase::Bench, &Protocol { stop: Some(StopRule::Auto), ..protocol }, &small);
        assert!(ended * 4 < of(Phase::Bench, &small) * 3);
        assert_eq!(of(Phase::Bench, &[Work { flops: 1e300, bytes: 0.0 }]), MOST);
    }
}
