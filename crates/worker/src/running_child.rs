//! One running child, seen from the server: its output, its reply, its use of resources, its deadline.
//!
//! It does not know the other actions, nor t2t. It kills only its own child. The server, which alone sees orphans, sweeps what the child left.

use std::{
    collections::BTreeSet,
    fs::File,
    os::fd::BorrowedFd,
    path::PathBuf,
    time::{Duration, Instant},
};

use libc::pid_t;
use t2t_protocol::{End, Finished, Limits, Request, Usage, WarmChild};

use crate::{
    capture::Capture,
    channel::{Answer, Heard, Secret},
    kin::{self, Mark},
    pipes::{Pipes, TURN},
    quiet::Quiet,
    ready::{Ready, device_of},
};

mod limits;
mod end;

use self::end::{end, end_of_answer};

/// How long a child that has replied may take to exit before the server checks whether it is only exiting. One that imported little is gone by then; to return the memory of one
/// that has torch takes the kernel 5 to 15 ms, for which nobody has to wait.
const LEAVES: Duration = Duration::from_millis(1);

/// The machine's state right before a child gets its request, to compare with afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    memory: u64,
    oom_kills: u64,
    time: Instant,
    /// CPU time that the child has used already.
    cpu: Duration,
}

impl Before {
    /// Takes the state now, before a fork.
    pub(crate) fn now(server: pid_t) -> Self {
        let (memory, oom_kills) = (kin::memory_of(server), kin::oom_kills());
        Self { memory, oom_kills, time: Instant::now(), cpu: Duration::ZERO }
    }

    /// Takes the state now, before a warm child gets its request.
    pub(crate) fn handing_over(server: pid_t, child: pid_t) -> Self {
        Self { cpu: kin::cpu_of(child), ..Self::now(server) }
    }
}

/// One child and its state.
#[derive(Debug)]
pub(crate) struct RunningChild {
    /// The request's number.
    pub id: u64,
    /// The child, its group and its session.
    pub pid: pid_t,
    /// The mark of its descendants.
    pub mark: Mark,
    limits: Limits,
    /// The device that it sees.
    pub device: Option<String>,
    quiet: Quiet,
    before: Before,
    pipes: Pipes,
    stdout: Capture,
    stderr: Capture,
    heard: Heard,
    sampled: Instant,
    scratch: PathBuf,
    /// When the scratch folder was sampled; later, if sampling took long.
    sampled_files: Instant,
    grown: u64,
    /// Why the server killed it.
    stopped: Option<End>,
    /// When its reply came.
    replied: Option<Instant>,
    /// When it was seen to have ended. It is not reaped yet, so its id is still its own.
    ended: Option<Instant>,
    left_behind: BTreeSet<pid_t>,
    /// How the child gets another request, if it stays for one.
    place: Option<Parked>,
}

/// How a child that stays is found for its next request.
#[derive(Debug)]
struct Parked {
    key: String,
    orders: File,
}

impl RunningChild {
    /// Takes over a warm child that has just got its request.
    pub(crate) fn of_ready(request: &Request, ready: Ready, before: Before) -> Self {
        let Ready { key, pid, mark, orders, pipes, mut heard, .. } = ready;
        heard.expect(request.limits.reply_bytes);
        let place = request.stays.then(|| Parked { key, orders });
        Self { place, ..Self::heard_by(heard, request, pid, mark, pipes, before) }
    }

    /// Takes over a child that was just forked.
    pub(crate) fn new(request: &Request, pid: pid_t, mark: Mark, secret: Secret, pipes: Pipes, before: Before) -> Self {
        Self::heard_by(Heard::new(secret, request.limits.reply_bytes), request, pid, mark, pipes, before)
    }

    fn heard_by(heard: Heard, request: &Request, pid: pid_t, mark: Mark, pipes: Pipes, before: Before) -> Self {
        Self {
            id: request.id,
            pid,
            mark,
            place: None,
            limits: request.limits.clone(),
            device: device_of(&request.environment),
            quiet: Quiet::of(request),
            before,
            pipes,
            stdout: Capture::default(),
            stderr: Capture::default(),
            heard,
            sampled: before.time,
            scratch: PathBuf::from(&request.scratch),
            sampled_files: before.time,
            grown: 0,
            stopped: None,
            replied: None,
            ended: None,
            left_behind: BTreeSet::new(),
        }
    }

    /// Says whether it would be disturbed while this warm child gets ready, for example on the same device.
    pub(crate) fn is_disturbed_by(&self, warm_child: &WarmChild) -> bool {
        matches!(self.quiet, Quiet::Told) && self.device == device_of(&warm_child.environment)
    }

    /// Says whether others may use its device meanwhile.
    pub(crate) fn is_at_ease(&self) -> bool {
        matches!(self.quiet, Quiet::Unasked)
    }

    /// Says whether it waits to hear that nothing disturbs it.
    pub(crate) fn awaits_quiet(&self, now: Instant) -> bool {
        self.quiet.is_due(now.duration_since(self.before.time))
    }

    /// Tells it that nothing disturbs it, and how many children have started its device beside it.
    pub(crate) fn tell_quiet(&mut self, beside: usize) {
        self.quiet.tell(beside);
    }

    /// Lists what to wait for.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pipes.descriptors()
    }

    /// Reads what the child wrote.
    pub(crate) fn read(&mut self) {
        self.read_chunks(TURN);
    }

    fn read_chunks(&mut self, chunks: usize) {
        self.pipes.stdout.drain(chunks, |bytes| self.stdout.push(bytes));
        self.pipes.stderr.drain(chunks, |bytes| self.stderr.push(bytes));
        self.pipes.reply.drain(chunks, |bytes| self.heard.push(bytes));
    }

    /// Says whether the child has ended, and since when that is known.
    pub(crate) fn ended(&self) -> Option<Instant> {
        self.ended
    }

    /// Checks whether the child has ended, and otherwise whether it must.
    pub(crate) fn check(&mut self, now: Instant) {
        if self.ended.is_some() {
            return;
        }
        if kin::has_ended(self.pid) {
            self.ended = Some(now);
            return;
        }
        if self.stopped.is_none()
            && let Some(end) = self.overrun(now)
        {
            self.stop(end);
        }
    }

    /// Kills the child for a reason.
    pub(crate) fn stop(&mut self, end: End) {
        if self.ended.is_none() {
            self.stopped.get_or_insert(end);
            kin::kill_group(self.pid);
        }
    }

    /// Notes and kills what outlived the child: its group, and the orphans that are its own with all their descendants.
    pub(crate) fn sweep(&mut self, orphans: &[pid_t]) {
        for process in orphans.iter().flat_map(|orphan| kin::family_of(*orphan)) {
            if kin::runs(process) && self.outlived(process) {
                self.left_behind.insert(process);
            }
        }
        // The child is not reaped yet, so the group's number is still its own.
        kin::kill_group(self.pid);
        for orphan in orphans {
            kin::kill(*orphan);
            kin::reap(*orphan);
        }
    }

    /// Says whether a process left the child's group to go on. One within the group was killed with it, and may only be slow to die.
    fn outlived(&self, process: pid_t) -> bool {
        self.stopped.is_none() || kin::group_of(process) != Some(self.pid)
    }

    /// Says whether the child has replied and waits for another request.
    pub(crate) fn stays(&self) -> bool {
        self.place.is_some() && self.has_replied() && self.ended.is_none() && self.stopped.is_none()
    }

    /// Says whether the child has replied and is exiting, without descendants.
    pub(crate) fn leaves(&mut self, now: Instant) -> bool {
        let has_replied = self.has_replied() && self.place.is_none() && self.ended.is_none() && self.stopped.is_none();
        if !has_replied {
            return false;
        }
        let since = *self.replied.get_or_insert(now);
        now.duration_since(since) >= LEAVES && kin::is_leaving(self.pid) && kin::children_of(self.pid).is_empty()
    }

    /// Says whether the child has replied and has not ended.
    pub(crate) fn is_ending(&self) -> bool {
        self.replied.is_some() && self.ended.is_none()
    }

    fn has_replied(&self) -> bool {
        self.heard.is_sound() && matches!(self.heard.answer, Some(Answer::Reply(_)))
    }

    /// Ends the action of a child that stays. Returns the report, and the child.
    pub(crate) fn give_back(mut self, now: Instant) -> (Finished, Option<Ready>) {
        let (device, next) = (self.device.take(), self.heard.again());
        let finished = self.reply(now, true);
        let Self { pid, mark, pipes, place, .. } = self;
        let ready = place.map(|Parked { key, orders }| Ready {
            key,
            pid,
            mark,
            orders,
            device,
            has_folder: false,
            go: None,
            since: now,
            pipes,
            heard: next,
        });
        (finished, ready)
    }

    /// Ends the action of a child that has replied and exits. Returns the report.
    pub(crate) fn part(mut self, now: Instant) -> Finished {
        self.reply(now, false)
    }

    /// Makes the report of a child that has replied and lives.
    fn reply(&mut self, now: Instant, stayed: bool) -> Finished {
        // It printed before it replied, so the pipes hold the rest.
        self.read_chunks(usize::MAX);
        let usage = Usage {
            wall_ms: milliseconds(now.duration_since(self.before.time)),
            cpu_ms: milliseconds(kin::cpu_of(self.pid).saturating_sub(self.before.cpu)),
            // An exiting child may have returned its memory already, so the samples count, too.
            max_rss_kib: kin::memory_of(self.pid).max(self.before.memory + self.grown) >> 10,
            grown_kib: self.grown >> 10,
        };
        Finished {
            id: self.id,
            end: end_of_answer(self.heard.answer.take()),
            stdout: std::mem::take(&mut self.stdout).finish(),
            stderr: std::mem::take(&mut self.stderr).finish(),
            usage,
            opened: std::mem::take(&mut self.heard.opened).into_iter().collect(),
            left_behind: 0,
            stayed,
        }
    }

    /// Ends the action: reaps the child, and returns the report.
    pub(crate) fn finish(mut self, now: Instant) -> Finished {
        // Everything that could write is dead, so this reads what the pipes still hold.
        self.read_chunks(usize::MAX);
        self.heard.finish();
        let wall = self.ended.unwrap_or(now).duration_since(self.before.time);
        let reaped = kin::reap(self.pid);
        let usage = Usage {
            wall_ms: milliseconds(wall),
            cpu_ms: milliseconds(reaped.map_or(Duration::ZERO, |reaped| reaped.cpu.saturating_sub(self.before.cpu))),
            max_rss_kib: reaped.map_or(0, |reaped| reaped.max_rss_kib),
            grown_kib: self.grown >> 10,
        };
        Finished {
            id: self.id,
            end: end(reaped, self.stopped, &mut self.heard, self.before.oom_kills, self.limits.cpu_ms),
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            usage,
            opened: self.heard.opened.into_iter().collect(),
            left_behind: u32::try_from(self.left_behind.len()).unwrap_or(u32::MAX),
            stayed: false,
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
