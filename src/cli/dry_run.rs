//! `t2t build --dry-run`: what would run, and why; with `--on` also on which nodes of the cluster.
//!
//! A look asks no cluster unless the command line names one. It does not know how anything is performed.

use t2t_host::interrupt::Interrupt;
use t2t_plan::explain;
use t2t_plan::graph::pick::{Force, pick};
use t2t_plan::schedule::Settled;

use super::cluster::{self, Join, Joined, Lent};
use super::error::CliError;
use super::plan::{Plan, plans};
use super::{BuildArguments, Common, add, context, executor, models, streams};
use crate::session::{Options, Probing, Session};

/// Prints a line for every action that would run: its target, then the reasons.
pub(crate) fn dry_run(common: &Common, arguments: &BuildArguments) -> Result<u8, CliError> {
    let mut joined = Joined::default();
    models::each(common, arguments, |common| of_one(common, arguments, &mut joined))
}

/// Does so for the one model that `common` names, or for this machine.
fn of_one(common: &Common, arguments: &BuildArguments, joined: &mut Joined) -> Result<u8, CliError> {
    let root = context::workspace().map_err(|error| add::hinted(error, &arguments.targets))?;
    let interrupt = Interrupt::default();
    let options = Options {
        executor: executor::given(arguments.on.as_deref()),
        configurations: arguments.targets.configurations(),
        ..context::options(common, &root, Probing::WhereItCan)
    };
    let open = || {
        let session = Session::open(&root, &options, &interrupt)?;
        let force = if arguments.force { Force::Named } else { Force::Stale };
        let wanted = pick(&session.graph, &arguments.targets.selection(&session)?, force)?;
        Ok((session, wanted))
    };
    let lent = match &arguments.on {
        Some(_) => cluster::lent((common, arguments), Join::ForWork, joined, &interrupt, open)?,
        None => Lent::nothing(open()?),
    };
    context::warn(&lent.session);
    context::warn_of_unknown_versions(common, &lent.session)?;
    streams::print(&text(&lent, &plans(&lent.session, &lent.wanted)?));
    // Where nothing can be written, the next look reads the sources again.
    let _ = lent.session.sources.save();
    Ok(0)
}

/// Returns the lines of what would run. Where nodes lend something, what they lend comes first, and what they would perform stands apart.
fn text(lent: &Lent, plans: &[Plan]) -> String {
    let action = |plan: &Plan| lent.session.graph.action(plan.index);
    let lines = |plans: &[&Plan]| -> String {
        let line = |plan: &&Plan| format!("{} {}\n", action(plan).target(), explain::line(&plan.why));
        plans.iter().map(line).collect::<Vec<_>>().concat()
    };
    let planned = plans.iter().filter(|plan| plan.settled == Settled::Planned);
    let Some(nodes) = lent.lines() else { return lines(&planned.collect::<Vec<_>>()) };
    let (there, here): (Vec<&Plan>, Vec<&Plan>) = planned.partition(|plan| lent.performs(&action(plan).identity));
    format!("{nodes}on nodes: {}\n{}here: {}\n{}", counted(&there), lines(&there), counted(&here), lines(&here))
}

fn counted(plans: &[&Plan]) -> String {
    if plans.len() == 1 { "1 action".to_owned() } else { format!("{} actions", plans.len()) }
}
