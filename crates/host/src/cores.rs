//! Cores: which ones this process may use, how a build with devices shares them, and how it keeps off those of devices.
//!
//! It also owns the machine's monotonic clock. It does not know what runs on a core.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use t2t_store::fs;

/// How many cores a device gets where there are enough.
const PER_DEVICE: usize = 2;

/// Where the kernel tells which threads share a core.
const TOPOLOGY: &str = "/sys/devices/system/cpu";

/// Where the kernel lists processes and their threads.
const PROCESSES: &str = "/proc";

/// The cores that this process may use, before it keeps off any.
static USABLE: LazyLock<Vec<usize>> = LazyLock::new(usable_now);

/// How many of them it may keep busy at once, likewise. A control group can allow fewer.
static ALLOWED: LazyLock<usize> = LazyLock::new(|| available_parallelism().map_or(1, usize::from));

/// How the cores of a build are shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shares {
    /// How many cores are left to the CPU lane, at least one.
    pub left: usize,
    /// How many cores a child of a device lane may count on.
    pub per_device: usize,
    /// The cores of the CPU lane. None if children are not bound to cores.
    pub cpu: Option<Vec<usize>>,
    /// The cores of each device. Empty if children are not bound to cores.
    pub devices: Vec<Vec<usize>>,
}

/// Returns the cores that this process may use, with those of one physical core side by side. They include the cores that it has moved off since.
#[must_use]
pub fn usable() -> &'static [usize] {
    &USABLE
}

fn usable_now() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    let cores = (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false));
    let mut siblings: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for core in cores {
        // Sorted by physical core: a device that gets two neighbors has one whole physical core to itself.
        siblings.insert((first_sibling(Path::new(TOPOLOGY), core), core), core);
    }
    siblings.into_values().collect()
}

/// Returns the lowest of the cores that share a physical one with `core`; itself where the kernel does not tell.
fn first_sibling(topology: &Path, core: usize) -> usize {
    let file = topology.join(format!("cpu{core}/topology/thread_siblings_list"));
    let text = fs::read(&file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let first = text.split([',', '-']).next().unwrap_or_default();
    first.trim().parse().unwrap_or(core)
}

/// Returns a quarter of some cores, the last ones and at least one: for slow work beside work that something waits for.
#[must_use]
pub fn quarter(cores: &[usize]) -> Vec<usize> {
    cores[cores.len() - cores.len().div_ceil(4)..].to_vec()
}

/// Shares the cores of this process between a CPU lane and `devices` device lanes.
#[must_use]
pub fn shares(devices: usize) -> Shares {
    let allowed = *ALLOWED;
    // Without devices nothing is reserved, so the system calls are saved.
    if devices == 0 {
        Shares { left: allowed, per_device: allowed, ..Shares::default() }
    } else {
        share(usable(), allowed, devices)
    }
}

/// Moves this process and its children off the cores of devices, and so all that they start later, unless that moves to cores of its own. It lasts as long as
/// the process, so a command calls it, not the engine. A refusal costs only time, so it is no error.
pub fn keep_off_devices(shares: &Shares) {
    let Some(cores) = &shares.cpu else { return };
    let mut set = CpuSet::new();
    for core in cores {
        // None is beyond the set's size: the kernel gave them.
        let _ = set.set(*core);
    }
    let own = Path::new(PROCESSES).join("self/task");
    // An affinity belongs to a thread, and only new threads and children inherit it. So all that exist already are moved one by one.
    let threads = numbers(&fs::names(&own).join(" "));
    let children = threads.iter().flat_map(|thread| {
        let listed = fs::read(&own.join(thread.to_string()).join("children")).unwrap_or_default();
        numbers(&String::from_utf8_lossy(&listed))
    });
    for thread in children.collect::<Vec<i32>>().into_iter().chain(threads) {
        let _ = sched_setaffinity(Pid::from_raw(thread), &set);
    }
}

fn numbers(text: &str) -> Vec<i32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Shares `cores` between a CPU lane and `devices` device lanes. `allowed` is how many the process may keep busy at once, which a
/// control group can make fewer than it may run on.
///
/// A device has two cores to itself, fewer where they would be more than half of all. Without devices, or with too few cores, nothing
/// is reserved. Where a control group rations time instead of naming cores, nobody is bound to cores, and the CPU lane has fewer slots.
#[must_use]
pub(crate) fn share(cores: &[usize], allowed: usize, devices: usize) -> Shares {
    let allowed = allowed.min(cores.len().max(1));
    let per_device = (allowed / 2).checked_div(devices).unwrap_or(0).min(PER_DEVICE);
    if per_device == 0 {
        return Shares { left: allowed.max(1), per_device: allowed.max(1), ..Shares::default() };
    }
    let left = allowed - per_device * devices;
    if allowed < cores.len() {
        return Shares { left, per_device, ..Shares::default() };
    }
    let (cpu, reserved) = cores.split_at(left);
    let mut cpu = cpu.to_vec();
    cpu.sort_unstable();
    Shares { left, per_device, cpu: Some(cpu), devices: reserved.chunks(per_device).map(<[usize]>::to_vec).collect() }
}

/// Returns the time of `CLOCK_MONOTONIC`, in nanoseconds: the clock of Python's `time.monotonic_ns`.
#[must_use]
pub fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map(std::time::Duration::from).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_two_cores_and_the_cpu_lane_the_others() {
        let shares = share(&(0..16).collect::<Vec<_>>(), 16, 2);
        assert_eq!((shares.left, shares.per_device), (12, 2));
        assert_eq!(shares.cpu, Some((0..12).collect()));
        assert_eq!(shares.devices, [vec![12, 13], vec![14, 15]]);
    }

    #[test]
    fn at_least_half_of_the_cores_are_left_to_the_cpu_lane() {
        let of = |cores: usize, devices| share(&(0..cores).collect::<Vec<_>>(), cores, devices);
        for cores in 1..=64 {
            for devices in 1..=8 {
                let shares = of(cores, devices);
                assert!(shares.left >= cores.div_ceil(2), "{cores} cores, {devices} devices: {shares:?}");
                assert!(shares.per_device > 0);
                let bound = shares.cpu.iter().chain(&shares.devices).flatten().count();
                assert!(bound == cores || bound == 0, "{cores} cores, {devices} devices: {shares:?}");
            }
        }
        assert_eq!(of(2, 1).devices, [[1]]);
        assert_eq!((of(1, 1).left, of(1, 1).cpu), (1, None));
        assert_eq!(of(8, 8), Shares { left: 8, per_device: 8, ..Shares::default() });
    }

    #[test]
    fn a_quarter_is_one_core_at_least() {
        assert_eq!(quarter(&(0..14).collect::<Vec<_>>()), [10, 11, 12, 13]);
        assert_eq!(quarter(&[5]), [5]);
        assert!(quarter(&[]).is_empty());
    }

    #[test]
    fn without_devices_nothing_is_reserved() {
        assert_eq!(share(&[0, 1, 2, 3], 4, 0), Shares { left: 4, per_device: 4, ..Shares::default() });
    }

    #[test]
    fn rationed_time_binds_nobody_to_cores_and_leaves_fewer_slots() {
        let shares = share(&(0..64).collect::<Vec<_>>(), 16, 1);
        assert_eq!(shares, Shares { left: 14, per_device: 2, ..Shares::default() });
    }

    #[test]
    fn threads_of_one_core_stand_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        for (core, list) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (4, "4-5\n")] {
            let file = folder.path().join(format!("cpu{core}/topology/thread_siblings_list"));
            fs::write(&file, list.as_bytes()).unwrap();
        }
        let firsts: Vec<usize> = [0, 1, 2, 3, 4].map(|core| first_sibling(folder.path(), core)).to_vec();
        assert_eq!(firsts, [0, 1, 0, 3, 4]);
    }
}
