//! Building edits: the ops that files were edited of are built, and where that settles them for good the answer of the whole follows from what is known of the others.
//!
//! Where it does not, the whole is looked at, and what was built and told before counts as what it was. It does not know what was edited.

use std::collections::BTreeSet;
use std::mem;
use std::time::{Duration, Instant};

use t2t_host::cores;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Phase, Target};
use t2t_model::event::{Event, Tally};
use t2t_plan::graph::Wanted;
use t2t_plan::graph::pick::{Force, pick};
use t2t_plan::schedule::Settled;
use t2t_report::render::build_page::{OpSummary, closing_table};
use t2t_store::store::noop_cache::NoopCache;

use super::answer::{self, Told};
use super::edits::Edits;
use super::error::CliError;
use super::outputs::Outputs;
use super::remote::OpenedRemote;
use super::running::Running;
use super::{BuildArguments, Common, context, setup, streams, totals};
use crate::engine::{self, Ended, Report, local};
use crate::reporter::Reporter;
use crate::session::{Options, Probing, Session};

/// What building the edits came to.
pub(crate) enum Edited {
    /// The whole is built and told of, and this is the exit code.
    Whole(u8),
    /// The whole is to be looked at.
    Part(Ahead),
}

/// What was built before the whole is looked at.
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

    /// Counts what ran or came back ahead, and was found fresh after, as what it was.
    pub(crate) fn correct(&self, tally: &mut Tally, fresh: &dyn Fn(&Target) -> bool) {
        let ran = self.ran.iter().filter(|target| fresh(target)).count();
        let restored = self.restored.iter().filter(|target| fresh(target)).count();
        tally.fresh -= ran + restored;
        tally.ran += ran;
        tally.restored += restored;
    }

    fn of(session: &Session, report: &Report) -> Self {
        let mut ahead = Self { is_introduced: true, ..Self::default() };
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
        ahead
    }
}

/// Builds the ops that `edits` are of, and with them the whole where all of it was asked for. What cannot be opened as a part is left to the build of the whole.
pub(crate) fn build(
    common: &Common,
    arguments: &BuildArguments,
    edits: Edits<'_>,
    place: &NoopCache,
    outputs: &mut Outputs,
    (interrupt, running, remote): (&Interrupt, &Running, &OpenedRemote),
    start: Instant,
) -> Result<Edited, CliError> {
    let root = context::workspace()?;
    let options = context::options(common, &root, Probing::Known);
    let options = Options { configurations: arguments.targets.configurations(), ..options };
    let is_whole = arguments.targets.are_all() && !arguments.figures;
    let part = edits.part(is_whole);
    let Ok(session) = Session::open_part(&root, &options, interrupt, part) else {
        return Ok(Edited::Part(Ahead::default()));
    };
    let selection = arguments.targets.selection(&session);
    let Ok(Ok(wanted)) = selection.map(|selection| pick(&session.graph, &selection, Force::Stale)) else {
        return Ok(Edited::Part(Ahead::default()));
    };
    let wanted = without_summary(&session, wanted);
    if !session.history().is_ok_and(|loaded| loaded.damaged == 0) {
        return Ok(Edited::Part(Ahead::default()));
    }
    running.hold(&session.pool);
    for event in edits.introduction() {
        outputs.report(event);
    }
    let settings = setup::settings(common, arguments, &session, remote)?;
    cores::keep_off_devices(&settings.shares);
    let mut others = Others { told: if is_whole { edits.told_of_others() } else { Vec::new() }, next: 0 };
    let (places, mut failures) = (edits.places(), Vec::new());
    let report = engine::build(&session, &wanted, &settings, interrupt, &mut |event| {
        if let Some(target) = event.target() {
            let is_started = matches!(event, Event::ActionStarted { .. }) && runs_in_a_child(&session, target);
            let place = places.get(target.op.as_str()).copied();
            let place = if is_started || *target == Target::summary() { None } else { place };
            others.tell_before(place, outputs);
        }
        outputs.report(&event);
        failures.extend(Some(event).filter(|event| matches!(event, Event::Failure { .. })));
    })?;
    let mut ahead = Ahead::of(&session, &report);
    ahead.told.extend(others.told[..others.next].iter().filter_map(|(_, event)| event.target().cloned()));
    let standings = answer::standings(&session, &report);
    let counted = edits.tally_of_others().filter(|_| is_whole && report.ended == Ended::Settled);
    let summary = answer::summary(&session, &report);
    let (Some(standings), Some(mut tally), Some(summary)) = (standings, counted, summary) else {
        return Ok(Edited::Part(ahead));
    };
    others.tell_before(None, outputs);
    totals::count(&report, &mut tally);
    let exit_code = u8::from(tally.rejected > 0 || (arguments.require_judged && tally.not_judged > 0));
    outputs.report(&Event::Finished { tally, wall: start.elapsed(), exit_code });
    outputs.close_screen();
    let own = answer::summaries(&session, &report);
    let table = table(&session, &own);
    streams::print(&table);
    let told_again = answer::told_again(&session, &report, &failures).into_iter();
    let own_told = told_again.filter_map(|event| Some((*places.get(event.target()?.op.as_str())?, event)));
    let mut told: Vec<(usize, Event)> = others.told.into_iter().chain(own_told).collect();
    told.sort_by_key(|(place, _)| *place);
    let mut events: Vec<Event> = edits.introduction().cloned().collect();
    events.extend(told.into_iter().map(|(_, event)| event));
    drop(places);
    if let Some(mut tally) = edits.tally_of_others() {
        let again = answer::sum(standings.values());
        tally.fresh += again.fresh;
        tally.skipped += again.skipped;
        tally.rejected += again.rejected;
        tally.not_judged += again.not_judged;
        events.push(Event::Finished { tally, wall: Duration::ZERO, exit_code });
        let told = Told { events, table, exit_code, summary: Some(summary) };
        edits.keep(place, &session, &report, &told, standings, &own);
    }
    session.leave();
    mem::forget(report);
    Ok(Edited::Whole(exit_code))
}

/// The summary of a part is none: that of the whole is made at the end.
fn without_summary(session: &Session, mut wanted: Wanted) -> Wanted {
    for index in session.graph.indices() {
        wanted.wanted[index.number()] &= session.graph.action(index).target().phase != Phase::Summary;
    }
    wanted
}

/// What is told of the ops that are not edited, in between, where a look at everything tells it.
struct Others {
    told: Vec<(usize, Event)>,
    /// The first that is not told yet.
    next: usize,
}

impl Others {
    /// Tells what is left of the ops before this place, or all.
    fn tell_before(&mut self, place: Option<usize>, outputs: &mut Outputs) {
        while let Some((of, event)) = self.told.get(self.next).filter(|(of, _)| place.is_none_or(|place| *of < place)) {
            debug_assert!(place.is_none_or(|place| *of < place));
            outputs.report(event);
            self.next += 1;
        }
    }
}

/// Returns whether an action of the target runs in a child, so that all is decided when it starts that can be decided without one.
fn runs_in_a_child(session: &Session, target: &Target) -> bool {
    !matches!(target.phase, Phase::Select | Phase::Log | Phase::Summary) && local::unusable(session, target).is_none()
}

/// Returns the table of all ops: those of the part, and what is known of the others.
fn table(session: &Session, own: &[OpSummary]) -> String {
    let mut own = own.iter();
    let rows = session.ops().into_iter().filter_map(|(_, known)| known.or_else(|| own.next()));
    closing_table(&rows.collect::<Vec<_>>(), streams::width())
}
