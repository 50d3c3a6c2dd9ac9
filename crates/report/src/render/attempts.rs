//! Attempts at a kernel that a generator writes: the document `attempt`, and the rows of their table in a log.
//!
//! It does not know how a kernel is made.

use serde::{Deserialize, Serialize};

/// The document `attempt`: in which form a kernel file was made, and after what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The generator's name.
    pub generator: String,
    /// The forms of all attempts so far, this one last.
    pub forms: Vec<String>,
    /// What this form changes.
    pub change: String,
    /// Why the attempt before failed. None of the first.
    pub after: Option<Cause>,
    /// Why it came to no kernel itself, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Cause>,
    /// What the author says that it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What an author says that an attempt took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// The phase that rejected it.
    pub phase: String,
    /// The class of the rejection.
    pub class: String,
    /// One line for people.
    pub message: String,
    /// The case that showed it.
    pub case: Option<String>,
    /// What the case is, in one line.
    pub given: Option<String>,
}

impl Attempt {
    /// Returns the form that it is in.
    #[must_use]
    pub fn form(&self) -> &str {
        self.forms.last().map_or("", String::as_str)
    }
}

/// An attempt in the table of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row<'a> {
    attempt: u32,
    form: &'a str,
    change: &'a str,
    /// Why it failed; None of the one that stands.
    failure: Option<&'a Cause>,
}

/// Returns a row for each attempt, the first one first. An attempt failed as the next one says that was made after it.
pub(super) fn rows(attempts: &[Attempt]) -> Vec<Row<'_>> {
    let failures = attempts.iter().skip(1).map(|attempt| attempt.after.as_ref()).chain([None]);
    let own = attempts.iter().map(|attempt| attempt.failure.as_ref());
    let rows = attempts.iter().zip(failures.zip(own).map(|(next, own)| next.or(own)));
    rows.map(|(attempt, failure)| Row {
        attempt: attempt.attempt,
        form: attempt.form(),
        change: &attempt.change,
        failure,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_failed_as_the_next_one_says() {
        let attempt = |number: u32, after: Option<&str>| Attempt {
            attempt: number,
            forms: vec!["standard".to_owned(), format!("form {number}")],
            after: after.map(|class| Cause { class: class.to_owned(), ..Cause::default() }),
            ..Attempt::default()
        };
        let attempts = [attempt(1, None), attempt(2, Some("mismatch")), attempt(3, Some("memory"))];
        let rows = rows(&attempts);
        let failed: Vec<_> = rows.iter().map(|row| row.failure.map(|cause| cause.class.as_str())).collect();
        assert_eq!(failed, [Some("mismatch"), Some("memory"), None]);
        assert_eq!(rows[1].form, "form 2");
    }
}
