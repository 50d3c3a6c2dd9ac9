//! Commit: what came of an action becomes artifacts, a manifest and a record, in this order, and is told.
//!
//! In a build, only this file writes results to the journal, and to the store but for those that `ask` brings. It does not know how an action was performed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use t2t_model::action::{Action, Phase, Target};
use t2t_model::event::Event;
use t2t_model::manifest::Manifest;
use t2t_model::manifest::canonical_json;
use t2t_model::path::RepoPath;
use t2t_model::record::{Blob, JUDGING, Outcome, Record, Seen};
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_protocol::{CaseRow, CaseVerdict, Cost, Evidence, UnjudgedDtype, Verdict, read};
use t2t_report::render;
use t2t_store::installed;

use super::{Pending, Run, Stop, evidence};
use crate::engine::AfterRejection;
use crate::engine::perform::Performed;

impl Run<'_, '_> {
    /// Commits what came of an action to the store, tells of it, and settles it.
    pub(super) fn commit(&mut self, index: Index, performed: &Performed) -> Result<(), Stop> {
        let action = self.schedule.action(index).clone();
        let action = &action;
        let Pending { manifest, lane, .. } = self.pending.remove(&index).expect("what ran was pending");
        let outcome = performed.outcome.clone().unwrap_or(Outcome::Lost { reason: "nothing was said".to_owned() });
        if let Outcome::Lost { reason } = outcome {
            if !self.interrupt.is_set() {
                (self.emit)(Event::ActionLost {
                    target: action.target().clone(),
                    lane: Some(lane),
                    reason: reason.clone(),
                });
            }
            self.schedule.finish(index, Settled::Lost(reason));
            return Ok(());
        }
        let record = self.commit_record(action, &manifest, &outcome, performed)?;
        self.tell_committed(action, lane, &record, performed)?;
        self.schedule.finish(index, Settled::Ran(Arc::new(record)));
        Ok(())
    }

    /// Puts what came of an action into the store: its artifacts, its manifest, its record, in this order.
    pub(super) fn commit_record(
        &mut self,
        action: &Action,
        manifest: &Manifest,
        outcome: &Outcome,
        performed: &Performed,
    ) -> Result<Record, Stop> {
        self.commit_encoded(action, &manifest.encode(), outcome, performed)
    }

    /// Does what [`Self::commit_record`] does, with an encoded manifest.
    pub(super) fn commit_encoded(
        &mut self,
        action: &Action,
        manifest: &[u8],
        outcome: &Outcome,
        performed: &Performed,
    ) -> Result<Record, Stop> {
        let outputs = self.put(action, performed)?;
        let key = self.cas.put(manifest)?.digest;
        let record = Record {
            identity: action.identity.clone(),
            key,
            outcome: outcome.clone(),
            outputs,
            discovered: self.discovered(action, performed),
            deadline_ms: milliseconds(action.deadline),
            wall_ms: milliseconds(performed.wall),
            device_ms: milliseconds(performed.times.busy()),
            circumstances: self.circumstances(action, outcome),
        };
        self.journal.add(&record)?;
        self.history.add(record.clone());
        self.share(&record);
        Ok(record)
    }

    /// Tells of an action that ran and is committed.
    pub(super) fn tell_committed(
        &mut self,
        action: &Action,
        lane: String,
        record: &Record,
        performed: &Performed,
    ) -> Result<(), Stop> {
        (self.emit)(Event::ActionFinished {
            target: action.target().clone(),
            lane,
            outcome: record.outcome.clone(),
            wall: performed.wall,
            times: performed.times.clone(),
            key: record.key,
        });
        self.tell_unjudged(action, record)?;
        self.tell_another(action.target(), record)?;
        self.tell_failure(action, &record.outcome, record)
    }

    /// Says that another attempt follows a rejection: the rejection itself is told where that comes to nothing.
    fn tell_another(&mut self, target: &Target, record: &Record) -> Result<(), Stop> {
        let Outcome::Rejected { class } = &record.outcome else { return Ok(()) };
        if self.is_tried_again(target, &record.outcome) {
            let message = evidence::failure(record, |digest| self.bytes(digest))?.message;
            let text = format!("{target}: attempt {} was rejected ({class}): {message}", target.attempt);
            (self.emit)(Event::Note { text });
        }
        Ok(())
    }

    /// Tells of the rejections of an attempt that a further one was to follow, where none did.
    pub(super) fn tell_withheld(&mut self, target: &Target) -> Result<(), Stop> {
        for phase in [Phase::Compile, Phase::Check] {
            let before = Target { phase, ..target.of_attempt(target.attempt - 1) };
            let settled = self.session.graph.find(&before).and_then(|index| self.schedule.settled(index));
            let Some(record) = settled.and_then(Settled::record).cloned() else { continue };
            if let Outcome::Rejected { class } = &record.outcome {
                self.tell_rejection(&before, class, &record)?;
            }
        }
        Ok(())
    }

    fn put(&self, action: &Action, performed: &Performed) -> Result<BTreeMap<String, Blob>, Stop> {
        let mut outputs = BTreeMap::new();
        for (name, bytes) in &performed.documents {
            outputs.insert(name.clone(), self.cas.put(bytes)?);
        }
        for (name, bytes) in &performed.files {
            outputs.insert(name.clone(), self.cas.put(bytes)?);
        }
        if !matches!(action.target().phase, Phase::Log | Phase::Summary) {
            let cost = Cost {
                wall_ms: milliseconds(performed.wall),
                device_ms: milliseconds(performed.times.busy()),
                timing_ms: milliseconds(performed.times.timing()),
            };
            outputs.insert("cost".to_owned(), self.cas.put(canonical_json(&json!(cost)).as_bytes())?);
        }
        Ok(outputs)
    }

    /// Returns the files that the action turned out to read, as they are now: not those its key holds, nor what t2t itself makes. A rejection that cites
    /// lines depends on the bytes of the workspace's.
    pub(super) fn discovered(&self, action: &Action, performed: &Performed) -> BTreeMap<RepoPath, Seen> {
        let sources = &self.session.sources;
        let own =
            |path: &RepoPath| ["cache/", "logs/", ".venv/"].iter().any(|folder| path.as_str().starts_with(folder));
        let opened = performed.opened.iter().filter_map(|path| RepoPath::new(path).ok());
        let opened = opened.filter(|path| !own(path) && !action.sources.contains_key(path));
        let is_cited = |path: &RepoPath| performed.cites && installed::module(path).is_none();
        let seen = |path: &RepoPath| match sources.bytes(path) {
            Some(bytes) if is_cited(path) => Seen::Bytes(bytes),
            _ => sources.as_discovered(path),
        };
        let mut found: BTreeMap<RepoPath, Seen> = opened.map(|path| (path.clone(), seen(&path))).collect();
        if performed.cites {
            found.extend(action.sources.iter().map(|(path, source)| (path.clone(), Seen::Bytes(source.bytes))));
        }
        found
    }

    fn circumstances(&self, action: &Action, outcome: &Outcome) -> BTreeMap<String, String> {
        let versions = self.session.toolchain.as_ref().map(|toolchain| toolchain.versions.clone()).unwrap_or_default();
        let python = versions.get("python").cloned().unwrap_or_default();
        let judging = action.judging.filter(|_| matches!(outcome, Outcome::Rejected { .. }));
        let known = [("python".to_owned(), python), ("t2t".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        known.into_iter().chain(judging.map(|digest| (JUDGING.to_owned(), digest.to_string()))).collect()
    }

    pub(super) fn tell_settled(&mut self, index: Index) -> Result<(), Stop> {
        let action = self.session.graph.action(index);
        let target = action.target().clone();
        let settled = self.schedule.settled(index).cloned().expect("it settled");
        match &settled {
            Settled::Fresh(record) => {
                (self.emit)(Event::ActionFresh { target, outcome: record.outcome.clone(), key: record.key });
            }
            Settled::Restored(record) => {
                // A published result is not copied to the store: it stays where it is published.
                let is_brought = self.lookups.brought(record);
                if is_brought {
                    self.journal.add(record)?;
                } else if !self.session.is_elsewhere {
                    self.journal.add_again(record)?;
                }
                if is_brought || !self.session.is_elsewhere {
                    self.history.add(Arc::clone(record));
                }
                (self.emit)(Event::ActionRestored { target, outcome: record.outcome.clone(), key: record.key });
            }
            Settled::Skipped(on) => (self.emit)(Event::ActionSkipped { target, because: on.clone() }),
            Settled::Ran(_)
            | Settled::Lost(_)
            | Settled::Planned
            | Settled::Missing
            | Settled::Withheld(_)
            | Settled::NotNeeded => {}
        }
        if let Some(record) = settled.record() {
            self.tell_failure(action, &record.outcome.clone(), record)?;
        }
        Ok(())
    }

    /// Says what a check left unjudged: dtypes beside those that it passed, and what is launched at measured sizes alone. Its verdict is no word on them.
    fn tell_unjudged(&mut self, action: &Action, record: &Record) -> Result<(), Stop> {
        let Some(blob) = record.outputs.get("verdict").filter(|_| action.target().phase == Phase::Check) else {
            return Ok(());
        };
        let verdict: Verdict = read::document(&self.bytes(blob.digest)?).unwrap_or_default();
        let evidence: Evidence = match record.outputs.get("evidence").filter(|_| record.outcome.is_pass()) {
            Some(blob) => read::document(&self.bytes(blob.digest)?).unwrap_or_default(),
            None => Evidence::default(),
        };
        let unjudged = verdict.not_judged.iter().flatten().filter(|_| record.outcome.is_pass());
        for UnjudgedDtype { dtype, cases, of, reason } in unjudged {
            let reason = reason.as_deref().unwrap_or("?");
            let is_one = |row: &&CaseRow| row.dtype == *dtype && row.verdict == CaseVerdict::NotJudged;
            let first =
                evidence.cases.iter().find(is_one).map(|row| format!(", as `{}`", row.name)).unwrap_or_default();
            let text = format!("{} did not judge {cases} of {of} cases in {dtype}{first}: {reason}", action.target());
            (self.emit)(Event::Note { text });
        }
        for missed in verdict.missed.iter().flatten() {
            let text = format!("{}: {}", action.target(), render::missed::missed(missed));
            (self.emit)(Event::Note { text });
        }
        if let Some(refused) = evidence::refused(&evidence.cases) {
            self.refused.insert(action.target().op.clone(), refused);
        }
        self.left_out.extend(evidence.left_out.map(|probes| probes.len()).filter(|count| *count > 0));
        let op = &action.target().op;
        let is_of_lengths = |name: &String| self.session.spec.op(op).is_some_and(|op| op.is_of_lengths(name));
        for name in evidence.untried.into_iter().flatten().filter(|name| !is_of_lengths(name)) {
            self.untried.entry(op.clone()).or_default().insert(name);
        }
        Ok(())
    }

    /// Says once how many probes all checks left out: each says it in its op's log, and a pass says less for it.
    pub(super) fn tell_left_out(&mut self) {
        let left_out = std::mem::take(&mut self.left_out);
        if !left_out.is_empty() {
            let (probes, checks): (usize, _) = (left_out.iter().sum(), left_out.len());
            let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            let text = format!(
                "{} left out {}, for which the interpreter's budget was too small: a device tries them (docs/reference/judging.md#limits)",
                counted(checks, "check"),
                counted(probes, "probe"),
            );
            (self.emit)(Event::Note { text });
        }
    }

    /// Says once of which ops torch refuses many of the cases: nothing is known of a kernel there.
    pub(super) fn tell_refused(&mut self) {
        for (op, refused) in std::mem::take(&mut self.refused) {
            let text = format!("{op}: torch, or the reference, refuses {refused}; no kernel is judged in them");
            (self.emit)(Event::Note { text });
        }
    }

    /// Says once which arguments checks tried at no other value: a kernel that has the declared one written into it passes.
    pub(super) fn tell_untried(&mut self) {
        let untried = std::mem::take(&mut self.untried);
        if !untried.is_empty() {
            let names = |names: &BTreeSet<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            let told: Vec<_> = untried.iter().map(|(op, own)| format!("{} of {op}", names(own).join(", "))).collect();
            let text = format!(
                "tried at no other value, since none is known to fit the inputs: {}; an op with another one in `kwargs` tries it",
                told.join("; "),
            );
            (self.emit)(Event::Note { text });
        }
    }

    /// Tells of a rejection in full, and stops where that was asked for.
    fn tell_failure(&mut self, action: &Action, outcome: &Outcome, record: &Record) -> Result<(), Stop> {
        let Outcome::Rejected { class } = outcome else { return Ok(()) };
        let target = action.target();
        if self.is_tried_again(target, outcome) {
            return Ok(());
        }
        self.stopped |= self.settings.after_rejection == AfterRejection::Stop;
        if target.phase == Phase::Generate && target.attempt > 1 {
            self.tell_withheld(target)?;
        }
        self.tell_rejection(target, class, record)
    }

    fn tell_rejection(&mut self, target: &Target, class: &str, record: &Record) -> Result<(), Stop> {
        let failure = evidence::failure(record, |digest| self.bytes(digest))?;
        let variant = target.variant.as_ref().and_then(|variant| self.session.spec.op(&target.op)?.variant(variant));
        let unusable = variant.and_then(|variant| self.session.inventory.fault(variant));
        let (text, mut fault) = match &unusable {
            Some(problem) if class == evidence::SOURCE => {
                if !self.told.insert(problem.to_string()) {
                    return Ok(());
                }
                (problem.to_string(), evidence::fault_of(problem))
            }
            _ => (evidence::text(&failure, target), evidence::fault(class, &failure, target)),
        };
        fault.file = fault.file.or_else(|| variant.map(|variant| variant.file.clone()));
        (self.emit)(Event::Failure { target: target.clone(), text, fault });
        Ok(())
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
