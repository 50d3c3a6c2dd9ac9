//! `t2t artifact`: what an action's result left, as the store has it: an analysis, evidence, resources, figures.
//!
//! It does not know what documents say.

use std::collections::BTreeSet;

use t2t_host::interrupt::Interrupt;
use t2t_plan::graph::pick::{Force, Selection, named, pick};
use t2t_plan::graph::{Index, Wanted};

use super::error::CliError;
use super::inspect::standing;
use super::plan::{plans, standing as standing_attempt};
use super::{Common, context, streams};
use crate::session::{Probing, Session};

/// Prints the artifact `name` of the action that `target` names, byte for byte; without a name a line for each that there is: its name, its bytes.
pub(crate) fn artifact(common: &Common, target: &str, name: Option<&str>) -> Result<u8, CliError> {
    let session = context::open(common, Probing::Never, &Interrupt::default())?;
    let selection = Selection { targets: vec![target.to_owned()], ..Selection::default() };
    let wanted = pick(&session.graph, &selection, Force::Stale)?;
    let picked = named(&session.graph, &selection)?;
    let Some(index) = one(&session, &wanted, target, &picked)? else {
        let hint = "name one, as in `t2t artifact softmax/v2_tiling:check evidence`";
        return Err(CliError::misuse(format!("`{target}` is not one action"), hint));
    };
    let build = format!("`t2t build {target}`");
    let Some(record) = standing(&session, &wanted, index, &format!("run {build}"))? else {
        return Err(CliError::misuse(format!("`{target}` has no result"), format!("run {build}")));
    };
    let Some(name) = name else {
        let lines = record.outputs.iter().map(|(name, blob)| format!("{name} {}\n", blob.size));
        streams::print(&lines.collect::<String>());
        return Ok(0);
    };
    let Some(blob) = record.outputs.get(name) else {
        let known: Vec<String> = record.outputs.keys().map(|name| format!("`{name}`")).collect();
        let hint = match known.as_slice() {
            [] => "it left none".to_owned(),
            known => format!("it left {}", known.join(", ")),
        };
        return Err(CliError::misuse(format!("the result of `{target}` has no `{name}`"), hint));
    };
    let bytes = session.cas().get(blob.digest).map_err(|error| {
        // A build does not make again what a result that stands has left.
        CliError::misuse(format!("`{name}`: {error}"), format!("run `t2t cache verify --repair`, then {build}"))
    })?;
    streams::print_bytes(&bytes);
    Ok(0)
}

/// Returns the one action that was picked: of the attempts at a kernel the one that stands, unless `target` has a number.
fn one(session: &Session, wanted: &Wanted, target: &str, picked: &BTreeSet<Index>) -> Result<Option<Index>, CliError> {
    let mut found = picked.clone();
    if picked.len() > 1 && !target.contains('#') {
        let plans = plans(session, wanted)?;
        let last = |index: &Index| {
            session.graph.find(&standing_attempt(session, &plans, session.graph.action(*index).target()))
        };
        found = picked.iter().filter_map(last).collect();
    }
    let first = found.pop_first();
    Ok(first.filter(|_| found.is_empty()))
}
