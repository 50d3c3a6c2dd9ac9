//! Ahead: where files of a few ops were edited, those ops are built before the whole workspace is looked at, so that what the edit made stale starts at once.
//!
//! It decides nothing: the build of the whole workspace uses its results like any others. It does not know what was edited.

use std::collections::BTreeSet;

use t2t_host::cores;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Phase, Target};
use t2t_model::event::{Event, Tally};
use t2t_plan::graph::pick::{Force, pick};
use t2t_plan::schedule::Settled;

use super::error::CliError;
use super::outputs::Outputs;
use super::remote::OpenedRemote;
use super::running::Running;
use super::{BuildArguments, Common, context, setup};
use crate::engine;
use crate::reporter::Reporter;
use crate::session::{Options, Part, Probing, Session};

/// What was built ahead.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// The actions that settled, and were told of.
    told: BTreeSet<Target>,
    ran: BTreeSet<Target>,
    restored: BTreeSet<Target>,
    /// Whether the build was introduced.
    is_introduced: bool,
}

impl Ahead {
    /// Returns whether the build was introduced: what runs the kernels, and how many actions there are.
    pub(crate) fn is_introduced(&self) -> bool {
        self.is_introduced
    }

    /// Returns whether the event only says again what was told.
    pub(crate) fn repeats(&self, event: &Event) -> bool {
        match event {
            Event::ActionFresh { target, .. } | Event::ActionSkipped { target, .. } | Event::Failure { target, .. } => {
                self.told.contains(target)
            }
            _ => false,
        }
    }

    /// Returns what became of the actions that were built ahead, if nothing else is built.
    pub(crate) fn tally(&self) -> Tally {
        Tally { ran: self.ran.len(), restored: self.restored.len(), ..Tally::default() }
    }

    /// Counts an action that ran or was restored ahead, and is fresh in the whole build, as it ended ahead.
    pub(crate) fn correct(&self, tally: &mut Tally, fresh: &dyn Fn(&Target) -> bool) {
        let ran = self.ran.iter().filter(|target| fresh(target)).count();
        let restored = self.restored.iter().filter(|target| fresh(target)).count();
        tally.fresh -= ran + restored;
        tally.ran += ran;
        tally.restored += restored;
    }
}

/// Builds `part`, after telling `introduction`. A part that cannot be opened, or in which nothing is asked for, is left to the build of the whole.
pub(crate) fn build_part(
    common: &Common,
    arguments: &BuildArguments,
    part: Part,
    introduction: &[Event],
    outputs: &mut Outputs,
    (interrupt, running, remote): (&Interrupt, &Running, &OpenedRemote),
) -> Result<Ahead, CliError> {
    let root = context::workspace()?;
    let options = context::options(common, &root, Probing::Known);
    let options = Options { configurations: arguments.targets.configurations(), ..options };
    let Ok(session) = Session::open_part(&root, &options, interrupt, part) else { return Ok(Ahead::default()) };
    let selection = arguments.targets.selection(&session);
    let Ok(Ok(mut wanted)) = selection.map(|selection| pick(&session.graph, &selection, Force::Stale)) else {
        return Ok(Ahead::default());
    };
    for index in session.graph.indices() {
        // A summary of a part is none.
        wanted.wanted[index.number()] &= session.graph.action(index).target().phase != Phase::Summary;
    }
    running.hold(&session.pool);
    for event in introduction {
        outputs.report(event);
    }
    let settings = setup::settings(common, arguments, &session, remote)?;
    cores::keep_off_devices(&settings.shares);
    let report = engine::build(&session, &wanted, &settings, interrupt, &mut |event| outputs.report(&event))?;
    let mut ahead = Ahead { is_introduced: true, ..Ahead::default() };
    for index in session.graph.indices() {
        let target = || session.graph.action(index).target().clone();
        match &report.settled[index.number()] {
            Some(Settled::Ran(_)) => ahead.ran.insert(target()),
            Some(Settled::Restored(_)) => ahead.restored.insert(target()),
            Some(Settled::Fresh(_) | Settled::Skipped(_)) => true,
            Some(Settled::Lost(_) | Settled::Planned | Settled::Missing) | None => continue,
        };
        ahead.told.insert(target());
    }
    Ok(ahead)
}
