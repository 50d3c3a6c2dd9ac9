//! Warm children: those that are ready, or get ready, before there is a request for them.
//!
//! It does not know what they get ready for, nor how they were forked. One that has died is forgotten: its request gets a child of its own.

use std::{
    collections::BTreeMap,
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

use crate::{kin, kin::Mark, ready::Ready};

/// How many bytes a pipe takes without a reader. A longer request would block the server while the child still gets ready.
const ROOM: i32 = 1 << 20;

/// All warm children, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct WarmPool {
    all: Vec<Ready>,
    /// Those that still get ready: process and the key that is reported once they are ready.
    unready: BTreeMap<pid_t, String>,
}

impl WarmPool {
    /// Makes the pipe for a request: the child's end, and the server's, which never blocks. Fails where the system has no such pipe.
    pub(crate) fn pipe() -> io::Result<(OwnedFd, File)> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&write, FcntlArg::F_SETPIPE_SZ(ROOM))?;
        fcntl(&write, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok((read, write.into()))
    }

    /// Adds a child that gets ready.
    pub(crate) fn add(&mut self, ready: Ready) {
        self.unready.insert(ready.pid, ready.key.clone());
        self.all.push(ready);
    }

    /// Adds a child that has stayed.
    pub(crate) fn put_back(&mut self, ready: Option<Ready>) {
        self.all.extend(ready);
    }

    /// Returns the key of each child that got ready since the last call, or never will: it died, or has its request.
    pub(crate) fn prepared(&mut self) -> Vec<String> {
        let mut told = std::mem::take(&mut self.unready);
        for ready in &mut self.all {
            if told.contains_key(&ready.pid) && !ready.is_ready() {
                self.unready.extend(told.remove_entry(&ready.pid));
            }
        }
        told.into_values().collect()
    }

    /// Says whether a child still gets ready.
    pub(crate) fn get_ready(&self) -> bool {
        !self.unready.is_empty()
    }

    /// Lets waiting children use their device where `is_to_be_had` allows it.
    pub(crate) fn let_go(&mut self, now: Instant, is_to_be_had: impl Fn(&str) -> bool) {
        self.all.iter_mut().for_each(|ready| ready.let_go(now, &is_to_be_had));
    }

    /// Counts those that have started a device.
    pub(crate) fn on_device(&self, device: Option<&str>) -> usize {
        self.all.iter().filter(|ready| ready.device().is_some() && ready.device() == device).count()
    }

    /// Hands `request` to the oldest living child with its key that is ready, else to the oldest that gets ready, and returns it. None where there is no such
    /// child, or the request is too long for its pipe.
    pub(crate) fn take(&mut self, request: &Request) -> Option<Ready> {
        let key = request.reserve.as_deref()?;
        let frame = encode(request).ok().filter(|frame| frame.len() < ROOM as usize)?;
        loop {
            let is_ready = self.all.iter_mut().position(|ready| ready.key == key && ready.is_ready());
            let index = is_ready.or_else(|| self.all.iter().position(|ready| ready.key == key))?;
            let mut ready = self.all.remove(index);
            if !kin::has_ended(ready.pid) && ready.orders.write_all(&frame).is_ok() {
                return Some(ready);
            }
            end(&ready);
        }
    }

    /// Says whether a child starts a device now. One that has taken longer than it may does not count.
    pub(crate) fn disturb(&mut self, now: Instant, patience: Duration) -> bool {
        self.all.iter_mut().any(|ready| ready.disturbs(now, patience))
    }

    /// Counts those that start this device now. One that has taken longer than it may does not count.
    pub(crate) fn starting(&mut self, device: &str, now: Instant, patience: Duration) -> usize {
        let of_device = self.all.iter_mut().filter(|ready| ready.starts_alone() && ready.sees(device));
        of_device.map(|ready| usize::from(ready.disturbs(now, patience))).sum()
    }

    /// Ends the eldest child that has this key, and says whether there was one.
    pub(crate) fn end_one(&mut self, key: &str) -> bool {
        let found = self.all.iter().position(|ready| ready.key == key);
        found.map(|index| end(&self.all.remove(index))).is_some()
    }

    /// Lists the marks of their descendants.
    pub(crate) fn marks(&self) -> impl Iterator<Item = Mark> {
        self.all.iter().map(|ready| ready.mark)
    }

    /// Says whether a process is a warm child.
    pub(crate) fn has(&self, pid: pid_t) -> bool {
        self.all.iter().any(|ready| ready.pid == pid)
    }

    /// Kills those that see this device, and returns them.
    pub(crate) fn dismiss(&mut self, device: &str) -> Vec<Ready> {
        let (dismissed, others) = std::mem::take(&mut self.all).into_iter().partition(|ready| ready.sees(device));
        self.all = others;
        for ready in &dismissed {
            kin::kill_group(ready.pid);
        }
        dismissed
    }

    /// Forgets those that have died.
    pub(crate) fn bury(&mut self) {
        self.all.retain(|ready| {
            let has_died = kin::has_ended(ready.pid);
            if has_died {
                end(ready);
            }
            !has_died
        });
    }
}

/// Kills a child and its group. If it is still exiting, the server finds it among its orphans later.
fn end(ready: &Ready) {
    kin::kill_group(ready.pid);
    kin::reap(ready.pid);
}
