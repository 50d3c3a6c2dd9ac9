//! Building edits: the ops that files were edited of are built, and where that settles them for good the answer of the whole follows from what is known of the others.
//!
//! Where it does not, the whole is looked at, and what was built and told before counts as what it was. It does not know what was edited.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::path::Path;
use std::time::{Duration, Instant};

use t2t_host::cores;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::event::{Event, Tally};
use t2t_plan::graph::Wanted;
use t2t_plan::graph::pick::{Force, pick};
use t2t_plan::schedule::Settled;
use t2t_report::render::build_page::{OpSummary, closing_table};
use t2t_store::store::noop_cache::NoopCache;

use super::answer::{self, Standing, Told};
use super::edits::Edits;
use super::error::CliError;
use super::outputs::Outputs;
use super::remote::OpenedRemote;
use super::running::Running;
use super::{BuildArguments, Common, context, executor, setup, streams, totals};
use crate::engine::{self, Ended, Report, local};
use crate::reporter::Reporter;
use crate::session::{HeadStart, Options, Probing, Session};

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

    /// Returns whether the event only says again what was told. Of an action that runs again all is new.
    pub(crate) fn repeats(&mut self, event: &Event) -> bool {
        match event {
            Event::ActionStarted { target, .. } => {
                self.told.remove(target);
                false
            }
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

    /// Adds what a build settled, which is looked at once more.
    pub(crate) fn add(&mut self, session: &Session, report: &Report) {
        let Self { told, ran, restored, .. } = Self::of(session, report);
        self.told.extend(told);
        self.restored.extend(restored.difference(&ran).filter(|target| !self.ran.contains(target)).cloned());
        self.ran.extend(ran);
        self.is_introduced = true;
    }

    fn of(session: &Session, report: &Report) -> Self {
        let mut ahead = Self { is_introduced: true, ..Self::default() };
        for index in session.graph.indices() {
            let target = || session.graph.action(index).target().clone();
            match &report.settled[index.number()] {
                Some(Settled::Ran(_)) => ahead.ran.insert(target()),
                Some(Settled::Restored(_)) => ahead.restored.insert(target()),
                Some(Settled::Fresh(_) | Settled::Skipped(_)) => true,
                Some(
                    Settled::Lost(_) | Settled::Planned | Settled::Missing | Settled::Withheld(_) | Settled::NotNeeded,
                )
                | None => continue,
            };
            ahead.told.insert(target());
        }
        ahead
    }
}

/// The ops that were edited, opened as a part of the workspace.
pub(crate) struct Opened<'a> {
    edits: Edits<'a>,
    pub(crate) session: Session,
    pub(crate) wanted: Wanted,
    pub(crate) telling: Telling,
}

/// What is told while a part is built.
pub(crate) struct Telling {
    /// The place of each op of the part in the order of ops.yaml.
    places: HashMap<String, usize>,
    others: Others,
    /// The rejections that were told.
    failures: Vec<Event>,
}

/// What building a part comes to for the whole.
pub(crate) struct Whole {
    /// What settled, in all.
    pub(crate) tally: Tally,
    pub(crate) exit_code: u8,
    standings: HashMap<String, Standing>,
    summary: Option<Digest>,
    own: Vec<OpSummary>,
}

impl<'a> Opened<'a> {
    /// Opens the ops that `edits` are of. None where they cannot be opened, or told from the others: then the whole is looked at.
    pub(crate) fn open(
        arguments: &BuildArguments,
        edits: Edits<'a>,
        root: &Path,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Option<Self> {
        let part = edits.part();
        if edits.has_summary() && part.rest.is_none() {
            return None;
        }
        let session = Session::open_part(root, options, interrupt, part).ok()?;
        let selection = arguments.targets.selection(&session).ok()?;
        let wanted = pick(&session.graph, &selection, Force::Stale).ok()?;
        let summary = session.graph.find(&Target::summary());
        if summary.is_some_and(|index| wanted.wanted[index.number()]) != edits.has_summary() {
            return None;
        }
        let wanted = without_summary(&session, wanted);
        session.history().ok().filter(|loaded| loaded.damaged == 0)?;
        let others = Others { told: edits.told_of_others(), next: 0 };
        let telling = Telling { places: edits.places(), others, failures: Vec::new() };
        Some(Self { edits, session, wanted, telling })
    }

    /// Returns what was told before anything was decided.
    pub(crate) fn introduction(&self) -> impl Iterator<Item = &Event> {
        self.edits.introduction()
    }

    /// Returns what the part that was built comes to for the whole. None where it has not settled for good.
    pub(crate) fn whole(&self, report: &Report, require_judged: bool) -> Option<Whole> {
        if report.ended != Ended::Settled || !report.faults.is_empty() {
            return None;
        }
        let standings = answer::standings(&self.session, report)?;
        let summary = answer::summary(&self.session, report);
        if summary.is_some() != self.edits.has_summary() {
            return None;
        }
        let mut tally = self.edits.tally_of_others();
        totals::count(report, &mut tally);
        let exit_code = u8::from(tally.rejected > 0 || (require_judged && tally.not_judged > 0));
        let own = answer::summaries(&self.session, report);
        Some(Whole { tally, exit_code, standings, summary, own })
    }

    /// Returns the table of all ops that were asked for; nothing where none was.
    fn table(&self, whole: &Whole) -> String {
        let rows = self.edits.rows(&whole.own);
        if rows.is_empty() { String::new() } else { closing_table(&rows, streams::width()) }
    }

    /// Returns what was built and told, for a look at the whole.
    pub(crate) fn ahead(&self, report: &Report) -> Ahead {
        let mut ahead = Ahead::of(&self.session, report);
        let Others { told, next } = &self.telling.others;
        ahead.told.extend(told[..*next].iter().filter_map(|(_, event)| event.target().cloned()));
        ahead
    }

    /// Keeps the answer of a build of the whole that finds nothing to do and ends with `table`, and returns the session.
    pub(crate) fn keep(self, place: &NoopCache, report: &Report, whole: Whole, table: String) -> Session {
        let Whole { exit_code, standings, summary, own, .. } = whole;
        let again = answer::told_again(&self.session, report, &self.telling.failures).into_iter();
        let again = again.filter_map(|event| Some((*self.telling.places.get(&event.target()?.op)?, event)));
        let mut told: Vec<(usize, Event)> = self.telling.others.told.into_iter().chain(again).collect();
        told.sort_by_key(|(place, _)| *place);
        let mut events: Vec<Event> = self.edits.introduction().cloned().collect();
        events.extend(told.into_iter().map(|(_, event)| event));
        let mut tally = self.edits.tally_of_others();
        answer::add(&mut tally, &answer::sum(standings.values()));
        events.push(Event::Finished { tally, wall: Duration::ZERO, exit_code });
        let told = Told { events, table, exit_code, summary };
        self.edits.keep(place, &self.session, report, &told, standings, &own);
        self.session
    }
}

impl Telling {
    /// Returns the ops of the part.
    pub(crate) fn ops(&self) -> BTreeSet<String> {
        self.places.keys().cloned().collect()
    }

    /// Tells of an event of the part, and before it what a look at everything tells of other ops by then.
    pub(crate) fn tell(&mut self, session: &Session, event: &Event, report: &mut dyn FnMut(&Event)) {
        if let Some(target) = event.target() {
            let is_started = matches!(event, Event::ActionStarted { .. }) && runs_in_a_child(session, target);
            let place = self.places.get(&target.op).copied().filter(|_| !is_started && *target != Target::summary());
            self.others.tell_before(place, report);
        }
        report(event);
        self.failures.extend(Some(event).filter(|event| matches!(event, Event::Failure { .. })).cloned());
    }

    /// Tells what a look at everything tells of other ops at the end.
    pub(crate) fn end(&mut self, report: &mut dyn FnMut(&Event)) {
        self.others.tell_before(None, report);
    }
}

/// Builds the ops that `edits` are of, and tells what the whole comes to by that. What cannot be opened as a part is left to the build of the whole.
pub(crate) fn build(
    common: &Common,
    arguments: &BuildArguments,
    edits: Edits<'_>,
    place: &NoopCache,
    outputs: &mut Outputs,
    (interrupt, running, remote, head_start): (&Interrupt, &Running, &OpenedRemote, Option<&HeadStart>),
    start: Instant,
) -> Result<Edited, CliError> {
    let root = context::workspace()?;
    let options = context::options(common, &root, Probing::Known);
    let executor = executor::given(arguments.on.as_deref());
    let options = Options { executor, configurations: arguments.targets.configurations(), ..options };
    let options = HeadStart::taken(head_start, options);
    let opened = Opened::open(arguments, edits, &root, &options, interrupt);
    // What nodes may have to perform is for the whole build.
    let Some(mut opened) = opened.filter(|opened| options.cluster(&opened.session.spec).is_none()) else {
        return Ok(Edited::Part(Ahead::default()));
    };
    running.hold(&opened.session.pool);
    for event in opened.introduction() {
        outputs.report(event);
    }
    let settings = setup::settings(common, arguments, &opened.session, remote)?;
    cores::keep_off_devices(&settings.shares);
    let Opened { session, wanted, telling, .. } = &mut opened;
    let is_whole = settings.remote.is_none() && !arguments.figures;
    if !is_whole {
        telling.others.told.clear();
    }
    let report = engine::build(session, wanted, &settings, interrupt, &mut |event| {
        telling.tell(session, &event, &mut |event| outputs.report(event));
    })?;
    let whole = Some(()).filter(|()| is_whole).and_then(|()| opened.whole(&report, arguments.require_judged));
    let Some(whole) = whole else { return Ok(Edited::Part(opened.ahead(&report))) };
    running.end_beside();
    opened.telling.end(&mut |event| outputs.report(event));
    let (tally, exit_code) = (whole.tally, whole.exit_code);
    outputs.report(&Event::Finished { tally, wall: start.elapsed(), exit_code });
    outputs.close_screen();
    let table = opened.table(&whole);
    streams::print(&table);
    opened.keep(place, &report, whole, table).leave();
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
    fn tell_before(&mut self, place: Option<usize>, report: &mut dyn FnMut(&Event)) {
        while let Some((of, event)) = self.told.get(self.next).filter(|(of, _)| place.is_none_or(|place| *of < place)) {
            debug_assert!(place.is_none_or(|place| *of < place));
            report(event);
            self.next += 1;
        }
    }
}

/// Returns whether an action of the target runs in a child, so that all is decided when it starts that can be decided without one.
fn runs_in_a_child(session: &Session, target: &Target) -> bool {
    !matches!(target.phase, Phase::Select | Phase::Log | Phase::Summary) && local::unusable(session, target).is_none()
}
