//! The system calls that seccomp refuses to a child: those that reach other processes, that make things that outlive the child, or that only root could use.
//!
//! It does not know files: a filter sees numbers, never what a pointer points to. All threads get the filters, including those that a device's driver has
//! started, and all descendants inherit them.

use std::{collections::BTreeMap, env, process};

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads, sock_filter,
};

/// Calls of numbers that are the same on all machines, and that the C library's list lacks.
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;

/// Refused whatever the arguments are.
const NEVER: [c_long; 61] = [
    // Memory, descriptors and threads of others.
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_userfaultfd,
    // Scheduling. The child may still change its own niceness.
    libc::SYS_ioprio_set,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    // Keys, programs, counters and watches in the kernel.
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_fanotify_init,
    libc::SYS_keyctl,
    libc::SYS_perf_event_open,
    libc::SYS_request_key,
    // Namespaces and mounts.
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
    // System V and POSIX objects without a file: they outlive the child.
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
    // Owners and attributes of files: Landlock lets the owner change them anywhere. And special files, where t2t expects plain ones after the child.
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_open_by_handle_at,
    libc::SYS_removexattr,
    REMOVEXATTRAT,
    libc::SYS_setxattr,
    SETXATTRAT,
];
/// The older names of some of them, which newer machines never had.
#[cfg(target_arch = "x86_64")]
const OLDER: [c_long; 4] = [libc::SYS_chown, libc::SYS_lchown, libc::SYS_mknod, libc::SYS_symlink];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [c_long; 0] = [];

/// Refused on other processes, by the argument that names the process; 0 is the caller.
const OF_OTHERS: [(c_long, u8); 3] =
    [(libc::SYS_prlimit64, 0), (libc::SYS_sched_setaffinity, 0), (libc::SYS_move_pages, 0)];

/// `fcntl` commands that reach other users of a file: a lease delays whoever opens the file for writing, the other reports all that happens in a folder.
const ORDERS: [libc::c_int; 2] = [libc::F_SETLEASE, libc::F_NOTIFY];

/// The calls that set a file's mode, with the place of that argument.
#[cfg(target_arch = "x86_64")]
const MODES: [(c_long, u8); 4] =
    [(libc::SYS_chmod, 1), (libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2)];
#[cfg(not(target_arch = "x86_64"))]
const MODES: [(c_long, u8); 3] = [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2)];

/// The flags by which a new process gets a namespace of its own.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Which sockets a child may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// None but pairs.
    None,
    /// Unix sockets with a path, too: the CUDA driver looks for its helpers over them.
    Unix,
}

/// Refuses the calls to this process, all its threads, and whatever it starts. It may gain no privileges from then on.
pub(crate) fn refuse(sockets: Sockets) -> Result<(), String> {
    let apply = |calls, number: libc::c_int| {
        let filter = filter(calls, SeccompAction::Errno(number.unsigned_abs()))?;
        apply_filter_all_threads(&filter).map_err(|error| format!("seccomp: {error}"))
    };
    apply(of_sockets(sockets)?, libc::EACCES)?;
    // The flags of `clone3` lie in memory, which a filter cannot read. With `ENOSYS` the C library uses `clone`.
    apply(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    apply(of_powers()?, libc::EPERM)
}

type Calls = BTreeMap<c_long, Vec<SeccompRule>>;

/// Other sockets; `io_uring`, which makes calls that no filter sees; and without a device, whose driver may need them, watches of files: Landlock lets them
/// report on any folder that the user may list.
fn of_sockets(sockets: Sockets) -> Result<Calls, String> {
    let unix = libc::AF_UNIX.unsigned_abs().into();
    let mut calls = BTreeMap::from([(libc::SYS_io_uring_setup, Vec::new())]);
    match sockets {
        Sockets::None => calls.extend([(libc::SYS_socket, Vec::new()), (libc::SYS_inotify_add_watch, Vec::new())]),
        Sockets::Unix => _ = calls.insert(libc::SYS_socket, vec![rule(vec![condition(0, SeccompCmpOp::Ne, unix)])?]),
    }
    Ok(calls)
}

fn of_powers() -> Result<Calls, String> {
    let mut calls: Calls = NEVER.into_iter().chain(OLDER).map(|call| (call, Vec::new())).collect();
    for (call, argument) in OF_OTHERS {
        calls.insert(call, vec![rule(another(argument))?]);
    }
    let is_no_process = condition(0, SeccompCmpOp::Ne, u64::from(libc::PRIO_PROCESS));
    calls.insert(libc::SYS_setpriority, vec![rule(vec![is_no_process])?, rule(another(1))?]);
    let set_user: u64 = libc::S_ISUID.into();
    for (call, argument) in MODES {
        calls.insert(call, vec![rule(vec![condition(argument, SeccompCmpOp::MaskedEq(set_user), set_user)])?]);
    }
    let orders = ORDERS.map(|order| rule(vec![condition(1, SeccompCmpOp::Eq, order.unsigned_abs().into())]));
    calls.insert(libc::SYS_fcntl, orders.into_iter().collect::<Result<_, _>>()?);
    let flags = NAMESPACES.map(|flag| u64::from(flag.unsigned_abs()));
    let apart = flags.map(|flag| rule(vec![condition(0, SeccompCmpOp::MaskedEq(flag), flag)]));
    calls.insert(libc::SYS_clone, apart.into_iter().collect::<Result<_, _>>()?);
    Ok(calls)
}

/// Says that an argument names a process that is not this one.
fn another(argument: u8) -> Vec<Result<SeccompCondition, BackendError>> {
    vec![condition(argument, SeccompCmpOp::Ne, 0), condition(argument, SeccompCmpOp::Ne, process::id().into())]
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    // Numbers of processes, flags and modes are words of 32 bits; the kernel does not look at the rest.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn rule(conditions: Vec<Result<SeccompCondition, BackendError>>) -> Result<SeccompRule, String> {
    let conditions = conditions.into_iter().collect::<Result<Vec<_>, _>>();
    conditions.and_then(SeccompRule::new).map_err(|error| format!("seccomp: {error}"))
}

fn filter(calls: Calls, refusal: SeccompAction) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(env::consts::ARCH).map_err(|error| format!("seccomp: {error}"))?;
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refusal, arch);
    let program = filter.and_then(BpfProgram::try_from).map_err(|error| format!("seccomp: {error}"))?;
    Ok(without_second_numbers(program))
}

/// Refuses the second set of numbers (x32) that some kernels know on `x86_64`: with it every call could be made past the filter.
fn without_second_numbers(program: BpfProgram) -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const SECOND: u32 = 0x4000_0000;
    const REFUSED: u32 = 0x0005_0000 | libc::ENOSYS.unsigned_abs();
    if !cfg!(target_arch = "x86_64") {
        return program;
    }
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut whole = vec![step(LOAD_NUMBER, 0, 0, 0), step(JUMP_IF_AT_LEAST, 0, 1, SECOND), step(RETURN, 0, 0, REFUSED)];
    whole.extend(program);
    whole
}
