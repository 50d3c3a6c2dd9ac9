//! One warm child, seen from the server.
//!
//! It does not know what the child gets ready for, nor the other children.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use libc::pid_t;
use t2t_protocol::{DEVICE, GO, WarmChild};

use crate::{
    channel::{Heard, Secret},
    kin::Mark,
    pipes::{Pipes, TURN},
};

/// A warm child.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The key that requests name.
    pub key: String,
    /// The child.
    pub pid: pid_t,
    /// The mark of its descendants.
    pub mark: Mark,
    /// Where its request goes.
    pub orders: File,
    /// The device that it sees.
    pub device: Option<String>,
    /// Whether it has a folder of its own, where a file tells it that it may use the device.
    pub has_folder: bool,
    /// The file that lets it use the device, until it is there.
    pub go: Option<PathBuf>,
    /// Since when it may use the device.
    pub since: Instant,
    /// What it says, and prints.
    pub pipes: Pipes,
    /// What was heard of it.
    pub heard: Heard,
}

impl Ready {
    /// Awaits a child that was just forked and gets ready as `warm_child` says.
    pub(crate) fn new(
        warm_child: WarmChild,
        pid: pid_t,
        mark: Mark,
        secret: Secret,
        pipes: Pipes,
        orders: File,
    ) -> Self {
        let (device, since, heard) = (device_of(&warm_child.environment), Instant::now(), Heard::new(secret, 0));
        let go = warm_child.scratch.map(|folder| Path::new(&folder).join(GO));
        Self { key: warm_child.key, pid, mark, orders, device, has_folder: go.is_some(), go, since, pipes, heard }
    }

    /// Reads what the child said, and returns whether it is ready.
    pub(crate) fn is_ready(&mut self) -> bool {
        if !self.heard.is_ready {
            self.pipes.reply.drain(TURN, |bytes| self.heard.push(bytes));
        }
        self.heard.is_ready
    }

    /// Says whether the child starts its device now. One that has taken longer than it may does not count.
    pub(crate) fn disturbs(&mut self, now: Instant, patience: Duration) -> bool {
        self.go.is_none() && !self.is_ready() && now.duration_since(self.since) < patience
    }

    /// Says whether it only starts a device to get ready.
    pub(crate) fn starts_alone(&self) -> bool {
        self.device.is_some() && !self.has_folder
    }

    /// Returns the device that it has started, or starts.
    pub(crate) fn device(&self) -> Option<&str> {
        self.device.as_deref().filter(|_| self.go.is_none())
    }

    /// Says whether it sees this device; empty stands for none.
    pub(crate) fn sees(&self, device: &str) -> bool {
        self.device.as_deref().unwrap_or_default() == device
    }

    /// Lets it use its device, if `is_to_be_had` allows that.
    pub(crate) fn let_go(&mut self, now: Instant, is_to_be_had: impl Fn(&str) -> bool) {
        if self.go.is_some() && self.device.as_deref().is_none_or(is_to_be_had) {
            // A failure is no error: a child without the file waits for its request.
            self.go.take().map(|file| fs::write(file, []).ok());
            self.since = now;
        }
    }
}

/// Returns the device that an environment names.
pub(crate) fn device_of(environment: &BTreeMap<String, String>) -> Option<String> {
    environment.get(DEVICE).filter(|device| !device.is_empty()).cloned()
}
