//! A record: what is kept of a finished action.
//!
//! It does not know how records are stored, nor when one still stands.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::action::Identity;
use crate::digest::Digest;
use crate::manifest::canonical_json;
use crate::path::RepoPath;

/// How an action ended, and whose doing it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It did what it was asked.
    Passed,
    /// The kernel's fault, kept like a pass. The class is one of the closed list in docs/reference/judging.md.
    Rejected {
        /// As in `mismatch` or `timeout`.
        class: String,
    },
    /// A check that judged too little to pass, by no fault of the kernel's; kept like a pass.
    NotJudged {
        /// How many cases were not judged, and why, for people.
        reason: String,
    },
    /// The machine's fault, never kept.
    Lost {
        /// What went wrong, for people.
        reason: String,
    },
}

impl Outcome {
    /// The class of a deadline missed, the one rejection that another deadline can undo.
    pub const TIMEOUT: &'static str = "timeout";
    /// The class of cases that would accept wrong results, whatever the kernel is.
    pub const UNFIT_CASES: &'static str = "unfit-cases";

    /// Returns whether the action passed.
    #[must_use]
    pub fn is_pass(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// Returns whether the kernel was rejected.
    #[must_use]
    pub fn is_rejection(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    /// Returns whether the kernel was rejected for what another kernel can help.
    #[must_use]
    pub fn asks_for_another(&self) -> bool {
        matches!(self, Self::Rejected { class } if class != Self::UNFIT_CASES)
    }

    /// Returns whether a check judged too little to say anything.
    #[must_use]
    pub fn is_not_judged(&self) -> bool {
        matches!(self, Self::NotJudged { .. })
    }

    /// Returns whether the machine failed the action, so that nothing of it is kept.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Returns whether the kernel was rejected for missing its deadline.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Rejected { class } if class == Self::TIMEOUT)
    }
}

/// The artifact of a generate action: the kernel file that it wrote.
pub const KERNEL: &str = "kernel";

/// What a discovered file was when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// Looked for and not there.
    Absent,
    /// A Python file of this meaning.
    Meaning(Digest),
    /// A file of these bytes.
    Bytes(Digest),
}

/// A blob in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// Its digest, which is its name.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
}

/// What is kept of one finished action.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Which action.
    pub identity: Identity,
    /// The digest of its manifest, under which the store keeps the manifest itself.
    pub key: Digest,
    /// How it ended.
    pub outcome: Outcome,
    /// Artifact name → blob.
    pub outputs: BTreeMap<String, Blob>,
    /// Files it turned out to depend on.
    pub discovered: BTreeMap<RepoPath, Seen>,
    /// The deadline it ran under, in milliseconds.
    pub deadline_ms: u64,
    /// How long it ran, in milliseconds.
    pub wall_ms: u64,
    /// How long a device worked for it, in milliseconds.
    pub device_ms: u64,
    /// What else is known of the run and is in no key: Python version, device, sandbox.
    pub circumstances: BTreeMap<String, String>,
}

/// The circumstance that tells the digest of what a rejected bench was judged by.
pub const JUDGING: &str = "judging";

impl Record {
    /// Returns the deadline the action ran under.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// Returns the record as canonical JSON (design/keys.md): all that it claims, and what a signature of it is of.
    #[must_use]
    pub fn canonical(&self) -> String {
        canonical_json(&serde_json::to_value(self).expect("a record is JSON"))
    }

    /// Returns the digest of that.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.canonical().as_bytes())
    }
}
