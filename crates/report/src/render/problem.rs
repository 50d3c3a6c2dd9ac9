//! A problem: what was wrong with a kernel, in the form of every message: `error: place: what`, the line, a hint.
//!
//! It does not know where it is printed.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use t2t_model::foreign::printable;
use t2t_model::problem;
use t2t_protocol::{Failure, SourcePlace};

/// A place in a file, written `kernels/softmax/v2_tiling.py:12:5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemPlace {
    /// The workspace path.
    pub file: String,
    /// From 1.
    pub line: Option<u32>,
    /// From 1, in characters.
    pub column: Option<u32>,
}

/// A document FAILURE as views read it: all fields there, the place as text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// Which phase met it.
    pub(crate) phase: String,
    /// As in `mismatch`.
    pub(crate) class: Option<String>,
    /// The case, `small/float32/0`.
    pub case: Option<String>,
    /// What the case is: its kind, shapes, strides, dtypes, keyword arguments.
    pub(crate) given: Option<String>,
    /// One line for people.
    pub message: String,
    /// Where, in a file of the workspace.
    pub place: Option<ProblemPlace>,
    /// The line there.
    pub excerpt: Option<String>,
    /// What may help.
    pub hint: Option<String>,
    /// The kernel's own frames, outermost first.
    pub(crate) traceback: Vec<String>,
    /// Where the first bad element is.
    pub(crate) index: Option<Vec<i64>>,
    /// What was there.
    pub(crate) got: Value,
    /// What should have been there.
    pub(crate) expected: Value,
    /// The largest absolute error.
    pub(crate) max_abs: Value,
    /// The largest relative error.
    pub(crate) max_rel: Value,
    /// How many elements are bad.
    pub(crate) bad: Option<i64>,
    /// Of how many.
    pub(crate) total: Option<i64>,
}

impl Problem {
    /// Returns the problem that a document tells of, as met by `phase`.
    #[must_use]
    pub fn of(phase: &str, failure: &Failure) -> Self {
        let Failure {
            case, given, excerpt, hint, traceback, index, got, expected, max_abs, max_rel, bad, total, ..
        } = failure.clone();
        let said = |text: &String| Some(text).filter(|text| !text.is_empty()).cloned();
        Self {
            phase: phase.to_owned(),
            class: said(&failure.class),
            message: said(&failure.message).unwrap_or_else(|| "nothing was said".to_owned()),
            place: failure.place.as_ref().filter(|place| !place.file.is_empty()).map(ProblemPlace::of),
            case,
            given,
            excerpt,
            hint,
            traceback,
            index,
            got,
            expected,
            max_abs,
            max_rel,
            bad,
            total,
        }
    }

    /// Returns the problem for a terminal, in the form of every message: the error with its place, or that of `target` where it has
    /// none, the line, what else is known, the hint, and last the command that repeats the case alone.
    #[must_use]
    pub fn text(&self, target: &str) -> String {
        let mut lines = vec![self.message(target).to_string()];
        lines.extend(self.case.iter().map(|case| format!("  case {case} of {target}")));
        lines.extend(self.given.iter().map(|given| format!("  {given}")));
        lines.extend(self.values());
        lines.extend(self.traceback.iter().map(|frame| format!("  at {frame}")));
        lines.extend(self.hint.iter().map(|hint| format!("hint: {hint}")));
        lines.extend(self.repeats(target).map(|command| format!("alone: {command}")));
        printable(&lines.join("\n"))
    }

    /// Returns the command that runs the case alone. None where the problem is of no case of a check.
    pub(crate) fn repeats(&self, target: &str) -> Option<String> {
        let (place, phase) = target.split_once(':')?;
        let case = self.case.as_ref().filter(|_| phase == "check" && place.contains('/'))?;
        Some(format!("t2t repro {place} {}", quoted(case)))
    }

    fn message(&self, target: &str) -> problem::Problem {
        let class = self.class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
        problem::Problem {
            file: self.place.as_ref().map_or(target, |place| &place.file).to_owned(),
            line: self.place.as_ref().and_then(|place| place.line),
            column: self.place.as_ref().and_then(|place| place.column),
            message: self.message.clone() + &class,
            excerpt: self.excerpt.clone(),
            hint: None,
        }
    }

    fn values(&self) -> Option<String> {
        let element = self.index.as_ref().map(|index| format!(" at {}", json!(index))).unwrap_or_default();
        (!self.got.is_null() || !self.expected.is_null())
            .then(|| format!("  got {}, expected {}{element}", bare(&self.got), bare(&self.expected)))
    }
}

impl ProblemPlace {
    fn of(place: &SourcePlace) -> Self {
        Self { file: place.file.clone(), line: place.line, column: place.column }
    }
}

impl fmt::Display for ProblemPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        [self.line, self.column].iter().map_while(|number| *number).try_for_each(|number| write!(f, ":{number}"))
    }
}

impl Serialize for ProblemPlace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns a word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/_-.,:@%+=".contains(letter);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Returns a value as it reads without JSON's quotes: `nan` is a text there.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
