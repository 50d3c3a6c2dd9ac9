//! Processes, by /proc and `wait`: their descendants, their memory, how they ended.
//!
//! It does not know actions: it answers about process ids. All of these are children that are not reaped yet, so no other process can have got their ids.

use std::{
    fs, mem, thread,
    time::{Duration, Instant},
};

use libc::{c_int, pid_t};
use nix::time::{ClockId, clock_gettime};

/// The kernel's flag of an exiting thread (`PF_EXITING` in include/linux/sched.h).
const EXITING: u64 = 4;
/// How long a thread that ends may stay listed.
const THREAD_LEAVES: Duration = Duration::from_secs(1);

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Status {
    /// It left with this code.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
}

/// How a process ended, and what it used until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaped {
    pub status: Status,
    pub cpu: Duration,
    pub max_rss_kib: u64,
}

/// Ends the process at once. Python is not finalized: with torch that takes a second, and nothing is to be kept.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: _exit takes a number.
    unsafe { libc::_exit(code) }
}

/// Says whether a child has ended; it stays a zombie, so that its id and its group keep their meaning.
pub(crate) fn has_ended(child: pid_t) -> bool {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: siginfo_t is plain data, for which zero is a value, and waitid only writes into it.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let found = libc::waitid(libc::P_PID, child.cast_unsigned(), &raw mut info, flags) == 0;
        found && info.si_pid() == child
    }
}

/// Waits for a child that has ended; `None` if it has not.
pub(crate) fn reap(child: pid_t) -> Option<Reaped> {
    let mut status: c_int = 0;
    // SAFETY: rusage is plain data, for which zero is a value, and wait4 only writes into both.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        (libc::wait4(child, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
    };
    (pid == child).then(|| Reaped {
        status: if libc::WIFSIGNALED(status) {
            Status::Signaled(libc::WTERMSIG(status))
        } else {
            Status::Exited(libc::WEXITSTATUS(status))
        },
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Kills one process.
pub(crate) fn kill(process: pid_t) {
    // SAFETY: kill takes no pointers.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Kills a child and the group that it leads, or is about to lead.
pub(crate) fn kill_group(leader: pid_t) {
    kill(-leader);
    kill(leader);
}

/// Lists the children of a process, those that were handed over to it included.
pub(crate) fn children_of(process: pid_t) -> Vec<pid_t> {
    listed_children(process).unwrap_or_else(|| scanned_children(process))
}

/// Reads the kernel's own lists, one per thread; `None` where the kernel was built without them.
fn listed_children(process: pid_t) -> Option<Vec<pid_t>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<pid_t>().ok())),
            Err(_) if thread.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

fn scanned_children(process: pid_t) -> Vec<pid_t> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<pid_t>().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == process)).collect()
}

/// Lists a process and all its descendants.
pub(crate) fn family_of(process: pid_t) -> Vec<pid_t> {
    let mut family = vec![process];
    let mut next = 0;
    while let Some(member) = family.get(next) {
        family.extend(children_of(*member));
        next += 1;
    }
    family
}

/// The fields of /proc/PID/stat that matter here.
struct Stat {
    state: char,
    parent: pid_t,
    group: pid_t,
    flags: u64,
    ticks: u64,
}

fn stat(process: pid_t) -> Option<Stat> {
    stat_at(&format!("/proc/{process}/stat"))
}

fn stat_at(path: &str) -> Option<Stat> {
    let line = fs::read_to_string(path).ok()?;
    // The name may hold anything, spaces and parentheses too; the fields follow its last parenthesis.
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    let number = |index: usize| fields.get(index)?.parse::<pid_t>().ok();
    let flags = fields.get(6)?.parse().unwrap_or(0);
    Some(Stat { state: fields.first()?.chars().next()?, parent: number(1)?, group: number(2)?, flags, ticks })
}

/// Says whether every thread of a process is exiting, so that it runs no code of its own any more. Releasing a device takes the kernel a tenth of a second.
/// False where the kernel does not show it.
pub(crate) fn is_leaving(process: pid_t) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return false };
    let has_left = |stat: Stat| stat.flags & EXITING != 0 || matches!(stat.state, 'Z' | 'X');
    // A thread that has gone meanwhile has no line, and counts as exiting.
    threads.flatten().all(|thread| stat_at(&format!("{}/stat", thread.path().display())).is_none_or(has_left))
}

/// Says whether a process still runs, that is, exists and is no zombie.
pub(crate) fn runs(process: pid_t) -> bool {
    stat(process).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Returns the process group of a process.
pub(crate) fn group_of(process: pid_t) -> Option<pid_t> {
    stat(process).map(|stat| stat.group)
}

/// Returns the CPU time of a process, including the children that it has reaped.
pub(crate) fn cpu_of(process: pid_t) -> Duration {
    // SAFETY: sysconf takes no pointers.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let per_second = u64::try_from(per_second).unwrap_or(100).max(1);
    Duration::from_millis(stat(process).map_or(0, |stat| stat.ticks) * 1000 / per_second)
}

/// Returns the bytes that belong to a process alone or by copy-on-write: anonymous, shared-anonymous and swapped pages.
pub(crate) fn memory_of(process: pid_t) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    kibibytes(&status, &["RssAnon:", "RssShmem:", "VmSwap:"]) << 10
}

/// Returns the bytes of writable private mappings of this process: what `RLIMIT_DATA` counts.
pub(crate) fn own_data() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    kibibytes(&status, &["VmData:"]) << 10
}

fn kibibytes(status: &str, names: &[&str]) -> u64 {
    let lines = status.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

/// Returns the CPU time of this process, all threads together.
pub(crate) fn own_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Counts the threads of this process, once it is the only one or after a second. The kernel lists a thread for a moment after it has been joined, which is
/// longer on a loaded machine.
pub(crate) fn threads_that_stay() -> usize {
    let count = || fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let until = Instant::now() + THREAD_LEAVES;
    while count() > 1 && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    count()
}

/// The mark of an action's descendants: the value of `oom_score_adj`, which every fork and exec inherits. It also makes the OOM killer choose children before
/// the server and t2t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(i32);

impl Mark {
    const HIGHEST: i32 = 1000;

    /// Returns the mark of a slot, beside that of this process.
    pub(crate) fn of_slot(slot: usize) -> Self {
        let own = Self::of(nix::unistd::getpid().as_raw()).map_or(0, |mark| mark.0);
        let slot = i32::try_from(slot).unwrap_or(i32::MAX);
        Self(own.saturating_add(1).saturating_add(slot).min(Self::HIGHEST))
    }

    /// Reads the mark of a process.
    pub(crate) fn of(process: pid_t) -> Option<Self> {
        fs::read_to_string(format!("/proc/{process}/oom_score_adj")).ok()?.trim().parse().ok().map(Self)
    }

    /// Marks this process. Raising the value needs no privilege; where it fails the process stays unmarked.
    pub(crate) fn put_on(self) {
        // Unmarked descendants are killed with whichever action ends next, so a failure is no leak.
        fs::write("/proc/self/oom_score_adj", self.0.to_string()).ok();
    }
}

/// Counts the processes that the kernel has killed for memory in the control group of this process.
pub(crate) fn oom_kills() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().filter_map(oom_kills_of).sum()
}

/// Reads one line of /proc/self/cgroup, `ID:CONTROLLERS:PATH`; version 2 has no controllers.
fn oom_kills_of(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let file = match controllers {
        "" => format!("/sys/fs/cgroup{path}/memory.events"),
        list if list.split(',').any(|name| name == "memory") => {
            format!("/sys/fs/cgroup/memory{path}/memory.oom_control")
        }
        _ => return None,
    };
    let events = fs::read_to_string(file).ok()?;
    events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}
