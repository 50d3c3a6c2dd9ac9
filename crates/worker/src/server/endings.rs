//! How children of the server end: what of each is still there, and what they leave behind.
//!
//! It does not know why they were started.

use std::time::{Duration, Instant};

use libc::pid_t;

use super::{SWEEP, Server};
use crate::kin::{self, Mark};

/// How long killed processes may take to disappear. Only one that hangs in the kernel takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Server {
    /// Reads and checks all children, and reports those whose actions are over.
    pub(super) fn look_after_actions(&mut self) {
        let now = Instant::now();
        self.warm_pool.bury();
        self.leaving.bury(now, PATIENCE);
        for child in &mut self.running {
            child.read();
            child.check(now);
        }
        let mut index = 0;
        while index < self.running.len() {
            if self.running[index].stays() {
                let (finished, ready) = self.running.remove(index).give_back(now);
                self.warm_pool.put_back(ready);
                self.report_end(finished);
            } else if self.leaves(index, now) {
                let child = self.running.remove(index);
                self.leaving.push(child.pid, child.mark, now);
                self.report_end(child.part(now));
            } else if self.has_gone(index, now) {
                let finished = self.running.remove(index).finish(now);
                self.report_end(finished);
            } else {
                index += 1;
            }
        }
    }

    /// Says whether an action's child has replied and is exiting, and has left nothing else.
    fn leaves(&mut self, index: usize, now: Instant) -> bool {
        if !self.running[index].leaves(now) {
            return false;
        }
        let mark = Some(self.running[index].mark);
        !self.orphans().into_iter().any(|orphan| Mark::of(orphan) == mark)
    }

    /// Says whether nothing of an action is left, or only what cannot be killed.
    fn has_gone(&mut self, index: usize, now: Instant) -> bool {
        let Some(ended) = self.running[index].ended() else { return false };
        let survivors: Vec<pid_t> = self.orphans().into_iter().filter(|pid| self.belongs(*pid, index)).collect();
        self.running[index].sweep(&survivors);
        survivors.is_empty() || now.duration_since(ended) > PATIENCE
    }

    /// Lists the orphans that the server inherited when their parents died.
    fn orphans(&self) -> Vec<pid_t> {
        let mut children = kin::children_of(self.pid.as_raw());
        let is_known = |pid: pid_t| self.leaving.has(pid) || self.running.iter().any(|child| child.pid == pid);
        children.retain(|pid| !self.warm_pool.has(*pid) && !is_known(*pid));
        children
    }

    /// Says whether an orphan ends with this action: it has the action's mark, or that of no running action.
    fn belongs(&self, orphan: pid_t, index: usize) -> bool {
        let mark = Mark::of(orphan);
        let mut others = self.running.iter().enumerate().filter(|(other, _)| *other != index);
        !others.any(|(_, child)| Some(child.mark) == mark && child.ended().is_none())
    }

    /// Reaps the orphans that have ended.
    pub(super) fn reap_orphans(&self) {
        for orphan in self.orphans() {
            kin::reap(orphan);
        }
    }

    /// Kills all children and their leftovers, and waits until they are gone.
    pub(super) fn end_everything(&mut self) {
        let started = Instant::now();
        loop {
            let children = kin::children_of(self.pid.as_raw());
            if children.is_empty() || started.elapsed() > PATIENCE {
                return;
            }
            for child in children {
                kin::kill_group(child);
                kin::reap(child);
            }
            std::thread::sleep(SWEEP);
        }
    }
}
