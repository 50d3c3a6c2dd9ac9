//! The limits of one running child, as the server sees them: what it has used of each.
//!
//! It does not know what becomes of a child that goes beyond one.

use std::time::{Duration, Instant};

use t2t_protocol::End;

use super::RunningChild;
use crate::{files, kin};

/// How often memory and CPU time are sampled.
const SAMPLE: Duration = Duration::from_millis(20);

/// How often a scratch folder is sampled: that takes a call for each file.
const SAMPLE_FILES: Duration = Duration::from_millis(500);

/// How many processes an action may have: far more than parallel compilers, and few enough that the machine can still start others.
const PROCESSES: usize = 1024;

impl RunningChild {
    /// Returns how the child is to end, if it has used more than it may.
    pub(super) fn overrun(&mut self, now: Instant) -> Option<End> {
        if now.duration_since(self.before.time) >= Duration::from_millis(self.limits.wall_ms) {
            return Some(End::Timeout);
        }
        if let Some(reason) = &self.heard.spoiled {
            return Some(End::BadReply(reason.clone()));
        }
        if self.limits.output_bytes.is_some_and(|limit| self.stdout.total() + self.stderr.total() > limit) {
            return Some(End::OutputLimit);
        }
        if now.duration_since(self.sampled) < SAMPLE {
            return None;
        }
        self.sampled = now;
        self.sample()
    }

    fn sample(&mut self) -> Option<End> {
        let family = kin::family_of(self.pid);
        if family.len() > PROCESSES {
            return Some(End::Memory(format!("held {} processes", family.len())));
        }
        let grown = family.iter().map(|pid| kin::memory_of(*pid).saturating_sub(self.before.memory)).sum();
        self.grown = self.grown.max(grown);
        if self.limits.memory_bytes.is_some_and(|limit| grown > limit) {
            return Some(End::Memory(format!("held {} MiB", grown >> 20)));
        }
        if let Some(held) = self.overfull() {
            return Some(End::Memory(format!("held {} MiB of files in scratch", held >> 20)));
        }
        let limit = Duration::from_millis(self.limits.cpu_ms?);
        let used: Duration = family.iter().map(|pid| kin::cpu_of(*pid)).sum();
        (used.saturating_sub(self.before.cpu) >= limit).then_some(End::CpuLimit)
    }

    /// Returns the size of the scratch folder, if that is more than it may be.
    fn overfull(&mut self) -> Option<u64> {
        let limit = self.limits.scratch_bytes?;
        if self.sampled.duration_since(self.sampled_files) < SAMPLE_FILES {
            return None;
        }
        let held = files::held(&self.scratch, limit);
        // A folder of many files is sampled less often, so that the server has time for its other children.
        self.sampled_files = self.sampled + 10 * self.sampled.elapsed();
        (held > limit).then_some(held)
    }
}
