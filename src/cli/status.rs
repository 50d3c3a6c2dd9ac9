//! `t2t status`: how the ops of a workspace stand, without running anything.

use serde_json::{Value, json};
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Phase, Target};
use t2t_model::record::Outcome;
use t2t_plan::explain::Reason;
use t2t_plan::graph::expand::profile;
use t2t_plan::graph::pick::{Force, pick};
use t2t_plan::graph::{Index, Wanted};
use t2t_plan::schedule::Settled;
use t2t_protocol::read;
use t2t_report::render::bench_table;
use t2t_report::render::standing::{self, Row};
use t2t_spec::Variant;

use super::error::CliError;
use super::plan::{self, Plan, plans};
use super::{Common, ReportFormat, Targets, context, streams};
use crate::session::Session;

/// How many reasons a line has; `t2t explain` lists them all.
const REASONS: usize = 2;

/// Prints what is stale, rejected or skipped, and how many actions are up to date.
pub(crate) fn status(common: &Common, targets: &Targets, format: ReportFormat) -> Result<u8, CliError> {
    let session = context::open_for(common, targets, context::as_built(common)?, &Interrupt::default())?;
    context::warn_of_unknown_versions(common, &session)?;
    let wanted = pick(&session.graph, &targets.selection(&session)?, Force::Stale)?;
    let plans = plans(&session, &wanted)?;
    let target = |plan: &Plan| session.graph.action(plan.index).target();
    let is_last = |plan: &&Plan| {
        let target = target(plan);
        target.variant.is_none() || target.attempt >= plan::standing(&session, &plans, target).attempt
    };
    if matches!(format, ReportFormat::Json) {
        let needed = plans.iter().filter(|plan| plan.settled != Settled::NotNeeded);
        let states = needed.map(|plan| state(plan, target(plan), is_last(&plan)));
        streams::print(&format!("{:#}\n", Value::Array(states.collect())));
        return Ok(0);
    }
    let rows: Vec<Row> = plans.iter().filter(is_last).filter_map(|plan| row(plan, target(plan))).collect();
    streams::print(&standing::lines(&rows, streams::width()));
    streams::print(&authors(&session, &wanted, &plans));
    streams::print(&measured(&session, &plans, target, is_last));
    for path in session.unlisted() {
        streams::print(&format!("unlisted  {path}  no variant in ops.yaml names it\n"));
    }
    let stale = plans.iter().filter(|plan| plan.settled == Settled::Planned).count();
    let fresh = plans.iter().filter(|plan| plan.settled.record().is_some()).count();
    let needed = plans.iter().filter(|plan| plan.settled != Settled::NotNeeded).count();
    streams::print(&format!("{fresh} up to date, {stale} stale, of {needed} actions\n"));
    if stale > 0 {
        streams::say("hint: `t2t build --dry-run` lists each action, `t2t explain TARGET` all its reasons");
    }
    Ok(0)
}

/// Returns, op by op, which kernel files the generator makes, and which of those that it could make are a person's. Nothing where no op names a generator.
fn authors(session: &Session, wanted: &Wanted, plans: &[Plan]) -> String {
    let mut text = String::new();
    for op in &session.spec.ops {
        let is_wanted = |index: &Index| wanted.wanted[index.number()];
        if !session.graph.of_op(&op.name).iter().any(is_wanted) {
            continue;
        }
        let with_generator = op.variants.iter().filter(|variant| variant.generator.is_some());
        let (made, own): (Vec<_>, Vec<_>) =
            with_generator.partition(|variant| session.inventory.generated.contains(&variant.file));
        let attempt = |variant: &&Variant| {
            let first = Target::of_variant(&op.name, &variant.name, Phase::Generate);
            plan::standing(session, plans, &first).variant_name().unwrap_or_default()
        };
        for (word, names) in [
            ("generated", made.iter().map(attempt).collect::<Vec<_>>()),
            ("own", own.iter().map(|variant| variant.name.clone()).collect()),
        ] {
            if !names.is_empty() {
                text += &format!("{word:<10}{}: {}\n", op.name, names.join(", "));
            }
        }
    }
    text
}

/// Returns a line for each bench whose number of runs was not fixed: how many it had at each size, and why no more.
fn measured<'a>(
    session: &Session,
    plans: &'a [Plan],
    target: impl Fn(&'a Plan) -> &'a Target,
    is_last: impl Fn(&&'a Plan) -> bool,
) -> String {
    let lane = profile(&session.inventory.device.class);
    let is_open = |op: &str| session.spec.op(op).is_some_and(|op| op.settings(lane).protocol.stop.is_some());
    let ends = plans.iter().filter(is_last).filter_map(|plan| {
        let target = target(plan);
        let record = plan.settled.record().filter(|_| target.phase == Phase::Bench && is_open(&target.op))?;
        let bytes = session.cas().get(record.outputs.get("bench")?.digest).ok()?;
        let ends = bench_table::ends(&read::document(&bytes).ok()?);
        (!ends.is_empty()).then(|| format!("measured  {target}: {ends}\n"))
    });
    ends.collect()
}

/// Returns how an action stands, for programs. It counts where no later attempt at the kernel does in its place.
fn state(plan: &Plan, target: &Target, counts: bool) -> Value {
    let record = plan.settled.record();
    let word = match (&plan.settled, record) {
        (Settled::Skipped(_), _) => "skipped",
        (_, Some(_)) => "fresh",
        (_, None) => "stale",
    };
    let (outcome, class) = match record.map(|record| &record.outcome) {
        Some(Outcome::Passed) => (Some("passed"), None),
        Some(Outcome::Rejected { class }) => (Some("rejected"), Some(class)),
        Some(Outcome::NotJudged { .. }) => (Some("not-judged"), None),
        Some(Outcome::Lost { .. }) | None => (None, None),
    };
    let why: Vec<String> = match &plan.settled {
        Settled::Skipped(on) => vec![format!("after {on}")],
        _ => plan.why.iter().map(ToString::to_string).collect(),
    };
    let key = record.map(|record| record.key.to_string());
    json!({
        "target": target.to_string(),
        "state": word,
        "outcome": outcome,
        "class": class,
        "why": why,
        "key": key,
        "counts": counts,
    })
}

/// Returns how an action stands. None where all is well.
fn row(plan: &Plan, target: &Target) -> Option<Row> {
    let (word, why) = match &plan.settled {
        Settled::Planned | Settled::Missing => ("stale", own_reasons(&plan.why)),
        Settled::NotNeeded => return None,
        Settled::Skipped(on) => ("skipped", format!("after {on}")),
        settled => match settled.record().map(|record| &record.outcome) {
            Some(Outcome::Rejected { class }) => ("rejected", class.clone()),
            Some(Outcome::NotJudged { reason }) => ("unjudged", reason.clone()),
            _ => return None,
        },
    };
    Some(Row { word, target: target.clone(), why })
}

/// Returns why an action itself is stale. What would run first because of others has none of its own.
pub(super) fn own_reasons(why: &[Reason]) -> String {
    let own: Vec<String> =
        why.iter().filter(|reason| !matches!(reason, Reason::Upstream(_))).map(ToString::to_string).collect();
    match own.len() {
        0 => "its inputs are made anew".to_owned(),
        many if many > REASONS => format!("{}; and {} more", own[..REASONS].join("; "), many - REASONS),
        _ => own.join("; "),
    }
}
