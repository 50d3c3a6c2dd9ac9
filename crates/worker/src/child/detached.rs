//! How a child comes apart from the server that it was forked from: session, descriptors, signals, namespaces.
//!
//! It does not know requests.

use std::{
    fs,
    os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd},
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    sys::{
        prctl::set_pdeathsig,
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
    },
    unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, getpid, getppid, setsid},
};

use super::{Origin, drop_powers};
use crate::{
    apart::{self, Namespaces},
    channel::{self, Secret},
    kin,
    orders::ORDERS,
    pipes::Ends,
};

/// Where the reply pipe lies in the child.
const CHANNEL: RawFd = 3;

/// Separates the process from the server. The channel is opened early, so that later failures are reported.
pub(super) fn detach(origin: Origin, ends: Ends, orders: Option<OwnedFd>, secret: Secret) -> Result<(), String> {
    let Origin { server, mark, namespaces } = origin;
    own_session(server)?;
    mark.put_on();
    take_descriptors(ends, orders, secret)?;
    own_signals()?;
    if namespaces == Namespaces::Own {
        apart::enter()?;
    }
    // Capabilities belong to a thread, and a device's driver starts threads while the child gets ready, so they are dropped now. Those of its own namespace are
    // kept until its walls need them.
    if apart::is_apart() { Ok(()) } else { drop_powers() }
}

/// Leaves the server's group, and asks to die with the server. The parent is compared because it may have died before it was asked.
fn own_session(server: Pid) -> Result<(), String> {
    setsid().map_err(|error| format!("setsid: {error}"))?;
    set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("pdeathsig: {error}"))?;
    if getppid() != server {
        kin::kill(getpid().as_raw());
    }
    Ok(())
}

/// Keeps four descriptors: an empty input, the two outputs, the channel. The control socket must not reach kernel code.
fn take_descriptors(ends: Ends, orders: Option<OwnedFd>, secret: Secret) -> Result<(), String> {
    let Ends { stdout, stderr, reply } = ends;
    let null = fs::File::open("/dev/null").map_err(|error| format!("/dev/null: {error}"))?;
    let moved = dup2_stdin(null.as_fd()).and_then(|()| dup2_stdout(&stdout)).and_then(|()| dup2_stderr(&stderr));
    moved.map_err(|error| format!("dup2: {error}"))?;
    // Both are moved beyond the numbers that they get below: otherwise the `dup3` of one could close the other.
    let (reply, orders) = (beyond(reply)?, orders.map(beyond).transpose()?);
    let raw = reply.as_raw_fd();
    // They are closed by number below; closing them again on drop would be a double close.
    for descriptor in [null.into(), stdout, stderr, reply] {
        std::mem::forget::<OwnedFd>(descriptor);
    }
    let last = if orders.is_some() { ORDERS } else { CHANNEL };
    // SAFETY: the numbers name descriptors that nothing in this process uses from here on.
    let channel = unsafe {
        let ordered = orders.is_none_or(|orders| libc::dup3(orders.into_raw_fd(), ORDERS, libc::O_CLOEXEC) == ORDERS);
        let moved = ordered && libc::dup3(raw, CHANNEL, libc::O_CLOEXEC) == CHANNEL;
        let first = libc::c_uint::try_from(last + 1).unwrap_or(libc::c_uint::MAX);
        let closed = libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) == 0;
        if !moved || !closed {
            return Err(format!("descriptors: {}", std::io::Error::last_os_error()));
        }
        OwnedFd::from_raw_fd(CHANNEL)
    };
    channel::open(channel, secret);
    Ok(())
}

/// Moves a descriptor to a number that is none of those that a child keeps.
fn beyond(descriptor: OwnedFd) -> Result<OwnedFd, String> {
    let moved = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(ORDERS + 1)).map_err(|error| format!("dup: {error}"))?;
    drop(descriptor);
    // SAFETY: the number was given out just now.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}

/// Restores the signals that the server changed. Python's handler of SIGINT was inherited from it, too.
fn own_signals() -> Result<(), String> {
    // SAFETY: SIG_DFL is no function that could be called.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(|error| format!("sigprocmask: {error}"))
}
