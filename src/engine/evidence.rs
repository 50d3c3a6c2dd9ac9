//! Evidence of rejections: made where no child ran, and found again in what an action left.
//!
//! docs/design/harness.md has the form of the documents.

use serde_json::json;
use t2t_model::action::Target;
use t2t_model::digest::Digest;
use t2t_model::event::Fault;
use t2t_model::problem::Problem;
use t2t_model::record::Record;
use t2t_protocol::{CaseRow, CaseVerdict, CheckVerdict, Evidence, Failure, SourcePlace, Verdict, read};
use t2t_report::render;

use crate::engine::perform::Performed;

/// The class of a kernel file that cannot be used.
pub(crate) const SOURCE: &str = "source";

/// Returns the end of an action whose kernel file cannot be used: no child runs.
#[must_use]
pub(crate) fn unusable(problem: &Problem) -> Performed {
    let failure = failure_of(problem);
    let verdict = Verdict {
        verdict: CheckVerdict::Rejected,
        class: Some(SOURCE.to_owned()),
        reason: Some(problem.message.clone()),
        ..Verdict::default()
    };
    let evidence = Evidence { failure: Some(failure.clone()), ..Evidence::default() };
    Performed::rejected(
        SOURCE,
        &[("verdict", json!(verdict)), ("evidence", json!(evidence)), ("failure", json!(failure))],
    )
}

fn failure_of(problem: &Problem) -> Failure {
    let place =
        problem.line.map(|line| SourcePlace { file: problem.file.clone(), line: Some(line), column: problem.column });
    let message =
        if place.is_some() { problem.message.clone() } else { format!("{}: {}", problem.file, problem.message) };
    Failure { place, excerpt: problem.excerpt.clone(), hint: problem.hint.clone(), ..Failure::new(SOURCE, message) }
}

/// Returns the document `failure` of a rejected action, whose documents `bytes` reads; a blank one where it left none.
pub(crate) fn failure<E>(record: &Record, bytes: impl Fn(Digest) -> Result<Vec<u8>, E>) -> Result<Failure, E> {
    if let Some(blob) = record.outputs.get("failure") {
        return Ok(read::document(&bytes(blob.digest)?).unwrap_or_default());
    }
    let Some(blob) = record.outputs.get("evidence") else { return Ok(Failure::default()) };
    let evidence: Evidence = read::document(&bytes(blob.digest)?).unwrap_or_default();
    Ok(evidence.failure.unwrap_or_default())
}

/// Returns the evidence of a check whose documents `bytes` reads; None of another action.
pub(crate) fn of_check<E>(
    record: &Record,
    bytes: impl Fn(Digest) -> Result<Vec<u8>, E>,
) -> Result<Option<Evidence>, E> {
    let Some(blob) = record.outputs.get("evidence") else { return Ok(None) };
    Ok(Some(read::document(&bytes(blob.digest)?).unwrap_or_default()))
}

/// Returns how many cases passed, and how many are neither right nor wrong: `3 of 5 cases passed, 2 dropped`.
#[must_use]
pub(crate) fn counted(cases: &[CaseRow]) -> String {
    let count = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
    let mut said = format!("{} of {} cases passed", count(CaseVerdict::Passed), cases.len());
    for (verdict, word) in [(CaseVerdict::Dropped, "dropped"), (CaseVerdict::NotJudged, "not judged")] {
        let those = count(verdict);
        if those > 0 {
            said += &format!(", {those} {word}");
        }
    }
    said
}

/// What the reason of a case begins with that torch, or the reference, refuses.
const REFUSES: [&str; 2] = ["torch refuses: ", "the reference refuses: "];

/// Returns how many of the edge cases torch refuses, and the first of them with the reason; None where it takes more than half of them.
#[must_use]
pub(crate) fn refused(cases: &[CaseRow]) -> Option<String> {
    let edges: Vec<_> = cases.iter().filter(|case| case.name.starts_with("edge/")).collect();
    let why = |case: &CaseRow| {
        let reason = case.reason.as_deref()?;
        REFUSES.iter().find_map(|words| reason.strip_prefix(words)).map(str::to_owned)
    };
    let refused: Vec<_> = edges.iter().filter_map(|case| Some((&case.name, why(case)?))).collect();
    let (name, reason) = refused.first().filter(|_| 2 * refused.len() >= edges.len())?;
    Some(format!("{} of {} edge cases, as `{name}`: {reason}", refused.len(), edges.len()))
}

/// Returns the message of a rejection for a terminal: that of the document `failure`, as `target`'s.
#[must_use]
pub(crate) fn text(failure: &Failure, target: &Target) -> String {
    render::problem::Problem::of(target.phase.name(), failure).text(&target.to_string())
}

/// Returns the parts of a rejection of `class`: those of the document `failure`, as `target`'s.
#[must_use]
pub(crate) fn fault(class: &str, failure: &Failure, target: &Target) -> Fault {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_torch_refuses_is_told_where_it_is_half_of_the_edges() {
        let case = |name: &str, reason: Option<&str>| CaseRow {
            name: name.to_owned(),
            reason: reason.map(str::to_owned),
            ..CaseRow::default()
        };
        let refuses = Some("torch refuses: IndexError: index 37 is out of bounds");
        let mut cases =
            vec![case("small/float32/0", None), case("edge/a/float32", refuses), case("edge/b/float32", None)];
        assert_eq!(
            refused(&cases).as_deref(),
            Some("1 of 2 edge cases, as `edge/a/float32`: IndexError: index 37 is out of bounds")
        );
        cases.push(case("edge/c/float32", Some("the wrapper refuses it: ValueError")));
        assert_eq!(refused(&cases), None);
    }

    #[test]
    fn what_a_reference_refuses_counts_too() {
        let reason = Some("the reference refuses: KeyError: 3".to_owned());
        let case = CaseRow { name: "edge/a/float32".to_owned(), reason, ..CaseRow::default() };
        assert_eq!(refused(&[case]).as_deref(), Some("1 of 1 edge cases, as `edge/a/float32`: KeyError: 3"));
    }

    #[test]
    fn cases_that_tell_nothing_are_counted_beside_those_that_pass() {
        let case = |name: &str, verdict| CaseRow { name: name.to_owned(), verdict, ..CaseRow::default() };
        let mut cases = vec![case("a", CaseVerdict::Passed), case("b", CaseVerdict::Rejected)];
        assert_eq!(counted(&cases), "1 of 2 cases passed");
        cases.extend([
            case("c", CaseVerdict::Dropped),
            case("d", CaseVerdict::NotJudged),
            case("e", CaseVerdict::NotJudged),
        ]);
        assert_eq!(counted(&cases), "1 of 5 cases passed, 1 dropped, 2 not judged");
    }
}
