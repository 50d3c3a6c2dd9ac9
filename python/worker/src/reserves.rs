//! Children that are ready before there is a request for them.
//!
//! It does not know what they got ready for, nor how they were forked. One that has died is forgotten: a request that would have had it gets a child
//! of its own.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use libc::pid_t;
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::pipe2,
};
use t2t_protocol::{Request, encode};

use crate::{action::Ready, kin, kin::Mark};

/// How many bytes a pipe takes without a reader: a child that still gets ready must not keep the server waiting.
const ROOM: i32 = 1 << 20;

/// All of them, the eldest first.
#[derive(Debug, Default)]
pub struct Reserves(Vec<Ready>);

impl Reserves {
    /// Makes the pipe for a request: the child's end, and the server's, which never blocks. Fails where the system has no such pipe.
    pub fn pipe() -> io::Result<(OwnedFd, File)> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&write, FcntlArg::F_SETPIPE_SZ(ROOM))?;
        fcntl(&write, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok((read, write.into()))
    }

    /// Adds a child, or one that has stayed.
    pub fn extend(&mut self, ready: impl IntoIterator<Item = Ready>) {
        self.0.extend(ready);
    }

    /// Hands `request` to the eldest child that lives and has its key, and returns it. None where there is no such child, or the request is too
    /// long for its pipe.
    pub fn take(&mut self, request: &Request) -> Option<Ready> {
        let key = request.reserve.as_deref()?;
        let frame = encode(request).ok().filter(|frame| frame.len() < ROOM as usize)?;
        loop {
            let index = self.0.iter().position(|ready| ready.key == key)?;
            let mut ready = self.0.remove(index);
            if !kin::has_ended(ready.pid) && ready.orders.write_all(&frame).is_ok() {
                return Some(ready);
            }
            end(&ready);
        }
    }

    /// Says whether a child still gets ready, and has not for longer than that may take.
    pub fn get_ready(&mut self, now: Instant, patience: Duration) -> bool {
        self.0.iter_mut().any(|ready| ready.gets_ready(now, patience))
    }

    /// Counts those that a request with this key could get.
    pub fn count(&self, key: &str) -> usize {
        self.0.iter().filter(|ready| ready.key == key).count()
    }

    /// Lists what their descendants can be told by.
    pub fn marks(&self) -> impl Iterator<Item = Mark> {
        self.0.iter().map(|ready| ready.mark)
    }

    /// Says whether a process is one of them.
    pub fn has(&self, pid: pid_t) -> bool {
        self.0.iter().any(|ready| ready.pid == pid)
    }

    /// Forgets those that have died.
    pub fn bury(&mut self) {
        self.0.retain(|ready| {
            let has_died = kin::has_ended(ready.pid);
            if has_died {
                end(ready);
            }
            !has_died
        });
    }
}

/// Sees to it that nothing of a child is left. Where it still ends, the server finds it among its orphans.
fn end(ready: &Ready) {
    kin::kill_group(ready.pid);
    kin::reap(ready.pid);
}
