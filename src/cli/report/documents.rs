//! Documents of results: those that stand here, or those that a device published.
//!
//! It does not know what is shown of them.

use serde::de::DeserializeOwned;
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::publication::Entry;
use t2t_model::record::{KERNEL, Outcome, Record};
use t2t_plan::schedule::Settled;
use t2t_protocol::read;
use t2t_report::rank::Found;
use t2t_store::store::cas::Cas;

use crate::cli::plan::{self, Plan};
use crate::cli::status::own_reasons;
use crate::session::Session;

/// Where documents are from.
pub(super) enum Documents<'a> {
    /// What stands, by plans of all actions that are asked for.
    Own { session: &'a Session, plans: &'a [Plan], cas: Box<Cas> },
    /// What a device published.
    There(Vec<Entry>),
}

impl Documents<'_> {
    /// Returns the document `name` of `target`, or why there is none.
    pub(super) fn found<T: DeserializeOwned>(&self, target: &Target, name: &str) -> Found<T> {
        match self {
            Self::There(entries) => {
                let Some(entry) = entries.iter().find(|entry| entry.record.identity.target == *target) else {
                    return Found::Skipped { reason: "it is not published".to_owned() };
                };
                told(target, name, &entry.record, || entry.documents.get(name).cloned())
            }
            Self::Own { session, cas, .. } => match self.plan(target) {
                None => Found::Skipped { reason: "it is no part of this build".to_owned() },
                Some(Plan { settled: Settled::Planned | Settled::Missing, why, .. }) => {
                    Found::Skipped { reason: format!("stale: {}", own_reasons(why)) }
                }
                Some(plan) => match &plan.settled {
                    Settled::Skipped(on) => Found::Skipped { reason: self.why_skipped(session, on) },
                    Settled::Withheld(reason) => Found::Skipped { reason: reason.clone() },
                    Settled::NotNeeded => Found::Skipped { reason: "another attempt was made".to_owned() },
                    settled => match settled.record() {
                        Some(record) => told(target, name, record, || cas.get(record.outputs.get(name)?.digest).ok()),
                        None => Found::Lost,
                    },
                },
            },
        }
    }

    /// Returns the attempt at the variant of `target` that stands, as a target of the same phase. Of published ones that is the last.
    pub(super) fn standing(&self, target: &Target) -> Target {
        match self {
            Self::Own { session, plans, .. } => plan::standing(session, plans, target),
            Self::There(entries) => {
                let is_of_it = |entry: &&Entry| entry.record.identity.target.of_attempt(1) == target.of_attempt(1);
                let attempts = entries.iter().filter(is_of_it).map(|entry| entry.record.identity.target.attempt);
                target.of_attempt(attempts.max().unwrap_or(1))
            }
        }
    }

    /// Returns the kernel file that a generator made in the attempt of `target`.
    pub(super) fn kernel(&self, target: &Target) -> Option<Digest> {
        let generate = Target { phase: Phase::Generate, ..target.clone() };
        let record = self.plan(&generate)?.settled.record()?;
        record.outputs.get(KERNEL).map(|blob| blob.digest)
    }

    /// Returns the kernel file itself of the attempt of `target`, where it is kept.
    pub(super) fn kernel_text(&self, target: &Target) -> Option<String> {
        let generate = Target { phase: Phase::Generate, ..target.clone() };
        let bytes = match self {
            Self::There(entries) => {
                let entry = entries.iter().find(|entry| entry.record.identity.target == generate)?;
                entry.documents.get(KERNEL)?.clone()
            }
            Self::Own { cas, .. } => cas.get(self.kernel(target)?).ok()?,
        };
        String::from_utf8(bytes).ok()
    }

    /// Returns whether the attempt at `target` that stands would run in a build.
    pub(super) fn is_stale(&self, target: &Target) -> bool {
        let plan = self.plan(&self.standing(target));
        plan.is_some_and(|plan| matches!(plan.settled, Settled::Planned | Settled::Missing))
    }

    fn plan(&self, target: &Target) -> Option<&Plan> {
        let Self::Own { session, plans, .. } = self else { return None };
        let index = session.graph.find(target)?;
        plans.binary_search_by_key(&index, |plan| plan.index).ok().map(|place| &plans[place])
    }

    fn why_skipped(&self, session: &Session, on: &Target) -> String {
        let plan = session.graph.find(on).and_then(|_| self.plan(on));
        match plan.and_then(|plan| plan.settled.record()).map(|record| &record.outcome) {
            Some(Outcome::Rejected { class }) => format!("`{on}` was rejected ({class})"),
            Some(Outcome::NotJudged { reason }) => format!("`{on}` was not judged: {reason}"),
            _ => format!("`{on}` did not pass"),
        }
    }
}

/// Returns what a record says of its document `name`, as logs take it.
fn told<T: DeserializeOwned>(
    target: &Target,
    name: &str,
    record: &Record,
    bytes: impl FnOnce() -> Option<Vec<u8>>,
) -> Found<T> {
    let is_there = record.outputs.contains_key(name);
    match &record.outcome {
        // Figures of a variant that was wrong when it was measured are none.
        Outcome::Rejected { class } if !is_there || (target.phase == Phase::Bench && name == "bench") => {
            Found::Rejected { class: class.clone() }
        }
        _ if !is_there => Found::Skipped { reason: format!("`{target}` made no `{name}`") },
        _ => match bytes().map(|bytes| read::document(&bytes)) {
            Some(Ok(document)) => Found::Document(document),
            Some(Err(misfit)) => Found::Skipped { reason: format!("`{name}` of `{target}` cannot be read: {misfit}") },
            None => Found::Skipped { reason: format!("`{name}` of `{target}` is not in the store any more") },
        },
    }
}
