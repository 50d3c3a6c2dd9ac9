//! The warm pool: how the children get ready of which the dispatcher says how many there are, and who asks for them.
//!
//! It counts none.

use std::collections::BTreeMap;

use serde_json::Value;
use t2t_plan::dispatcher::Caller;
use t2t_plan::functions::{Queues, REHEARSE, START_DEVICE};
use t2t_plan::imports;
use t2t_protocol::{
    Arguments, DEVICE, Declaration, End, Finished, Init, Input, More, Progress, RandomKind, Reply, ServerKind,
    ToRehearse, WarmChild,
};

use super::job::Job;

/// How many constants and cases a candidate may have told of. The child that is told has no limits yet, and kernel code may have told of any number.
const MOST_TOLD: usize = 100;

/// Returns what the dispatcher has to know of a job.
pub(super) fn caller(job: &Job) -> Caller<'_> {
    Caller {
        op: &job.target.op,
        phase: job.target.phase,
        device: job.device.as_deref(),
        is_interpreted: job.kind == ServerKind::Interpreter,
        opens_files: job.arguments.op.as_ref().is_some_and(|op| op.reference.is_some() || opens_files(op)),
        awaited: job.ready,
    }
}

/// Returns what a child that gets ready for the candidate of the next check is told, where that is one of the same variant as `job`: what this check's candidate told of itself, `ran`.
/// None where somebody's code or files would be opened before the request that they count for.
pub(super) fn likely(job: &Job, ran: &Finished) -> Option<Arguments> {
    let opens = caller(job).opens_files || job.arguments.op.as_ref().is_none_or(|op| op.cases.is_some());
    if job.kind != ServerKind::Interpreter || opens {
        return None;
    }
    let End::Reply(reply) = &ran.end else { return None };
    let told: Progress = serde_json::from_value(Reply::of(reply).ok()?.documents.remove("ran")?).ok()?;
    let Progress { constants, reach, configurations, .. } = told;
    let told = [constants.len(), configurations.least.as_ref().map_or(0, BTreeMap::len), reach.cases.len()];
    if told.iter().any(|count| *count > MOST_TOLD) {
        return None;
    }
    let more = More::Rehearsal(ToRehearse { constants, least: configurations.least, reached: reach.cases });
    Some(Arguments { more, ..job.arguments.clone() })
}

/// Returns whether whoever judges an op opens files that hold values of inputs, or what says what must hold of random results.
fn opens_files(op: &Declaration) -> bool {
    let is_drawn_from_file = |input: &Input| match input {
        Input::Tensor(tensor) => matches!(tensor.init.drawn(), Init::File { .. }),
        Input::Scalar(_) => false,
    };
    let is_judged = op.random.as_ref().is_some_and(|random| random.kind == RandomKind::Judged);
    is_judged || op.inputs.iter().any(is_drawn_from_file)
}

/// Returns how the children of a key get ready that start a device.
pub(super) fn for_device(device: &str, cores: Option<&Vec<usize>>, key: String) -> WarmChild {
    WarmChild {
        key,
        function: START_DEVICE.to_owned(),
        arguments: Value::Null,
        scratch: None,
        environment: [(DEVICE, device), ("CUDA_CACHE_DISABLE", "1")]
            .into_iter()
            .chain(Queues::One.variable())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        cores: cores.cloned(),
        needs: Some(imports::FOR_DEVICES.to_owned()),
    }
}

/// Returns how the children of a key get ready that serve checks on the interpreter; `likely` is what they are told of the next one.
pub(super) fn for_a_check(key: String, likely: Value) -> WarmChild {
    WarmChild {
        key,
        function: REHEARSE.to_owned(),
        arguments: likely,
        scratch: None,
        environment: [(DEVICE.to_owned(), String::new())].into(),
        cores: None,
        needs: None,
    }
}
