//! The end of a child: what it means for the action, and what the next child learns of it.
//!
//! It does not know what the child was for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde_json::json;
use t2t_model::manifest::canonical_json;
use t2t_model::record::Outcome;
use t2t_plan::functions::Function;
use t2t_protocol::read::Misfit;
use t2t_protocol::{
    CandidateEnd, End, EndKind, Failure, Fault, FaultClass, Finished, Output, PrintedOutput, RaisedError, Reply,
    ReplyOutcome,
};
use t2t_store::fs;

use super::Performed;

/// How much of what a child printed stands in evidence, in bytes a stream.
const SHOWN: usize = 8 << 10;

/// How long a file may be that a child leaves, in bytes. What Triton compiled for one variant is a few million.
const LONGEST: u64 = 256 << 20;

/// Turns the end of a child that called `function` into what came of the action.
pub(super) fn conclude(function: &Function, folder: &Path, finished: Finished) -> Performed {
    let End::Reply(told) = &finished.end else { return unjudged(finished) };
    match Reply::of(told) {
        Ok(reply) => replied_with(folder, reply, finished.opened.into_iter().collect()),
        Err(misfit) => no_reply(function, &misfit, finished),
    }
}

/// Returns what came of an action whose child said something that is no reply: kernel code shares a process with what replies, unless the function is trusted.
fn no_reply(function: &Function, misfit: &Misfit, finished: Finished) -> Performed {
    let mut performed = if function.is_trusted {
        Performed::lost(format!("the harness gave no usable reply: {misfit}"))
    } else {
        let why = format!("the process gave no usable reply: {misfit}");
        failed(FaultClass::NoReply, &why, [&finished.stdout, &finished.stderr])
    };
    performed.opened = finished.opened.into_iter().collect();
    performed
}

fn replied_with(folder: &Path, reply: Reply, opened: BTreeSet<String>) -> Performed {
    let outcome = match (reply.outcome, &reply.class) {
        (ReplyOutcome::Passed, _) => Outcome::Passed,
        (ReplyOutcome::Rejected, Some(class)) => Outcome::Rejected { class: class.clone() },
        (ReplyOutcome::NotJudged, _) => {
            Outcome::NotJudged { reason: reply.reason.clone().unwrap_or_else(|| "no reason is told".to_owned()) }
        }
        (ReplyOutcome::Rejected | ReplyOutcome::Again, _) => {
            return Performed { opened, ..Performed::lost("the harness gave a reply without an outcome") };
        }
    };
    let files = match left(folder, &reply) {
        Ok(files) => files,
        Err(unusable) => return Performed { opened, ..*unusable },
    };
    let documents = reply.documents.into_iter().map(|(name, value)| (name, canonical_json(&value).into_bytes()));
    Performed {
        outcome: Some(outcome),
        documents: documents.collect(),
        files,
        opened,
        cites: reply.cites,
        ..Performed::default()
    }
}

/// Reads the files that a reply names. Kernel code may have put anything in their place: what is no file of the child's own folder is no reply.
fn left(folder: &Path, reply: &Reply) -> Result<BTreeMap<String, Vec<u8>>, Box<Performed>> {
    let read = |(name, path): (&String, &String)| match fs::read_below(folder, Path::new(path), LONGEST) {
        Ok(bytes) => Ok((name.clone(), bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {
            let why = format!("the process replied, but cannot have left `{path}`: {error}");
            Err(failed(FaultClass::NoReply, &why, [&Output::default(), &Output::default()]).into())
        }
        Err(error) => Err(Performed::lost(format!("cannot read `{}`: {error}", folder.join(path).display())).into()),
    };
    reply.files.iter().map(read).collect()
}

/// Returns what came of an action whose child did not reply: the way it ended is all there is to say.
pub(super) fn unjudged(finished: Finished) -> Performed {
    let mut performed = match finished.end.fault() {
        Some(Fault::Kernel(class)) => {
            failed(class, &format!("the process {}", finished.end), [&finished.stdout, &finished.stderr])
        }
        Some(Fault::Machine(reason)) => Performed::lost(with_output(reason, &finished)),
        None => Performed::lost("the harness gave an unexpected reply"),
    };
    performed.opened = finished.opened.into_iter().collect();
    performed
}

/// Returns what came of a check whose judge died: the kernel was not in that process, so its death says nothing of the kernel.
pub(super) fn not_judged(finished: Finished) -> Performed {
    let reason = format!("torch, or the reference, ended the process that judges: it {}", finished.end);
    let opened = finished.opened.into_iter().collect();
    Performed { outcome: Some(Outcome::NotJudged { reason }), opened, ..Performed::default() }
}

/// What helps where an action does not end.
const NO_END: &str = "it does not end, or takes longer than ops.yaml allows: `bench: {timeout: …}` for compiles, tunes and benches, `check: {timeout: …}` for the rest";

/// Returns the rejection of a kernel whose process ended so.
fn failed(class: FaultClass, message: &str, [stdout, stderr]: [&Output; 2]) -> Performed {
    let output = PrintedOutput { stdout: shown(stdout), stderr: shown(stderr), truncated: cut([stdout, stderr]) };
    let hint = (class == FaultClass::Timeout).then(|| NO_END.to_owned());
    let failure = Failure { output: Some(output), hint, ..Failure::new(class.as_str(), message) };
    Performed::rejected(class.as_str(), &[("failure", json!(failure))])
}

fn with_output(reason: String, finished: &Finished) -> String {
    match &finished.end {
        End::Raised { traceback, .. } => format!("{reason}\n{traceback}"),
        _ => reason,
    }
}

pub(super) fn replied(finished: &Finished) -> bool {
    matches!(finished.end, End::Reply(_))
}

pub(super) fn has_passed(finished: &Finished) -> bool {
    reply_of(finished).is_some_and(|reply| reply.outcome == ReplyOutcome::Passed)
}

/// Returns what a child replied; None where it did not, or where that is no reply.
pub(super) fn reply_of(finished: &Finished) -> Option<Reply> {
    match &finished.end {
        End::Reply(reply) => Reply::of(reply).ok(),
        _ => None,
    }
}

/// Returns what the judge is told of how the candidate's child ended.
pub(super) fn described(finished: &Finished) -> CandidateEnd {
    let mut told = CandidateEnd {
        kind: EndKind::Reply,
        message: finished.end.to_string(),
        code: None,
        signal: None,
        how: None,
        error: None,
        seconds: None,
        stdout: shown(&finished.stdout),
        stderr: shown(&finished.stderr),
        truncated: cut([&finished.stdout, &finished.stderr]),
        left_behind: finished.left_behind,
    };
    told.kind = match &finished.end {
        End::Reply(_) => EndKind::Reply,
        End::Raised { kind, message, traceback } => {
            let (kind, message, traceback) = (kind.clone(), message.clone(), traceback.clone());
            told.error = Some(RaisedError { kind, message, traceback });
            EndKind::Raised
        }
        End::Exit(code) => {
            told.code = Some(*code);
            EndKind::Exit
        }
        End::Signal(number) => {
            told.signal = Some(*number);
            EndKind::Signal
        }
        End::Timeout => EndKind::Timeout,
        End::CpuLimit => EndKind::CpuLimit,
        End::Memory(how) => {
            told.how = Some(how.clone());
            EndKind::Memory
        }
        End::OutputLimit => EndKind::OutputLimit,
        End::NoReply => EndKind::NoReply,
        End::BadReply(_) => EndKind::BadReply,
        End::Refused(_) => EndKind::Refused,
        End::Cancelled => EndKind::Cancelled,
    };
    told
}

fn shown(output: &Output) -> String {
    let text = output.text();
    if text.len() <= SHOWN {
        return text;
    }
    let (head, tail) = (text.floor_char_boundary(SHOWN / 2), text.ceil_char_boundary(text.len() - SHOWN / 2));
    format!("{}\n[{} bytes left out]\n{}", &text[..head], output.total.saturating_sub(SHOWN as u64), &text[tail..])
}

fn cut(streams: [&Output; 2]) -> bool {
    streams.iter().any(|output| output.total > SHOWN as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use t2t_plan::functions;

    use super::*;

    fn ended(function: &Function, reply: Value) -> (Outcome, String) {
        let performed = conclude(function, Path::new("/nowhere"), Finished::bare(1, End::Reply(reply)));
        let told = performed.documents.get("failure").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        (performed.outcome.unwrap(), told.unwrap_or_default())
    }

    #[test]
    fn what_is_no_reply_names_the_field_and_is_the_kernels_fault_where_kernel_code_was_in_the_process() {
        let odd = json!({"outcome": "passed", "class": null, "cites": "no", "documents": {}, "files": {}});
        let (outcome, failure) = ended(&functions::BENCH, odd.clone());
        assert_eq!(outcome, Outcome::Rejected { class: "no-reply".to_owned() });
        let told = "gave no usable reply: `cites`: invalid type: string \\\"no\\\", expected a boolean";
        assert!(failure.contains(told), "{failure}");
        let (outcome, failure) = ended(&functions::ANALYZE, odd);
        let Outcome::Lost { reason } = outcome else { panic!("{outcome:?}") };
        assert!(reason.starts_with("the harness gave no usable reply: `cites`: "), "{reason}");
        assert_eq!(failure, "");
    }

    #[test]
    fn what_a_reply_need_not_have_is_not_asked_for_and_its_documents_are_kept_as_they_came() {
        let documents = json!({"bench": {"nobody": ["knows", 1.50]}});
        let reply = json!({"outcome": "passed", "class": null, "documents": documents, "device_spans": [["garbage"]]});
        let performed = conclude(&functions::BENCH, Path::new("/nowhere"), Finished::bare(1, End::Reply(reply)));
        assert_eq!(performed.outcome, Some(Outcome::Passed));
        assert_eq!(performed.documents["bench"], br#"{"nobody":["knows",1.5]}"#);
    }
}
