//! A check: who prepares, runs and judges it, and what becomes of what they leave.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use t2t_host::cores;
use t2t_host::pool::{Cancel, NoCall};
use t2t_plan::functions;
use t2t_protocol::{End, Fault, Finished, More, ToCandidate, ToFollow, ToJudge};
use t2t_store::fs;

use super::end::{conclude, described, has_passed, not_judged, reply_of, unjudged};
use super::step::{Step, asks_again, text};
use super::{Calls, Performed};
use crate::engine::inputs::Inputs;
use crate::engine::job::Job;
use crate::engine::warm_pool;

/// The file that tells a judge which follows a candidate how this one has ended.
const OVER: &str = "over";

/// How long it is waited for where it has nothing to judge: it stops after the case that it judges.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether an action was cancelled meanwhile.
const LOOK: Duration = Duration::from_millis(50);

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
    let (first, followed) = match follower(job, &candidate, attempt) {
        Some(judge) => both(&candidate, &judge, calls),
        None => (candidate.first(calls), None),
    };
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
    if let Some(likely) = warm_pool::likely(job, &ran) {
        calls.dispatcher.note_likely(likely);
    }
    let mut performed = match followed {
        Some(performed) => performed,
        None => judged(job, calls, &candidate, folder, attempt, &ran),
    };
    performed.opened.extend(ran.opened);
    if let Some(inputs) = prepared {
        performed.opened.extend(inputs.opened.iter().cloned());
        performed.inputs = job.inputs.is_none().then_some(inputs);
    }
    performed
}

/// Has a candidate that `ran` judged after its end. `prepared` is the folder of the op's own cases.
fn judged(
    job: &Job,
    calls: &Calls,
    candidate: &Step,
    prepared: Option<PathBuf>,
    attempt: u64,
    ran: &Finished,
) -> Performed {
    let judge = Step {
        job,
        name: "judge",
        function: &functions::JUDGE,
        more: More::Judge(Box::new(ToJudge {
            prepared: prepared.as_deref().map(text),
            candidate: text(&candidate.folder()),
            attempt,
            end: described(ran),
        })),
        read: prepared.into_iter().chain([candidate.folder()]).collect(),
    };
    let judged = match judge.run(calls) {
        Ok(finished) => finished,
        Err(error) => return Performed::lost(error.to_string()),
    };
    match judged.end {
        End::Reply(_) => conclude(judge.function, &judge.folder(), judged),
        // No kernel code is in that process: torch, or the reference, has died of a case, and there is nothing to judge by.
        End::Signal(_) | End::Memory(_) if matches!(judged.end.fault(), Some(Fault::Kernel(_))) => not_judged(judged),
        _ => unjudged(judged),
    }
}

/// Returns the judge that judges what the candidate has left of each case while it runs the next one, where it may stay for other actions, and there is room for it.
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

/// Runs a candidate for the first time, and its judge beside it. Returns how the candidate ended, and the verdict, where the judge came to one.
fn both(candidate: &Step, judge: &Step, calls: &Calls) -> (Result<Finished, NoCall>, Option<Performed>) {
    let (pool, dispatcher, cancel) = (calls.pool, calls.dispatcher, Cancel::default());
    let (sender, ended) = channel();
    thread::scope(|scope| {
        let follows = cancel.clone();
        scope.spawn(move || {
            let own = Calls { pool, dispatcher, cancel: &follows, times: RefCell::default() };
            // Where it fails, all is judged again by another call.
            let judged = judge.run(&own);
            let _ = sender.send((own.times.into_inner(), judged.ok()));
        });
        let ran = candidate.first(calls);
        let is_judged = match &ran {
            Ok(ran) => tell_end(judge, ran).ok(),
            Err(_) => None,
        };
        let performed = if let Some((times, judged)) = received(&ended, is_judged, calls.cancel) {
            calls.times.borrow_mut().children.extend(times.children);
            let judged = judged.filter(|judged| is_judged == Some(true) && has_documents(judged));
            judged.map(|judged| conclude(judge.function, &judge.folder(), judged))
        } else {
            pool.cancel(&cancel);
            None
        };
        (ran, performed)
    })
}

/// Tells a judge that follows a candidate how that has ended. Returns whether it is to judge that: where the candidate runs again it leaves.
fn tell_end(judge: &Step, ran: &Finished) -> io::Result<bool> {
    let is_judged = !asks_again(ran) && !matches!(ran.end.fault(), Some(Fault::Machine(_)));
    let end = is_judged.then(|| described(ran));
    fs::make_folder(&judge.folder())?;
    fs::write(&judge.folder().join(OVER), json!(end).to_string().as_bytes())?;
    Ok(is_judged)
}

/// Waits for the judge that follows a candidate, which has a time limit of its own; only shortly where it has nothing to judge, and not once `cancel` is set, or where it was told nothing.
fn received<T>(ended: &Receiver<T>, is_judged: Option<bool>, cancel: &Cancel) -> Option<T> {
    let since = Instant::now();
    loop {
        let may_wait = match is_judged {
            Some(true) => !cancel.is_set(),
            Some(false) => since.elapsed() < PATIENCE,
            None => false,
        };
        match ended.recv_timeout(if may_wait { LOOK } else { Duration::ZERO }) {
            Ok(received) => return Some(received),
            Err(RecvTimeoutError::Timeout) if may_wait => {}
            Err(_) => return None,
        }
    }
}

/// Returns whether a judge came to a verdict.
fn has_documents(judged: &Finished) -> bool {
    reply_of(judged).is_some_and(|reply| !reply.documents.is_empty())
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
