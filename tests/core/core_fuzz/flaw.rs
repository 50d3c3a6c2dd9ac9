//! Flaws that a key, a record or a history could have, made by changing what the code under test is given or what it keeps.
//!
//! They do not touch what is true: what a run sees and what a clean build gives stay as they are.

use std::time::Duration;

use t2t_model::action::{Action, Need};
use t2t_model::history::History;
use t2t_model::manifest::Fact;
use t2t_model::record::{Outcome, Record, Seen};

use crate::world::is_python;

/// One flaw, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    None,
    UpstreamForgotten,
    SourcesForgotten,
    ParametersForgotten,
    NeedsForgotten,
    DiscoveredIgnored,
    AbsentProbesIgnored,
    CitedBytesIgnored,
    DeadlineIgnored,
    LostReused,
    NoCutoff,
    CommentsInKey,
    DeadlineInKey,
    OneResultPerKey,
    OneResultPerAction,
}

impl Flaw {
    /// Returns the action as the flawed code would see it.
    pub fn action(self, mut action: Action) -> Action {
        match self {
            Self::UpstreamForgotten => action.dependencies.iter_mut().for_each(|dependency| dependency.reads = &[]),
            Self::NeedsForgotten => {
                action.dependencies.iter_mut().for_each(|dependency| dependency.need = Need::Settle);
            }
            Self::SourcesForgotten => action.facts.retain(|name, _| !name.starts_with("source.")),
            Self::ParametersForgotten => drop(action.facts.remove("param")),
            Self::DeadlineInKey => {
                action.facts.insert("deadline".to_owned(), Fact::Text(format!("{:?}", action.deadline)));
            }
            Self::CommentsInKey => {
                let bytes = |source: &t2t_model::action::Source| Fact::Digest(source.bytes);
                let facts = action.sources.iter().map(|(path, source)| (format!("source.{path}"), bytes(source)));
                action.facts.extend(facts);
            }
            _ => {}
        }
        action
    }

    /// Returns what a discovered file is, as the flawed code would see it.
    pub fn seen(self, old: Seen, new: Seen) -> Seen {
        if self == Self::DiscoveredIgnored { old } else { new }
    }

    /// Adds the record as the flawed code would.
    pub fn add(self, history: &mut History, mut record: Record) {
        match self {
            Self::AbsentProbesIgnored => record.discovered.retain(|_, seen| *seen != Seen::Absent),
            Self::CitedBytesIgnored => {
                record.discovered.retain(|path, seen| !is_python(path.as_str()) || !matches!(seen, Seen::Bytes(_)));
            }
            Self::DeadlineIgnored => record.deadline_ms = u64::MAX,
            Self::LostReused if matches!(record.outcome, Outcome::Lost { .. }) => record.outcome = Outcome::Passed,
            Self::OneResultPerKey => history.forget(record.key),
            Self::OneResultPerAction => forget_last(history, &record),
            _ => {}
        }
        history.add(record);
    }

    /// Returns what makes the bytes of one run differ from those of another that made the same content.
    pub fn salt(self, runs: usize) -> usize {
        if self == Self::NoCutoff { runs } else { 0 }
    }
}

fn forget_last(history: &mut History, record: &Record) {
    if let Some(key) = history.last(&record.identity).map(|last| last.key) {
        history.forget(key);
    }
}

/// Returns `seconds` as the core writes them.
pub fn seconds(seconds: usize) -> Duration {
    Duration::from_secs(u64::try_from(seconds).expect("a usize fits"))
}
