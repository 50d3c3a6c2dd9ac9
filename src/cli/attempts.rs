//! `t2t attempts`: what was tried at kernels that a generator writes: in which form, how it ended, how fast it was; and the kernel of an attempt.
//!
//! It runs nothing.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use similar::TextDiff;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Phase, Target};
use t2t_model::record::{KERNEL, Outcome, Record};
use t2t_plan::graph::Index;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::schedule::Settled;
use t2t_protocol::{Bench, read};
use t2t_report::figures;
use t2t_report::render::attempts::Attempt;
use t2t_store::store::cas::Cas;

use super::error::CliError;
use super::plan::{Plan, plans, standing};
use super::{AttemptsArguments, Common, ReportFormat, context, streams};
use crate::engine::{ATTEMPT, evidence};
use crate::session::{Probing, Session};

/// The phases in which an attempt can end, in order.
const PHASES: [Phase; 5] = [Phase::Generate, Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench];

/// Runs the command.
pub(crate) fn attempts(common: &Common, arguments: &AttemptsArguments) -> Result<u8, CliError> {
    let session = context::open(common, Probing::Never, &Interrupt::default())?;
    let place = arguments.target.split(':').next().unwrap_or(&arguments.target);
    let selection = Selection { targets: vec![place.to_owned()], ..Selection::default() };
    let wanted = pick(&session.graph, &selection, Force::Stale)?;
    let known = Known { plans: plans(&session, &wanted)?, cas: session.cas(), session: &session };
    if arguments.show || arguments.diff {
        let target = known.one(place)?;
        let text = known.kernel(&target)?;
        streams::print(&if arguments.diff { known.difference(&target, &text)? } else { text });
        return Ok(0);
    }
    let graph = &session.graph;
    let is_made = |index: &Index| graph.action(*index).target().phase == Phase::Generate;
    let named = pick_named(&session, &selection)?;
    let made: Vec<Made> = named.into_iter().filter(is_made).filter_map(|index| known.made(index)).collect();
    if matches!(arguments.format, ReportFormat::Json) {
        let text = serde_json::to_string_pretty(&made).context("attempts cannot be written as JSON")?;
        streams::print(&(text + "\n"));
        return Ok(0);
    }
    if made.is_empty() {
        let hint = "a generator makes kernels whose variant has `generator` in ops.yaml and that no person wrote; `t2t build` makes them";
        streams::say(&format!("no attempt at a kernel of `{place}` is known\nhint: {hint}"));
    }
    streams::print(&made.iter().map(Made::line).collect::<String>());
    Ok(0)
}

fn pick_named(session: &Session, selection: &Selection) -> Result<Vec<Index>, CliError> {
    Ok(t2t_plan::graph::pick::named(&session.graph, selection)?.into_iter().collect())
}

/// What is known of attempts.
struct Known<'a> {
    session: &'a Session,
    plans: Vec<Plan>,
    cas: Cas,
}

impl Known<'_> {
    fn settled(&self, target: &Target) -> Option<&Settled> {
        let index = self.session.graph.find(target)?;
        self.plans.iter().find(|plan| plan.index == index).map(|plan| &plan.settled)
    }

    fn record(&self, target: &Target, phase: Phase) -> Option<&Record> {
        self.settled(&Target { phase, ..target.clone() }).and_then(Settled::record)
    }

    fn bytes(&self, record: &Record, name: &str) -> Option<Vec<u8>> {
        self.cas.get(record.outputs.get(name)?.digest).ok()
    }

    /// Returns the one attempt that a place names: that with its number, else the one that stands.
    fn one(&self, place: &str) -> Result<Target, CliError> {
        let named = Target::try_from(format!("{place}:generate")).ok().filter(|target| target.variant.is_some());
        let Some(target) = named else {
            let hint = "write it as in `t2t attempts softmax/v1_baseline#2 --show`";
            return Err(CliError::misuse(format!("`{place}` names no variant"), hint));
        };
        let is_numbered = place.contains('#');
        Ok(if is_numbered { target } else { standing(self.session, &self.plans, &target) })
    }

    /// Returns the kernel of an attempt.
    fn kernel(&self, target: &Target) -> Result<String, CliError> {
        let bytes = self.record(target, Phase::Generate).and_then(|record| self.bytes(record, KERNEL));
        let bytes = bytes.ok_or_else(|| {
            let message = format!("no attempt `{}` is known", target.place());
            CliError::misuse(message, format!("`t2t attempts {}` lists those that are", target.of_attempt(1).place()))
        })?;
        Ok(String::from_utf8(bytes).context("a kernel is not UTF-8")?)
    }

    /// Returns how the kernel of an attempt differs from the one before.
    fn difference(&self, target: &Target, text: &str) -> Result<String, CliError> {
        if target.attempt == 1 {
            let message = format!("`{}` is the first attempt: nothing was before it", target.place());
            return Err(CliError::misuse(message, "`--show` prints it"));
        }
        let before = target.of_attempt(target.attempt - 1);
        let earlier = self.kernel(&before)?;
        Ok(difference((&before, &earlier), (target, text)))
    }

    /// Returns what is known of an attempt. None where it was not made.
    fn made(&self, generate: Index) -> Option<Made> {
        let target = self.session.graph.action(generate).target();
        let made = self.record(target, Phase::Generate)?;
        let attempt: Option<Attempt> = self.bytes(made, ATTEMPT).and_then(|bytes| read::document(&bytes).ok());
        let records: Vec<&Record> = PHASES.iter().filter_map(|phase| self.record(target, *phase)).collect();
        let usage = attempt.as_ref().and_then(|attempt| attempt.usage.clone()).unwrap_or_default();
        Some(Made {
            attempt: target.place(),
            form: attempt.as_ref().map_or("none", Attempt::form).to_owned(),
            end: self.end(target, &records),
            wall_ms: records.iter().map(|record| record.wall_ms).sum(),
            tokens: usage.tokens,
            cost_usd: usage.cost_usd,
        })
    }

    fn end(&self, target: &Target, records: &[&Record]) -> MadeEnd {
        let rejected = records.iter().find(|record| record.outcome.is_rejection());
        if let Some(record) = rejected
            && let Outcome::Rejected { class } = &record.outcome
        {
            let failure = evidence::failure(record, |digest| self.cas.get(digest)).unwrap_or_default();
            let message = failure.message.lines().next().unwrap_or_default().to_owned();
            return MadeEnd::Rejected {
                class: class.clone(),
                phase: record.identity.target.phase.to_string(),
                message,
            };
        }
        let check = self.record(target, Phase::Check);
        if let Some(Outcome::NotJudged { reason }) = check.map(|record| &record.outcome) {
            return MadeEnd::NotJudged { reason: reason.clone() };
        }
        if check.is_none() {
            return MadeEnd::NotChecked;
        }
        let bench: Option<Bench> = self
            .record(target, Phase::Bench)
            .and_then(|record| self.bytes(record, "bench"))
            .and_then(|bytes| read::document(&bytes).ok());
        MadeEnd::Accepted { final_ms: bench.and_then(|bench| bench.final_ms) }
    }
}

/// Returns how the kernel of an attempt differs from another one's, as a unified diff.
pub(super) fn difference((before, earlier): (&Target, &str), (target, text): (&Target, &str)) -> String {
    let difference = TextDiff::from_lines(earlier, text);
    difference.unified_diff().header(&before.place(), &target.place()).to_string()
}

/// An attempt that was made.
#[derive(Debug, Serialize)]
struct Made {
    /// As in `softmax/v1_baseline#2`.
    attempt: String,
    /// In which form a generator wrote it.
    form: String,
    #[serde(flatten)]
    end: MadeEnd,
    /// How long its actions ran, all together.
    wall_ms: u64,
    /// What its author says that it took.
    tokens: Option<u64>,
    cost_usd: Option<f64>,
}

/// How an attempt ended.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum MadeEnd {
    Accepted { final_ms: Option<f64> },
    Rejected { class: String, phase: String, message: String },
    NotJudged { reason: String },
    NotChecked,
}

impl Made {
    /// Returns its line.
    fn line(&self) -> String {
        let end = match &self.end {
            MadeEnd::Accepted { final_ms } => {
                let figure = final_ms.map(|ms| format!(", {ms:.4} ms")).unwrap_or_default();
                format!("accepted{figure}")
            }
            MadeEnd::Rejected { class, phase, message } => format!("rejected ({class}, {phase}): {message}"),
            MadeEnd::NotJudged { reason } => format!("not judged: {reason}"),
            MadeEnd::NotChecked => "not checked".to_owned(),
        };
        let time = figures::time(Duration::from_millis(self.wall_ms));
        let tokens = self.tokens.map(|tokens| format!("  {tokens} tokens")).unwrap_or_default();
        let cost = self.cost_usd.map(|cost| format!("  ${cost:.2}")).unwrap_or_default();
        format!("{}  {}  {end}  {time}{tokens}{cost}\n", self.attempt, self.form)
    }
}
