//! The end of a child: what it says of the action, and what the next child is told of it.
//!
//! It does not know what the child was for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use t2t_model::manifest::canonical_json;
use t2t_model::record::Outcome;
use t2t_protocol::{End, Fault, FaultClass, Finished, Output};
use t2t_store::fs;

use super::Performed;

/// How much of what a child printed stands in evidence, in bytes a stream.
const SHOWN: usize = 8 << 10;

/// How long a file may be that a child leaves, in bytes. What Triton compiled for one variant is a few million.
const LONGEST: u64 = 256 << 20;

/// Turns the end of a child into what came of the action.
pub(super) fn conclude(folder: &Path, finished: Finished) -> Performed {
    match &finished.end {
        End::Reply(reply) => replied_with(folder, reply, finished.opened.iter().cloned().collect()),
        _ => unjudged(finished),
    }
}

fn replied_with(folder: &Path, reply: &Value, opened: BTreeSet<String>) -> Performed {
    let outcome = match (reply["outcome"].as_str(), reply["class"].as_str()) {
        (Some("passed"), _) => Outcome::Passed,
        (Some("rejected"), Some(class)) => Outcome::Rejected { class: class.to_owned() },
        (Some("not-judged"), _) => {
            Outcome::NotJudged { reason: reply["reason"].as_str().unwrap_or("no reason is told").to_owned() }
        }
        _ => Outcome::Lost { reason: "the harness gave a reply without an outcome".to_owned() },
    };
    let documents = reply["documents"].as_object().into_iter().flatten();
    let files = match left(folder, reply) {
        Ok(files) => files,
        Err(unusable) => return Performed { opened, ..*unusable },
    };
    Performed {
        outcome: Some(outcome),
        documents: documents.map(|(name, value)| (name.clone(), canonical_json(value).into_bytes())).collect(),
        files,
        opened,
        cites: reply["cites"].as_bool().unwrap_or(false),
        ..Performed::default()
    }
}

/// Reads the files that a reply names. Kernel code may have put anything in their place: what is no file of the child's own folder is no reply.
fn left(folder: &Path, reply: &Value) -> Result<BTreeMap<String, Vec<u8>>, Box<Performed>> {
    let named = reply["files"].as_object().into_iter().flatten();
    let read = |(name, path): (&String, &Value)| {
        let path = path.as_str().unwrap_or_default();
        match fs::read_below(folder, Path::new(path), LONGEST) {
            Ok(bytes) => Ok((name.clone(), bytes)),
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {
                let why = format!("the process replied, but cannot have left `{path}`: {error}");
                Err(failed(FaultClass::NoReply, &why, [&Output::default(), &Output::default()]).into())
            }
            Err(error) => {
                Err(Performed::lost(format!("cannot read `{}`: {error}", folder.join(path).display())).into())
            }
        }
    };
    named.map(read).collect()
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

/// Returns the rejection of a kernel whose process ended so.
fn failed(class: FaultClass, message: &str, [stdout, stderr]: [&Output; 2]) -> Performed {
    let failure = json!({
        "class": class.as_str(), "case": null, "given": null, "message": message, "place": null, "excerpt": null,
        "hint": null, "traceback": [], "index": null, "got": null, "expected": null, "max_abs": null, "max_rel": null,
        "bad": null, "total": null,
        "output": {"stdout": shown(stdout), "stderr": shown(stderr), "truncated": cut([stdout, stderr])},
    });
    Performed::rejected(class.as_str(), &[("failure", failure)])
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
    matches!(&finished.end, End::Reply(reply) if reply["outcome"] == "passed")
}

/// Returns what the judge is told of how the candidate's child ended.
pub(super) fn described(finished: &Finished) -> Value {
    let (kind, detail) = match &finished.end {
        End::Reply(_) => ("reply", Value::Null),
        End::Raised { kind, message, traceback } => {
            ("raised", json!({"type": kind, "message": message, "traceback": traceback}))
        }
        End::Exit(code) => ("exit", json!(code)),
        End::Signal(number) => ("signal", json!(number)),
        End::Timeout => ("timeout", Value::Null),
        End::CpuLimit => ("cpu-limit", Value::Null),
        End::Memory(how) => ("memory", json!(how)),
        End::OutputLimit => ("output-limit", Value::Null),
        End::NoReply => ("no-reply", Value::Null),
        End::BadReply(reason) => ("bad-reply", json!(reason)),
        End::Refused(reason) => ("refused", json!(reason)),
        End::Cancelled => ("cancelled", Value::Null),
    };
    let of = |wanted: &str| if kind == wanted { detail.clone() } else { Value::Null };
    json!({
        "kind": kind,
        "message": finished.end.to_string(),
        "code": of("exit"),
        "signal": of("signal"),
        "how": of("memory"),
        "error": of("raised"),
        "seconds": null,
        "stdout": shown(&finished.stdout),
        "stderr": shown(&finished.stderr),
        "truncated": cut([&finished.stdout, &finished.stderr]),
        "left_behind": finished.left_behind,
    })
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
