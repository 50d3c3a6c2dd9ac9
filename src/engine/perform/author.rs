//! An author is asked, and what its answer comes to.
//!
//! It does not know what is asked, nor what becomes of a kernel.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use t2t_host::author::{Answer, Answered, ask};
use t2t_model::action::Phase;
use t2t_model::manifest::canonical_json;
use t2t_model::record::{KERNEL, Outcome};
use t2t_protocol::{Failure, PrintedOutput};
use t2t_report::render::attempts::{Attempt, Usage};

use super::Performed;
use crate::engine::asking::{ATTEMPT, Asking, cause};

/// The class of an answer that is no kernel.
const NO_KERNEL: &str = "no-kernel";

/// Asks the author, and returns what the answer comes to. Where `stops` says so, that is nothing.
pub(super) fn performed(asking: &Asking, stops: &dyn Fn() -> bool) -> Performed {
    let name = &asking.attempt.generator;
    let Answered { answer, printed, usage } = ask(&asking.question, stops);
    let usage: Option<Usage> = usage.and_then(|usage| serde_json::from_str(&usage).ok());
    let attempt = Attempt { usage, ..asking.attempt.clone() };
    match answer {
        Answer::Kernel(text) => {
            let attempt = Attempt { change: change(asking.before.as_deref(), &text), ..attempt };
            let documents = [(ATTEMPT, canonical_json(&json!(attempt))), (KERNEL, text)];
            let documents = documents.map(|(name, text)| (name.to_owned(), text.into_bytes()));
            Performed { outcome: Some(Outcome::Passed), documents: documents.into(), ..Performed::default() }
        }
        Answer::NoKernel(why) => no_kernel(attempt, NO_KERNEL, format!("`{name}` gave no kernel: {why}"), printed),
        Answer::TimedOut => {
            let why = format!("`{name}` gave no kernel within {:?}", asking.question.timeout);
            no_kernel(attempt, Outcome::TIMEOUT, why, printed)
        }
        Answer::Failed(why) => {
            // Some draw a box around what they say.
            let says = |line: &&str| line.chars().any(char::is_alphanumeric);
            let last = printed.lines().rev().find(says).map(|line| format!(": {}", line.trim())).unwrap_or_default();
            Performed::lost(format!("the generator `{name}` failed: {why}{last}"))
        }
        Answer::Stopped => Performed::lost("interrupted"),
    }
}

fn no_kernel(attempt: Attempt, class: &str, message: String, printed: String) -> Performed {
    let hint = (class == Outcome::TIMEOUT).then(|| "give it a longer `timeout` in ops.yaml".to_owned());
    let output = PrintedOutput { stdout: printed, ..PrintedOutput::default() };
    let failure = Failure { output: Some(output), hint, ..Failure::new(class, message) };
    let own = Some(cause(Phase::Generate, failure.clone()));
    let attempt = Attempt { change: "no kernel".to_owned(), failure: own, ..attempt };
    let documents: [(&str, Value); 2] = [(ATTEMPT, json!(attempt)), ("failure", json!(failure))];
    Performed { cites: false, ..Performed::rejected(class, &documents) }
}

/// Returns what a kernel changes of the one before, in words.
fn change(before: Option<&str>, text: &str) -> String {
    let Some(before) = before else { return "written anew".to_owned() };
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for change in TextDiff::from_lines(before, text).iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => *lines.entry("added").or_default() += 1,
            ChangeTag::Delete => *lines.entry("removed").or_default() += 1,
            ChangeTag::Equal => {}
        }
    }
    if lines.is_empty() {
        return "nothing: the same kernel again".to_owned();
    }
    let count = |what: &str| lines.get(what).copied().unwrap_or(0);
    format!("{} lines added, {} removed", count("added"), count("removed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_told_in_lines() {
        assert_eq!(change(None, "a\n"), "written anew");
        assert_eq!(change(Some("a\nb\n"), "a\nc\nd\n"), "2 lines added, 1 removed");
        assert_eq!(change(Some("a\n"), "a\n"), "nothing: the same kernel again");
    }
}
