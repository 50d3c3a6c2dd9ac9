//! A check: who prepares, runs and judges it, and what becomes of what they leave.

use std::cell::RefCell;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use t2t_host::cores;
use t2t_host::pool::{Cancel, NoCall};
use t2t_plan::functions;
use t2t_protocol::{End, Fault, Finished, More, ToCandidate, ToFollow, ToJudge};
use t2t_store::fs;

use super::end::{conclude, described, has_passed, not_judged, unjudged};
use super::step::{Step, asks_again, text};
use super::{Calls, Performed};
use crate::engine::inputs::Inputs;
use crate::engine::job::Job;
use crate::engine::warm_pool;

/// The file that tells a judge which follows a candidate that this one has ended.
const OVER: &str = "over";

/// How long it is waited for then: it stops after the case that it judges.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a check: the inputs of the op's own cases are prepared, where it has any, the candidate runs, its outputs are judged, by children that share nothing but folders.
pub(super) fn check(job: &Job, calls: &Calls) -> Performed {
    let prepared = match has_own_cases(job).then(|| prepared(job, calls)).transpose() {
        Ok(prepared) => prepared,
        Err(ended) => return *ended,
    };
    let folder = prepared.as_ref().map(|inputs| inputs.folder.clone());
    let candidate = Step {
        job,
        name: "candidate",
        function: &functions::CANDIDATE,
        more: More::Candidate(ToCandidate { inputs: folder.as_deref().map(text) }),
        read: folder.clone().into_iter().collect(),
    };
    // Tells what a judge has judged of this candidate from what it has of another that ran in the same folder.
    let mut attempt = cores::monotonic();
    let first = follower(job, &candidate, attempt)
        .map_or_else(|| candidate.first(calls), |judge| both(&candidate, &judge, calls));
    let ran = first.and_then(|first| {
        if !asks_again(&first) {
            return Ok(first);
        }
        attempt = cores::monotonic();
        candidate.again(calls, first)
    });
    let ran = match ran {
        Ok(finished) => finished,
        Err(error) => return Performed::lost(error.to_string()),
    };
    if let Some(Fault::Machine(reason)) = ran.end.fault() {
        return Performed::lost(reason);
    }
    let judge = Step {
        job,
        name: "judge",
        function: &functions::JUDGE,
        more: More::Judge(Box::new(ToJudge {
            prepared: folder.as_deref().map(text),
            candidate: text(&candidate.folder()),
            attempt,
            end: described(&ran),
        })),
        read: folder.into_iter().chain([candidate.folder()]).collect(),
    };
    let judged = match judge.run(calls) {
        Ok(finished) => finished,
        Err(error) => return Performed::lost(error.to_string()),
    };
    let mut performed = match judged.end {
        End::Reply(_) => conclude(judge.function, &judge.folder(), judged),
        // No kernel code is in that process: torch, or the reference, has died of a case, and there is nothing to judge by.
        End::Signal(_) if matches!(judged.end.fault(), Some(Fault::Kernel(_))) => not_judged(judged),
        _ => unjudged(judged),
    };
    performed.opened.extend(ran.opened);
    if let Some(inputs) = prepared {
        performed.opened.extend(inputs.opened.iter().cloned());
        performed.inputs = job.inputs.is_none().then_some(inputs);
    }
    performed
}

/// Returns the judge that judges what the candidate has left of each case while it runs the next one, where it stays for the request to judge them all, and there is room for it.
/// On a device a candidate waits for its host most of the time, and nothing is timed.
fn follower<'a>(job: &'a Job, candidate: &Step, attempt: u64) -> Option<Step<'a>> {
    let has_room = job.has_room || job.device.is_some();
    let is_to_follow = has_room && !has_own_cases(job) && warm_pool::caller(job).stays(&functions::FOLLOW);
    is_to_follow.then(|| Step {
        job,
        name: "follower",
        function: &functions::FOLLOW,
        more: More::Follow(ToFollow { prepared: None, candidate: text(&candidate.folder()), attempt }),
        read: vec![candidate.folder()],
    })
}

/// Runs a candidate for the first time, and its judge beside it, and returns how the candidate ended. What becomes of the judge is of no consequence.
fn both(candidate: &Step, judge: &Step, calls: &Calls) -> Result<Finished, NoCall> {
    let (pool, dispatcher, cancel) = (calls.pool, calls.dispatcher, Cancel::default());
    let (sender, ended) = channel();
    thread::scope(|scope| {
        let follows = cancel.clone();
        scope.spawn(move || {
            let own = Calls { pool, dispatcher, cancel: &follows, times: RefCell::default() };
            // It judges nothing that is not judged again where it fails.
            let _ = judge.run(&own);
            let _ = sender.send(own.times.into_inner());
        });
        let ran = candidate.first(calls);
        let has_ended = ran.is_ok()
            && fs::make_folder(&judge.folder()).is_ok()
            && fs::write(&judge.folder().join(OVER), &[]).is_ok();
        match ended.recv_timeout(if has_ended { PATIENCE } else { Duration::ZERO }) {
            Ok(times) => calls.times.borrow_mut().children.extend(times.children),
            Err(_) => pool.cancel(&cancel),
        }
        ran
    })
}

/// Returns the inputs of the op's own cases, which the check of another variant may have prepared. They are the same for all.
pub(super) fn prepared(job: &Job, calls: &Calls) -> Result<Inputs, Box<Performed>> {
    if let Some(inputs) = &job.inputs {
        return Ok(inputs.clone());
    }
    let prepare =
        Step { job, name: "prepare", function: &functions::PREPARE, more: More::Nothing {}, read: Vec::new() };
    let finished = prepare.run(calls).map_err(|error| Box::new(Performed::lost(error.to_string())))?;
    if !has_passed(&finished) {
        // The op's `cases.py` is at fault, or took too long.
        return Err(conclude(prepare.function, &prepare.folder(), finished).into());
    }
    Ok(Inputs { folder: prepare.folder(), opened: finished.opened })
}

/// Returns whether the op has a `cases.py`. All other cases are made of their names alone, by whoever needs them.
pub(super) fn has_own_cases(job: &Job) -> bool {
    job.arguments.op.as_ref().is_some_and(|op| op.cases.is_some())
}
