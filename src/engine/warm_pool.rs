//! The warm pool: children that are ready before their request: how they get ready, which calls take one, and how many there are.
//!
//! What a child does before its request depends on nothing that a request says, so a call comes to the same with one that was ready and with one that was not.

use serde_json::Value;
use t2t_host::functions::{Function, Queues, REHEARSE, START_DEVICE, WarmUp};
use t2t_host::imports;
use t2t_host::pool::{NoCall, Pool};
use t2t_model::action::Phase;
use t2t_protocol::{DEVICE, Declaration, Init, Input, RandomKind, ServerKind, WarmChild};

use super::job::Job;

/// How many children for measurements wait beside one at the most.
const WHILE_MEASURED: usize = 2;

/// How many judges of a device are: one serves all actions, one after the other.
const JUDGES_OF_DEVICE: usize = 1;

/// What checks on the interpreter ask for their children by.
const CHECK: &str = "check";

/// How many children a build leaves ready for kernels that another follows: for its first check, and for what comes after it.
pub(crate) const AT_REST: usize = 3;

/// Returns the key of the warm child that may run `function` for `job`. None where none may.
pub(super) fn key(job: &Job, function: &Function, queues: Queues) -> Option<String> {
    let is_check = job.target.phase == Phase::Check && job.kind == ServerKind::Interpreter;
    let key = job.device.as_deref().or_else(|| is_check.then_some(CHECK))?;
    if stays(job, function) {
        return Some(judges(key));
    }
    if job.device.is_none() {
        return (function.warm_up != WarmUp::Useless).then(|| key.to_owned());
    }
    match queues {
        Queues::One => Some(key.to_owned()),
        Queues::All => {
            (function.warm_up == WarmUp::OwnWithAllQueues).then(|| format!("{key} compiles {}", job.target.op))
        }
    }
}

/// Returns whether a child that has called `function` may call it again, for another action. To get ready and to end takes several times as long as to judge: on a
/// device CUDA is started, and all that torch launches is loaded. A judge that imports a reference in Python, or opens other files of the op, does not stay: what it opens is
/// that action's, and the file may be another at the next.
pub(super) fn stays(job: &Job, function: &Function) -> bool {
    let opens = job.arguments.op.as_ref().is_some_and(|op| op.reference.is_some() || opens_files(op));
    function.may_stay && !opens
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

fn judges(device: &str) -> String {
    format!("{device} judges")
}

/// Returns how children get ready for the device of `job` while `function` runs, unless that one measures: starting a device takes time, and would take it from what is
/// timed. What measures next makes everything ready itself meanwhile, and waits for them then.
pub(super) fn of_device(job: &Job, function: &Function) -> Vec<WarmChild> {
    let Some(device) = job.device.as_ref().filter(|_| !function.is_timed) else { return Vec::new() };
    let mut awaited = job.ready;
    if job.target.phase != Phase::Check {
        // Once the last check has been judged, none gets ready but in the place of another: what is measured would wait for it.
        awaited = awaited.min(WHILE_MEASURED);
    }
    let mut warm_children = for_device(device, job.spare.as_ref(), awaited);
    // The judge that works now comes back.
    warm_children.retain(|warm_child| !stays(job, function) || warm_child.key != judges(device));
    warm_children
}

/// Returns how children get ready for a device: a judge, and as many others as `awaited` says.
pub(super) fn for_device(device: &str, cores: Option<&Vec<usize>>, awaited: usize) -> Vec<WarmChild> {
    let warm_child = |key: String, most: usize| WarmChild {
        key,
        most,
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
    };
    let mut warm_children = vec![warm_child(judges(device), JUDGES_OF_DEVICE), warm_child(device.to_owned(), awaited)];
    warm_children.retain(|warm_child| warm_child.most > 0);
    warm_children
}

/// Has children ready for the next check on the interpreter, its candidate and its judge, once its server runs. For when nothing is to be done: they take time of the
/// cores while they get ready.
pub(crate) fn for_a_check(pool: &Pool) -> Result<(), NoCall> {
    for key in [CHECK.to_owned(), judges(CHECK)] {
        let warm_child = WarmChild {
            key,
            most: 1,
            function: REHEARSE.to_owned(),
            arguments: Value::Null,
            scratch: None,
            environment: [(DEVICE.to_owned(), String::new())].into(),
            cores: None,
            needs: None,
        };
        pool.keep_ready(ServerKind::Interpreter, &warm_child)?;
    }
    Ok(())
}
