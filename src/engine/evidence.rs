//! Evidence of rejections: made where no child ran, and found again in what an action left.
//!
//! docs/design/harness.md has the form of the documents.

use serde_json::{Value, json};
use t2t_model::action::Target;
use t2t_model::digest::Digest;
use t2t_model::event::Fault;
use t2t_model::problem::Problem;
use t2t_model::record::Record;
use t2t_protocol::{Failure, SourcePlace};
use t2t_report::render;

use crate::engine::perform::Performed;

/// The class of a kernel file that cannot be used.
pub(crate) const SOURCE: &str = "source";

/// Returns the end of an action whose kernel file cannot be used: no child runs.
#[must_use]
pub(crate) fn unusable(problem: &Problem) -> Performed {
    let failure = failure_of(problem);
    let verdict = json!({"verdict": "rejected", "class": SOURCE, "reason": problem.message, "cases": {}});
    let evidence = json!({
        "cases": [], "tolerances": {}, "lint": {}, "unfit": [], "repeat": null, "constants": {},
        "configurations": {"tried": 0, "dropped": []}, "worst": null, "notes": [], "failure": failure,
        "output": {"stdout": "", "stderr": "", "truncated": false},
    });
    Performed::rejected(SOURCE, &[("verdict", verdict), ("evidence", evidence), ("failure", json!(failure))])
}

fn failure_of(problem: &Problem) -> Failure {
    let place =
        problem.line.map(|line| SourcePlace { file: problem.file.clone(), line: Some(line), column: problem.column });
    let message =
        if place.is_some() { problem.message.clone() } else { format!("{}: {}", problem.file, problem.message) };
    Failure { place, excerpt: problem.excerpt.clone(), hint: problem.hint.clone(), ..Failure::new(SOURCE, message) }
}

/// Returns the document `failure` of a rejected action, read through `document`; null where it left none.
pub(crate) fn failure<E>(record: &Record, document: impl Fn(Digest) -> Result<Value, E>) -> Result<Value, E> {
    if let Some(blob) = record.outputs.get("failure") {
        return document(blob.digest);
    }
    match record.outputs.get("evidence") {
        Some(blob) => Ok(document(blob.digest)?["failure"].clone()),
        None => Ok(Value::Null),
    }
}

/// Returns the message of a rejection for a terminal: that of the document `failure`, as `target`'s.
#[must_use]
pub(crate) fn text(failure: &Value, target: &Target) -> String {
    render::problem::Problem::of(target.phase.name(), failure).text(&target.to_string())
}

/// Returns the parts of a rejection of `class`: those of the document `failure`, as `target`'s.
#[must_use]
pub(crate) fn fault(class: &str, failure: &Value, target: &Target) -> Fault {
    let problem = render::problem::Problem::of(target.phase.name(), failure);
    let (line, column) = problem.place.as_ref().map_or((None, None), |place| (place.line, place.column));
    Fault {
        class: class.to_owned(),
        case: problem.case,
        message: problem.message,
        file: problem.place.map(|place| place.file),
        line,
        column,
        excerpt: problem.excerpt,
        hint: problem.hint,
    }
}

/// Returns the parts of the rejection of a kernel file that cannot be used.
#[must_use]
pub(crate) fn fault_of(problem: &Problem) -> Fault {
    Fault {
        class: SOURCE.to_owned(),
        case: None,
        message: problem.message.clone(),
        file: Some(problem.file.clone()),
        line: problem.line,
        column: problem.column,
        excerpt: problem.excerpt.clone(),
        hint: problem.hint.clone(),
    }
}
