//! `t2t attempts`: what was tried at kernels that a generator writes: in which form, how it ended, how fast it was; and the kernel of an attempt.
//!
//! It runs nothing.

use anyhow::Context;
use similar::TextDiff;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Phase, Target};
use t2t_model::record::{KERNEL, Outcome, Record};
use t2t_plan::graph::Index;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::schedule::Settled;
use t2t_protocol::{Bench, read};
use t2t_report::figures;
use t2t_report::render::attempts::{Attempt, Usage};
use t2t_store::store::cas::Cas;

use super::error::CliError;
use super::plan::{Plan, plans, standing};
use super::{AttemptsArguments, Common, context, streams};
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
    let lines: Vec<String> = named.into_iter().filter(is_made).filter_map(|index| known.line(index)).collect();
    if lines.is_empty() {
        let hint = "a generator makes kernels whose variant has `generator` in ops.yaml and that no person wrote; `t2t build` makes them";
        streams::say(&format!("no attempt at a kernel of `{place}` is known\nhint: {hint}"));
    }
    streams::print(&lines.concat());
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
        let difference = TextDiff::from_lines(earlier.as_str(), text);
        Ok(difference.unified_diff().header(&before.place(), &target.place()).to_string())
    }

    /// Returns the line of an attempt: its form, how it ended, its figure and how long it took. None where it was not made.
    fn line(&self, generate: Index) -> Option<String> {
        let target = self.session.graph.action(generate).target();
        let made = self.record(target, Phase::Generate)?;
        let attempt: Option<Attempt> = self.bytes(made, ATTEMPT).and_then(|bytes| read::document(&bytes).ok());
        let form = attempt.as_ref().map_or("none", Attempt::form);
        let records: Vec<&Record> = PHASES.iter().filter_map(|phase| self.record(target, *phase)).collect();
        let wall = records.iter().map(|record| record.wall_ms).sum();
        let time = figures::time(std::time::Duration::from_millis(wall));
        let end = self.end(target, &records);
        let usage = attempt.as_ref().and_then(|attempt| attempt.usage.as_ref()).map(told).unwrap_or_default();
        Some(format!("{}  {form}  {end}  {time}{usage}\n", target.place()))
    }

    fn end(&self, target: &Target, records: &[&Record]) -> String {
        let rejected = records.iter().find(|record| record.outcome.is_rejection());
        if let Some(record) = rejected
            && let Outcome::Rejected { class } = &record.outcome
        {
            let failure = evidence::failure(record, |digest| self.cas.get(digest)).unwrap_or_default();
            let line = failure.message.lines().next().unwrap_or_default().to_owned();
            return format!("rejected ({class}, {}): {line}", record.identity.target.phase);
        }
        if let Some(Outcome::NotJudged { reason }) = self.record(target, Phase::Check).map(|record| &record.outcome) {
            return format!("not judged: {reason}");
        }
        let bench: Option<Bench> = self
            .record(target, Phase::Bench)
            .and_then(|record| self.bytes(record, "bench"))
            .and_then(|bytes| read::document(&bytes).ok());
        let figure = bench.and_then(|bench| bench.final_ms).map(|ms| format!(", {ms:.4} ms")).unwrap_or_default();
        match self.record(target, Phase::Check) {
            Some(_) => format!("accepted{figure}"),
            None => "not checked".to_owned(),
        }
    }
}

/// Returns what an author says that it took.
fn told(usage: &Usage) -> String {
    let tokens = usage.tokens.map(|tokens| format!("  {tokens} tokens")).unwrap_or_default();
    let cost = usage.cost_usd.map(|cost| format!("  ${cost:.2}")).unwrap_or_default();
    tokens + &cost
}
