//! The record of a rejection, the same wherever something was rejected.
//!
//! It does not know what its classes mean.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why something was rejected: a check's evidence holds it, and it is the document `failure` of a compile, a tune and a bench.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Failure {
    /// The class of the rejection.
    pub class: String,
    /// The case that showed it.
    pub case: Option<String>,
    /// What the case is, in one line.
    pub given: Option<String>,
    /// One line for people.
    pub message: String,
    /// Where it happened.
    pub place: Option<SourcePlace>,
    /// The line there.
    pub excerpt: Option<String>,
    /// What helps.
    pub hint: Option<String>,
    /// The lines of the workspace that led there, as `FILE:LINE in FUNCTION`.
    pub traceback: Vec<String>,
    /// The worst element.
    pub index: Option<Vec<i64>>,
    /// Its value.
    pub got: Value,
    /// The right one.
    pub expected: Value,
    /// The largest absolute difference: a number, or the word for one that JSON lacks.
    pub max_abs: Value,
    /// The largest relative difference, likewise.
    pub max_rel: Value,
    /// How many elements are wrong.
    pub bad: Option<i64>,
    /// Of how many.
    pub total: Option<i64>,
    /// What the process printed, where it ended without a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "PrintedOutput"))]
    pub output: Option<PrintedOutput>,
}

impl Failure {
    /// Returns a failure of which nothing is known but its class and its message.
    #[must_use]
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class: class.into(), message: message.into(), ..Self::default() }
    }
}

/// A place in a file of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SourcePlace {
    /// Relative to the workspace.
    pub file: String,
    /// From 1.
    pub line: Option<u32>,
    /// From 1.
    pub column: Option<u32>,
}

/// What a process printed, each stream at most 8 KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PrintedOutput {
    /// Its output.
    pub stdout: String,
    /// Its errors.
    pub stderr: String,
    /// Whether either is cut.
    pub truncated: bool,
}

/// Why an op cannot be analyzed: the document `failure` of an analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnalysisFailure {
    /// The type of torch's exception.
    pub class: String,
    /// Its text.
    pub message: String,
    /// The size at which it came.
    pub size: Option<String>,
    /// What helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub hint: Option<String>,
}
