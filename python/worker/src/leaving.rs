//! Children that have replied, of whom the kernel still takes apart what they held.
//!
//! It does not know what they were for. Nothing of them can run any more.

use std::time::{Duration, Instant};

use libc::pid_t;

use crate::{kin, kin::Mark};

/// All of them.
#[derive(Debug, Default)]
pub struct Leaving(Vec<(pid_t, Mark, Instant)>);

impl Leaving {
    /// Adds a child.
    pub fn push(&mut self, child: pid_t, mark: Mark, now: Instant) {
        self.0.push((child, mark, now));
    }

    /// Waits for those that are gone, and no longer than `patience` for the others, which are orphans then.
    pub fn bury(&mut self, now: Instant, patience: Duration) {
        self.0.retain(|(child, _, since)| kin::reap(*child).is_none() && now.duration_since(*since) < patience);
    }

    /// Says whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Says whether a process is one of them.
    pub fn has(&self, process: pid_t) -> bool {
        self.0.iter().any(|(child, ..)| *child == process)
    }

    /// Lists their marks.
    pub fn marks(&self) -> impl Iterator<Item = Mark> {
        self.0.iter().map(|(_, mark, _)| *mark)
    }
}
