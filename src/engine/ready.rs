//! Children that are ready before their request: how they get ready, which calls take one, and how many there are.
//!
//! What a child does before its request depends on nothing that a request says, so a call comes to the same with one that was ready and with one that was not.

use t2t_protocol::{Reserve, ServerKind};

use super::perform::Job;
use crate::action::Phase;
use crate::pool::{NoCall, Pool};

/// How many children of a device are kept ready: a bench, and the judge after it.
pub(super) const OF_DEVICE: usize = 2;

/// How many children are kept ready for a check on the interpreter: its candidate and its judge.
const OF_CHECK: usize = 2;

/// What checks on the interpreter ask for their children by.
const CHECK: &str = "check";

/// Functions that time from their beginning to their end, but for what little they do before. A baseline compiles first.
const TIMED: [&str; 4] = ["bench:bench", "tune:tune", "calibrate:calibrate", "sweep:sweep"];

/// Functions that run none of the code that is made ready: waiting for such a child would be in vain.
const WITHOUT: [&str; 1] = ["prepare:prepare"];

/// Returns what the call of `function` by the action of `job` asks for a child by.
pub(super) fn key(job: &Job, function: &str) -> Option<String> {
    let is_check = job.target.phase == Phase::Check && job.kind == ServerKind::Interpreter;
    let key = job.device.clone().or_else(|| is_check.then(|| CHECK.to_owned()));
    key.filter(|_| !WITHOUT.contains(&function))
}

/// Returns how a child gets ready for the device of `job` while `function` runs, unless that one measures: starting a device takes time, and would take it from
/// what is timed.
pub(super) fn of_device(job: &Job, function: &str) -> Option<Reserve> {
    let device = job.device.as_ref().filter(|_| !TIMED.contains(&function))?;
    let environment = [("CUDA_VISIBLE_DEVICES", device.as_str()), ("CUDA_CACHE_DISABLE", "1")];
    Some(Reserve {
        key: device.clone(),
        function: "t2t_harness.ready:start_device".to_owned(),
        environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        cores: job.cores.clone(),
    })
}

/// Has children ready for the next check on the interpreter, once its server runs. For when nothing is to be done: they take time of the cores while they get ready.
pub fn for_a_check(pool: &Pool) -> Result<(), NoCall> {
    let reserve = Reserve {
        key: CHECK.to_owned(),
        function: "t2t_harness.ready:rehearse".to_owned(),
        environment: [("CUDA_VISIBLE_DEVICES".to_owned(), String::new())].into(),
        cores: None,
    };
    pool.keep_ready(ServerKind::Interpreter, &reserve, OF_CHECK)
}
