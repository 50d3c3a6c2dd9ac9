//! A second server from the same imports: it is forked where the kinds of servers begin to differ, and waits for a hello of its own.
//!
//! It does not know what was imported, nor what it will be. Its parent is t2t, as that of any server: the process between the two has ended.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
};

use libc::pid_t;
use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::wait::waitpid,
    unistd::{Pid, close, dup2_stderr, dup2_stdout, getpid, setpgid},
};
use pyo3::prelude::*;
use t2t_protocol::{FromWorker, SPARE};

use crate::{control::Control, kin};

/// The descriptors that t2t gave this process for the one that it forks.
#[derive(Debug)]
pub(crate) struct Ends {
    socket: OwnedFd,
    output: OwnedFd,
}

/// On which side of the fork this is.
#[derive(Debug)]
pub(crate) enum Side {
    /// The process that was there, or one that could not fork.
    Server,
    /// The other one, with its socket.
    Spare(OwnedFd),
}

impl Ends {
    /// Takes both, so that nothing that is started later has them.
    pub(crate) fn take() -> io::Result<Self> {
        let [socket, output] = SPARE.map(taken);
        Ok(Self { socket: socket?, output: output? })
    }
}

fn taken(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: whoever asks for a fork has opened these, and nothing in this process has begun to use them.
    let given = unsafe { BorrowedFd::borrow_raw(number) };
    let own = given.try_clone_to_owned()?;
    fcntl(&own, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    close(number)?;
    Ok(own)
}

/// Forks, where this process has one thread: another one's locks would stay locked. That it cannot is no failure: t2t sees that the socket is closed.
pub(crate) fn fork(py: Python<'_>, ends: Ends) -> PyResult<Side> {
    if kin::threads_that_stay() != 1 {
        return Ok(Side::Server);
    }
    let fork = py.import("os")?.getattr("fork")?;
    // A limit on processes is no reason not to serve: who asks for a child is told of it.
    let Ok(between) = fork.call0().and_then(|pid| pid.extract::<pid_t>()) else { return Ok(Side::Server) };
    if between > 0 {
        waitpid(Pid::from_raw(between), None).ok();
        return Ok(Side::Server);
    }
    // It ends at once, so that its child becomes t2t's.
    if !matches!(fork.call0().and_then(|pid| pid.extract::<pid_t>()), Ok(0)) {
        kin::leave(0);
    }
    match introduce(ends) {
        Ok(socket) => Ok(Side::Spare(socket)),
        Err(_) => kin::leave(1),
    }
}

/// Tells t2t of this process, which prints to a pipe of its own from now on. Returns its socket.
fn introduce(ends: Ends) -> io::Result<OwnedFd> {
    // t2t kills the groups of servers.
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    dup2_stdout(&ends.output)?;
    dup2_stderr(&ends.output)?;
    let mut control = Control::new(ends.socket.try_clone()?);
    control.send(&FromWorker::Forked { pid: getpid().as_raw() }).map_err(io::Error::other)?;
    Ok(ends.socket)
}
