//! Children that have replied or were dismissed, and whose processes still take time to exit.
//!
//! It does not know what they were for. They run no code any more.

use std::time::{Duration, Instant};

use libc::pid_t;

use crate::{kin, kin::Mark};

/// One such child.
#[derive(Debug)]
struct Child {
    pid: pid_t,
    mark: Mark,
    since: Instant,
    /// The device that it was dismissed from.
    dismissed: Option<String>,
}

/// All such children.
#[derive(Debug, Default)]
pub(crate) struct Leaving(Vec<Child>);

impl Leaving {
    /// Adds a child that has replied.
    pub(crate) fn push(&mut self, pid: pid_t, mark: Mark, since: Instant) {
        self.0.push(Child { pid, mark, since, dismissed: None });
    }

    /// Adds a child that was dismissed from a device.
    pub(crate) fn dismiss(&mut self, pid: pid_t, mark: Mark, since: Instant, device: &str) {
        self.0.push(Child { pid, mark, since, dismissed: Some(device.to_owned()) });
    }

    /// Says whether a child that was dismissed from a device still holds some of it.
    pub(crate) fn hold(&self, device: Option<&str>) -> bool {
        self.0.iter().any(|child| child.dismissed.is_some() && child.dismissed.as_deref() == device)
    }

    /// Reaps those that have exited. The others are kept for at most `patience`; after that they count as orphans.
    pub(crate) fn bury(&mut self, now: Instant, patience: Duration) {
        self.0.retain(|child| kin::reap(child.pid).is_none() && now.duration_since(child.since) < patience);
    }

    /// Says whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Says whether a process is such a child.
    pub(crate) fn has(&self, process: pid_t) -> bool {
        self.0.iter().any(|child| child.pid == process)
    }

    /// Lists their marks.
    pub(crate) fn marks(&self) -> impl Iterator<Item = Mark> {
        self.0.iter().map(|child| child.mark)
    }
}
