//! `t2t status`: how the ops of a workspace stand, without running anything.

use t2t_host::interrupt::Interrupt;
use t2t_model::action::Target;
use t2t_model::record::Outcome;
use t2t_plan::explain::Reason;
use t2t_plan::graph::pick::{Force, pick};
use t2t_plan::schedule::Settled;
use t2t_report::render::standing::{self, Row};

use super::error::CliError;
use super::plan::{Plan, plans};
use super::{Common, Targets, context, streams};

/// How many reasons a line has; `t2t explain` lists them all.
const REASONS: usize = 2;

/// Prints what is stale, rejected or skipped, and how many actions are up to date.
pub(crate) fn status(common: &Common, targets: &Targets) -> Result<u8, CliError> {
    let session = context::open_for(common, targets, context::as_built(common)?, &Interrupt::default())?;
    context::warn_of_unknown_versions(common, &session)?;
    let wanted = pick(&session.graph, &targets.selection(&session)?, Force::Stale)?;
    let plans = plans(&session, &wanted)?;
    let rows: Vec<Row> = plans.iter().filter_map(|plan| row(plan, session.graph.action(plan.index).target())).collect();
    streams::print(&standing::lines(&rows, streams::width()));
    for path in session.unlisted() {
        streams::print(&format!("unlisted  {path}  no variant in ops.yaml names it\n"));
    }
    let stale = plans.iter().filter(|plan| plan.settled == Settled::Planned).count();
    let fresh = plans.iter().filter(|plan| plan.settled.record().is_some()).count();
    streams::print(&format!("{fresh} up to date, {stale} stale, of {} actions\n", plans.len()));
    if stale > 0 {
        streams::say("hint: `t2t build --dry-run` lists each action, `t2t explain TARGET` all its reasons");
    }
    Ok(0)
}

/// Returns how an action stands. None where all is well.
fn row(plan: &Plan, target: &Target) -> Option<Row> {
    let (word, why) = match &plan.settled {
        Settled::Planned | Settled::Missing => ("stale", own_reasons(&plan.why)),
        Settled::Skipped(on) => ("skipped", format!("after {on}")),
        settled => match settled.record().map(|record| &record.outcome) {
            Some(Outcome::Rejected { class }) => ("rejected", class.clone()),
            Some(Outcome::NotJudged { reason }) => ("unjudged", reason.clone()),
            _ => return None,
        },
    };
    Some(Row { word, target: target.clone(), why })
}

/// Returns the reasons of an action itself. What would run first because of others has none of its own.
fn own_reasons(why: &[Reason]) -> String {
    let own: Vec<String> =
        why.iter().filter(|reason| !matches!(reason, Reason::Upstream(_))).map(ToString::to_string).collect();
    match own.len() {
        0 => "its inputs are made anew".to_owned(),
        many if many > REASONS => format!("{}; and {} more", own[..REASONS].join("; "), many - REASONS),
        _ => own.join("; "),
    }
}
