//! An event: what the engine says while it works. One list of events, many readers.
//!
//! It holds data and no wording, but for texts that others made: reasons, problems, notes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::action::Target;
use crate::digest::Digest;
use crate::record::Outcome;
use crate::spans::{Times, Use, milliseconds};

/// One thing that happened in a build, in the order in which it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The graph is known; nothing is decided yet.
    BuildStarted {
        /// How many actions are wanted.
        actions: usize,
        /// Lane → how many slots it has.
        lanes: BTreeMap<String, usize>,
    },
    /// An action runs from now on.
    ActionStarted {
        /// Which.
        target: Target,
        /// On which lane: `cpu`, `interpreter`, `cuda:0`.
        lane: String,
        /// Why, in words, the first reason first.
        why: Vec<String>,
    },
    /// An action ran, and its record is in the journal.
    ActionFinished {
        /// Which.
        target: Target,
        /// On which lane.
        lane: String,
        /// How it ended.
        outcome: Outcome,
        /// How long it ran, in milliseconds.
        #[serde(rename = "wall_ms", with = "milliseconds")]
        wall: Duration,
        /// When its children ran and its device worked; nothing where it had no child.
        #[serde(default, skip_serializing_if = "Times::is_empty")]
        times: Times,
        /// The key that its record stands under.
        key: Digest,
    },
    /// An action's last result stands.
    ActionFresh {
        /// Which.
        target: Target,
        /// How it ended when it ran.
        outcome: Outcome,
        /// The key that its record stands under.
        key: Digest,
    },
    /// An earlier result came back.
    ActionRestored {
        /// Which.
        target: Target,
        /// How it ended when it ran.
        outcome: Outcome,
        /// The key that its record stands under.
        key: Digest,
    },
    /// An action did not run, since another did not end as needed.
    ActionSkipped {
        /// Which.
        target: Target,
        /// The other.
        because: Target,
    },
    /// An action has no result that stands and was not to run.
    ActionMissing {
        /// Which.
        target: Target,
        /// Why it would run, in words, the first reason first.
        why: Vec<String>,
    },
    /// The machine failed an action, which had started or not.
    ActionLost {
        /// Which.
        target: Target,
        /// On which lane, where it had started.
        lane: Option<String>,
        /// What went wrong.
        reason: String,
    },
    /// An action that ran was cancelled: what it would have made is not wanted any more. Nothing of it is kept.
    ActionCancelled {
        /// Which.
        target: Target,
        /// On which lane it ran.
        lane: String,
        /// Why, in words.
        reason: String,
    },
    /// An action came to no end on a node of a cluster, and runs again on one. It will be told once more that it runs.
    ActionAgain {
        /// Which.
        target: Target,
        /// On which lane it ran.
        lane: String,
        /// Why, in words.
        reason: String,
        /// Whether the node lost it. Otherwise the node does not fit, or lacked a file.
        was_lost: bool,
    },
    /// Something is wrong with a kernel. Sent once, when its action is rejected or its rejection still stands.
    Failure {
        /// Which action.
        target: Target,
        /// The whole message: place and error, the line, the hint.
        text: String,
        /// The same, in parts.
        fault: Fault,
    },
    /// Something good to know.
    Note {
        /// One line.
        text: String,
    },
    /// Something that may be wrong.
    Warning {
        /// One line.
        text: String,
    },
    /// The build waits for another process.
    Waiting {
        /// For what: the workspace's lock, a device's.
        what: String,
        /// Who holds it.
        holder: String,
    },
    /// Nothing more runs on a device: how it was used.
    DeviceUsed {
        /// Its lane.
        lane: String,
        /// How.
        #[serde(flatten)]
        used: Use,
    },
    /// How the remote cache was used, once nothing more is looked up or uploaded. Sent if it was used at all.
    RemoteUsed {
        /// Where it lies.
        remote: String,
        /// Results that came from it.
        hits: u64,
        /// Results that were looked for and did not.
        misses: u64,
        /// Results that were left there.
        uploads: u64,
        /// Results that should have been left there and were not.
        unsent: u64,
        /// The number of failures. The first of each kind was a warning.
        faults: u64,
    },
    /// Who signed the results that came from elsewhere. Sent if signatures are required, or the results belong to a device that is not here.
    Vouched {
        /// By name and key: for how many.
        signers: Vec<Vouched>,
        /// How many results no trusted key signed.
        unsigned: usize,
    },
    /// The build is over.
    Finished {
        /// What became of the actions.
        tally: Tally,
        /// How long the build took, in milliseconds.
        #[serde(rename = "wall_ms", with = "milliseconds")]
        wall: Duration,
        /// What the command ends with, where nothing fails after this.
        exit_code: u8,
    },
}

/// What is wrong with a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// As in `mismatch`.
    pub class: String,
    /// The case that showed it, as in `small/float32/0`.
    pub case: Option<String>,
    /// What is wrong, without place and class.
    pub message: String,
    /// The workspace path of the file at fault: the one that the failure names, else the variant's. None for an action of no variant.
    pub file: Option<String>,
    /// The line in it, from 1, where one is known.
    pub line: Option<u32>,
    /// The column, from 1, in characters.
    pub column: Option<u32>,
    /// The line itself.
    pub excerpt: Option<String>,
    /// What may help.
    pub hint: Option<String>,
}

/// Who signed results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vouched {
    /// What ops.yaml calls the key.
    pub name: String,
    /// The key's fingerprint.
    pub key: String,
    /// How many results.
    pub results: usize,
}

impl Event {
    /// Returns the action that it tells of; None where it tells of none.
    #[must_use]
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::ActionStarted { target, .. }
            | Self::ActionFinished { target, .. }
            | Self::ActionFresh { target, .. }
            | Self::ActionRestored { target, .. }
            | Self::ActionSkipped { target, .. }
            | Self::ActionMissing { target, .. }
            | Self::ActionLost { target, .. }
            | Self::ActionCancelled { target, .. }
            | Self::ActionAgain { target, .. }
            | Self::Failure { target, .. } => Some(target),
            Self::BuildStarted { .. }
            | Self::Note { .. }
            | Self::Warning { .. }
            | Self::Waiting { .. }
            | Self::DeviceUsed { .. }
            | Self::RemoteUsed { .. }
            | Self::Vouched { .. }
            | Self::Finished { .. } => None,
        }
    }
}

/// What became of the actions of a build: how many ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Their last result stands.
    pub fresh: usize,
    /// An earlier result came back.
    pub restored: usize,
    /// They ran and passed or were rejected.
    pub ran: usize,
    /// They were not reached.
    pub skipped: usize,
    /// Their result, new or not, is a rejection.
    pub rejected: usize,
    /// Their result, new or not, is a check that judged too little.
    #[serde(default)]
    pub not_judged: usize,
    /// The machine failed them.
    pub lost: usize,
    /// How often nodes of a cluster lost one that then ran again on another.
    #[serde(default)]
    pub again: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Phase;

    #[test]
    fn an_event_is_one_line_of_json_and_comes_back() {
        let event = Event::ActionFinished {
            target: Target::of_variant("softmax", "v2_tiling", Phase::Check),
            lane: "interpreter".to_owned(),
            outcome: Outcome::Rejected { class: "mismatch".to_owned() },
            wall: Duration::from_millis(1_200),
            times: Times::default(),
            key: Digest::of(b""),
        };
        let key = Digest::of(b"");
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            format!(
                r#"{{"event":"action-finished","target":"softmax/v2_tiling:check","lane":"interpreter","outcome":{{"rejected":{{"class":"mismatch"}}}},"wall_ms":1200,"key":"{key}"}}"#
            )
        );
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}
