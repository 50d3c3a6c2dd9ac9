//! Plans: what a build would do about each wanted action, without doing it. What `status`, `explain`, `publish` and `compare` stand on.
//!
//! It prints nothing.

use anyhow::Context;
use t2t_model::action::Target;
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::manifest::Manifest;
use t2t_plan::attempts;
use t2t_plan::decide::Why;
use t2t_plan::explain::{self, Reason};
use t2t_plan::graph::{Index, Wanted};
use t2t_plan::schedule::{Schedule, Settled, Step};
use t2t_store::store::cas::Cas;

use super::error::CliError;
use crate::engine::made;
use crate::session::Session;

/// What would become of an action.
pub(crate) struct Plan {
    /// Which.
    pub(crate) index: Index,
    /// What would become of it; planned where it would run.
    pub(crate) settled: Settled,
    /// Why it would run.
    pub(crate) why: Vec<Reason>,
    /// Its manifest, or that of the result that stands.
    pub(crate) manifest: Option<Manifest>,
}

/// Decides every wanted action as a build would, and runs none.
pub(crate) fn plans(session: &Session, wanted: &Wanted) -> Result<Vec<Plan>, CliError> {
    let history = history(session)?;
    let cas = session.cas();
    let mut schedule = Schedule::new(&session.graph, wanted.clone());
    let mut plans = Vec::new();
    while let Some(step) = schedule.next_step(&history, &|path, like| session.sources.seen(path, like)) {
        let plan = match step {
            Step::Recall { .. } => unreachable!("a plan has the whole history"),
            Step::Read { index, path, kernel } => {
                // What is gone from the store would be made anew: nothing is known of it.
                let bytes = cas.get(kernel.digest).unwrap_or_default();
                schedule.supply(index, made(session, session.graph.action(index).target(), &path, &bytes).0);
                continue;
            }
            Step::Settled(index) => {
                let settled = schedule.settled(index).cloned().expect("it settled");
                let manifest = settled.record().and_then(|record| stored(&cas, record.key));
                Plan { index, settled, why: Vec::new(), manifest }
            }
            Step::Run { index, manifest, why } => {
                schedule.finish(index, Settled::Planned);
                let why = reasons(&cas, &why, &manifest);
                Plan { index, settled: Settled::Planned, why, manifest: Some(manifest) }
            }
        };
        plans.push(plan);
    }
    plans.sort_by_key(|plan| plan.index);
    Ok(plans)
}

/// Returns the attempt at the variant of `target` that stands, as a target of the same phase.
pub(crate) fn standing(session: &Session, plans: &[Plan], target: &Target) -> Target {
    let plan = |index: Index| plans.binary_search_by_key(&index, |plan| plan.index).ok().map(|place| &plans[place]);
    let ends = |index| plan(index).map(|plan| &plan.settled);
    target.of_attempt(attempts::standing(&session.graph, &ends, target))
}

fn reasons(cas: &Cas, why: &Why, manifest: &Manifest) -> Vec<Reason> {
    let old = match why {
        Why::Changed { old, .. } => stored(cas, *old),
        _ => None,
    };
    explain::reasons(why, old.as_ref(), manifest)
}

fn stored(cas: &Cas, key: Digest) -> Option<Manifest> {
    cas.get(key).ok().and_then(|bytes| Manifest::decode(&bytes))
}

/// Returns what is known of earlier results.
pub(crate) fn history(session: &Session) -> Result<History, CliError> {
    Ok(session.history().context("cannot read `cache/journal`")?.history)
}
