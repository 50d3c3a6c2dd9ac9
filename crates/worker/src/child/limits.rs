//! The limits that a child sets itself for a request, and the cores that it keeps to.
//!
//! It does not know those that the server holds it to.

use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::resource::{Resource, getrlimit, setrlimit},
    unistd::Pid,
};
use t2t_protocol::Request;

use crate::{apart, kin};

const OPEN_FILES: u64 = 4096;
const FILE_BYTES: u64 = 64 << 30;
/// Limit on processes and threads of a user who is not root. The server counts processes for every user.
const TASKS: u64 = 8192;
/// How much more a process may map writable than it may hold: thread stacks and allocators reserve more than they use.
const RESERVED: u64 = 4 << 30;

/// Sets the limits of a request that the kernel enforces. Fails, in words, where one cannot be set.
pub(super) fn set_limits(request: &Request) -> Result<(), String> {
    lower(Resource::RLIMIT_CORE, 0)?;
    lower(Resource::RLIMIT_NOFILE, OPEN_FILES)?;
    lower(Resource::RLIMIT_FSIZE, FILE_BYTES)?;
    // In a namespace of its own the child's tasks are counted alone; elsewhere all of the user's are.
    if apart::is_apart() {
        lower(Resource::RLIMIT_NPROC, TASKS)?;
    }
    // The limit counts the whole process, so a child that stays would spend one request's limit on all of them: it gets none.
    if let Some(milliseconds) = request.limits.cpu_ms.filter(|_| !request.stays) {
        // Time spent on getting ready does not count. This is a spare: the server samples more often, and all threads and descendants together. The system
        // counts whole ticks here, which on a busy machine exceed the time that a process had; at less than twice the limit it could fire before the server
        // does. SIGXCPU, which names the reason, comes before SIGKILL, which does not.
        let seconds = kin::own_cpu().as_secs() + 2 * milliseconds.div_ceil(1000) + 1;
        limit(Resource::RLIMIT_CPU, seconds, seconds + 2)?;
    }
    if let Some(bytes) = request.limits.memory_bytes {
        lower(Resource::RLIMIT_DATA, kin::own_data().saturating_add(bytes).saturating_add(RESERVED))?;
    }
    Ok(())
}

/// Moves the child, with all threads that it will start, to its cores. A refusal costs only time, so it is no error.
pub(super) fn move_to_cores(cores: Option<&[usize]>) {
    if let Some(cores) = cores {
        let mut set = CpuSet::new();
        // A number beyond the set's size cannot be a core that the server may use.
        for core in cores {
            let _ = set.set(*core);
        }
        sched_setaffinity(Pid::from_raw(0), &set).ok();
    }
}

/// Lets other processes have the cores first, as the request says.
pub(super) fn give_way(request: &Request) {
    if let Some(nice) = request.limits.nice {
        // SAFETY: setpriority takes three numbers; 0 is this process.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    }
}

fn lower(resource: Resource, value: u64) -> Result<(), String> {
    limit(resource, value, value)
}

fn limit(resource: Resource, soft: u64, hard: u64) -> Result<(), String> {
    let failed = |error| format!("{resource:?}: {error}");
    let (_, most) = getrlimit(resource).map_err(failed)?;
    setrlimit(resource, soft.min(most), hard.min(most)).map_err(failed)
}
