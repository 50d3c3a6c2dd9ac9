//! What a function of the harness returns, and what a judge is told of how the candidate's child ended.
//!
//! It does not know what is in the documents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::read::{self, Misfit};

/// The reply of a phase's function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reply {
    /// How it ended.
    pub outcome: ReplyOutcome,
    /// The class of a rejection, else null.
    pub class: Option<String>,
    /// Why a check is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the documents cite source lines.
    #[serde(default)]
    pub cites: bool,
    /// Small JSON artifacts by name. They are kept as they came, whatever is in them.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::Documents"))]
    pub documents: BTreeMap<String, Value>,
    /// Files by name, as paths relative to scratch.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// When the child kept the device at work: sorted and apart, at most 200, empty where there is no device. One that is no span does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ToldSpan>"))]
    pub device_spans: Vec<Value>,
}

impl Reply {
    /// Returns the reply that a value is. Fails, naming the field, where it is none. What is in its documents is not looked at.
    pub fn of(value: &Value) -> Result<Self, Misfit> {
        read::exactly(value)
    }

    /// Returns when the child kept the device at work.
    pub fn spans(&self) -> impl Iterator<Item = ToldSpan> + '_ {
        self.device_spans.iter().filter_map(|told| ToldSpan::deserialize(told).ok())
    }
}

/// How a function ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReplyOutcome {
    /// All is well.
    Passed,
    /// The kernel is wrong, by its class.
    Rejected,
    /// Nothing can be said of the kernel.
    NotJudged,
    /// It wants a process with all queues of its device.
    Again,
}

/// When the device worked: begin and end in nanoseconds of `CLOCK_MONOTONIC`, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToldSpan(pub u64, pub u64, pub ToldDoing);

/// What the device worked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToldDoing {
    /// Inside the clock of a bench, a baseline or a tune.
    Timing,
    /// All else.
    Work,
}

/// How the candidate's child ended, as the judge is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateEnd {
    /// Which end it is.
    pub kind: EndKind,
    /// The end, for people.
    pub message: String,
    /// The exit code of one that left.
    pub code: Option<i32>,
    /// The signal that it died by.
    pub signal: Option<i32>,
    /// What shows that memory ran out.
    pub how: Option<String>,
    /// What it raised.
    pub error: Option<RaisedError>,
    /// Always null.
    pub seconds: Option<f64>,
    /// What it printed, at most 8 KiB.
    pub stdout: String,
    /// What it printed as errors, at most 8 KiB.
    pub stderr: String,
    /// Whether either is cut.
    pub truncated: bool,
    /// How many processes it had left behind; they were killed.
    pub left_behind: u32,
}

/// The ways in which a child ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    /// It replied.
    Reply,
    /// It raised.
    Raised,
    /// It left with a code.
    Exit,
    /// It died by a signal.
    Signal,
    /// The deadline passed.
    Timeout,
    /// The CPU seconds were used up.
    CpuLimit,
    /// The memory limit was passed.
    Memory,
    /// It printed too much.
    OutputLimit,
    /// It said nothing.
    NoReply,
    /// What it said is no reply.
    BadReply,
    /// It could not start.
    Refused,
    /// t2t asked for the end.
    Cancelled,
}

/// What a child raised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RaisedError {
    /// The exception's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `str()` of it.
    pub message: String,
    /// Python's own text.
    pub traceback: String,
}
