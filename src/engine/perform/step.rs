//! One child of an action: its request, from the action's job and what the child is for, and its call.
//!
//! It does not know which children an action has, nor what their replies mean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use t2t_host::pool::NoCall;
use t2t_model::action::Phase;
use t2t_plan::functions::{Function, PHASES, Queues};
use t2t_plan::imports;
use t2t_protocol::{Arguments, Common, DEVICE, End, Finished, Limits, More, ReplyOutcome, Request, Sandbox};
use t2t_store::fs;

use super::Calls;
use super::end::reply_of;
use crate::engine::job::Job;
use crate::engine::warm_pool;

/// How many bytes of memory a child that runs kernel code on the CPU may take.
const CPU_MEMORY: u64 = 2 << 30;

/// How many bytes more it may take for each C++ compiler that reads torch's headers.
const COMPILER_MEMORY: u64 = 2 << 30;

/// How many bytes more it may take for each further process that it compiles in.
const PROCESS_MEMORY: u64 = 1 << 30;

/// How much longer than its CPU time an action on the CPU lane may take by the clock: other work shares the cores, and what only waits must end.
const PATIENCE: u32 = 2;

/// How many bytes of files a child may leave or hold in its scratch folder, and which part of what is free there.
const SCRATCH: u64 = 32 << 30;
const PART_OF_FREE: u64 = 2;

/// How far above an action's scratch folder lies that of all builds: theirs come and go.
const ABOVE: usize = 2;

/// The variable that names further folders of the workspace that are imported from, parted by colons.
const SOURCES: &str = "T2T_SOURCES";

/// One child of an action.
pub(super) struct Step<'a> {
    pub(crate) job: &'a Job,
    pub(crate) name: &'a str,
    /// What it calls.
    pub(crate) function: &'static Function,
    /// What its request holds beside what all of the action hold.
    pub(crate) more: More,
    /// What it may read beside what all of the action may.
    pub(crate) read: Vec<PathBuf>,
}

impl Step<'_> {
    pub(crate) fn folder(&self) -> PathBuf {
        self.job.scratch.join(self.name)
    }

    /// Calls the function, and once more in a child with all queues of its device where it asks for them.
    pub(crate) fn run(&self, calls: &Calls) -> Result<Finished, NoCall> {
        let first = self.first(calls)?;
        let may_ask = self.function.queues != Queues::All;
        if may_ask && asks_again(&first) { self.again(calls, first) } else { Ok(first) }
    }

    /// Calls the function with the queues that it has at first.
    pub(crate) fn first(&self, calls: &Calls) -> Result<Finished, NoCall> {
        self.call(calls, self.function.queues)
    }

    /// Calls the function with all queues, where its first call has `finished` by asking for that. What it left is gone.
    pub(crate) fn again(&self, calls: &Calls, finished: Finished) -> Result<Finished, NoCall> {
        if let Err(error) = fs::remove(&self.folder()) {
            return Ok(Finished::bare(0, End::Refused(format!("cannot empty `{}`: {error}", self.folder().display()))));
        }
        let mut again = self.call(calls, Queues::All)?;
        again.opened.extend(finished.opened);
        Ok(again)
    }

    fn call(&self, calls: &Calls, queues: Queues) -> Result<Finished, NoCall> {
        let folder = self.folder();
        if let Err(error) = fs::make_folder(&folder) {
            return Ok(Finished::bare(0, End::Refused(format!("cannot make `{}`: {error}", folder.display()))));
        }
        let device = self.job.device.as_deref();
        let request = self.request(&folder, queues, device.and_then(|device| calls.pool.timed_until(device)));
        let finished = calls.call(self.job, (self.function, queues), request);
        if let Some((device, until)) = device.zip(calls.times.borrow().timed_until()) {
            calls.pool.note_timed(device, until);
        }
        finished
    }

    pub(crate) fn request(&self, folder: &Path, queues: Queues, timed_until: Option<u64>) -> Request {
        let undisturbed = self.function.is_timed;
        let told = self.job.arguments.clone();
        let common = Common { scratch: text(folder), is_told_of_quiet: undisturbed, timed_until, ..told.common };
        let arguments = Arguments { common, more: self.more.clone(), ..told };
        Request {
            id: 0,
            function: format!("{PHASES}{}", self.function.name),
            arguments: json!(arguments),
            scratch: text(folder),
            environment: self.environment(folder, queues),
            limits: self.limits(),
            sandbox: Some(self.sandbox()),
            watch_under: (!self.stays()).then(|| text(&self.job.root)),
            reserve: warm_pool::caller(self.job).key(self.function, queues),
            stays: self.stays(),
            undisturbed,
            needs: imports::needed(self.function, self.job.device.is_some()).map(str::to_owned),
        }
    }

    /// Returns whether the child serves other actions, too. It opens no sources.
    fn stays(&self) -> bool {
        warm_pool::caller(self.job).stays(self.function)
    }

    fn environment(&self, folder: &Path, queues: Queues) -> BTreeMap<String, String> {
        let few = queues.variable().filter(|_| self.job.device.is_some());
        let own = few.map(|(name, value)| (name.to_owned(), value.to_owned()));
        environment(self.job, folder).into_iter().chain(own).collect()
    }

    /// On the CPU lane a deadline counts CPU time: how fast the clock runs beside it is the machine's doing.
    fn limits(&self) -> Limits {
        let deadline = milliseconds(self.job.deadline);
        let (cores, nice) = (self.job.cores.clone(), self.job.nice);
        // A judge that stays, or anything else without kernel code, fills nothing by itself.
        let scratch_bytes = (!self.function.is_trusted).then(|| self.room());
        if self.job.device.is_some() {
            return Limits { cores, nice, scratch_bytes, ..Limits::wall(deadline) };
        }
        let wall = deadline.saturating_mul(PATIENCE.into());
        let more = if self.job.is_extension && self.job.target.phase == Phase::Compile {
            self.job.processes.max(1) as u64 * COMPILER_MEMORY
        } else {
            self.job.processes.saturating_sub(1) as u64 * PROCESS_MEMORY
        };
        let memory_bytes = (!self.function.is_trusted).then_some(CPU_MEMORY + more);
        Limits { cpu_ms: Some(deadline), memory_bytes, scratch_bytes, cores, nice, ..Limits::wall(wall) }
    }

    /// Returns how many bytes its scratch folder may hold: others need room, too.
    fn room(&self) -> u64 {
        fs::free(&self.job.root).map_or(SCRATCH, |free| SCRATCH.min(free / PART_OF_FREE))
    }

    fn sandbox(&self) -> Sandbox {
        let kernels: Vec<PathBuf> = [self.job.root.join("kernels")].iter().chain(&self.job.readable).cloned().collect();
        let device = self.job.device.is_some();
        if self.stays() {
            // What it is to judge lies in the folders of actions to come.
            let all = self.job.scratch.ancestors().nth(ABOVE).unwrap_or(&self.job.scratch);
            return Sandbox { read: kernels.iter().map(|path| text(path)).collect(), write: vec![text(all)], device };
        }
        let read = kernels.iter().chain(&self.job.read).chain(&self.read).map(|path| text(path)).collect();
        Sandbox { read, write: Vec::new(), device }
    }
}

/// Returns the variables of a child of a job that works in `folder`.
pub(crate) fn environment(job: &Job, folder: &Path) -> BTreeMap<String, String> {
    let threads = job.threads.to_string();
    let own = [
        ("TRITON_CACHE_DIR", text(&folder.join("triton"))),
        ("TRITON_DISABLE_LINE_INFO", "1".to_owned()),
        ("CUDA_CACHE_PATH", text(&folder.join("cuda"))),
        (DEVICE, job.device.clone().unwrap_or_default()),
        ("TORCHINDUCTOR_CACHE_DIR", text(&folder.join("inductor"))),
        ("OMP_NUM_THREADS", threads.clone()),
        ("MKL_NUM_THREADS", threads),
        (SOURCES, job.sources.join(":")),
    ];
    own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns whether the function wants to be called again in a child with all queues of its device: the kernel uses more than one stream.
pub(super) fn asks_again(finished: &Finished) -> bool {
    reply_of(finished).is_some_and(|reply| reply.outcome == ReplyOutcome::Again)
}

/// Returns a path as requests hold it.
pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
