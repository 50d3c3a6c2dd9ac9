//! The engine: the one loop in which the schedule's steps are performed on their lanes, and what comes of them is kept.
//!
//! It is the only place where the pure crates and the outside meet. It formats nothing: it emits events.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use t2t_host::cores;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::Lane;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_model::history::History;
use t2t_model::manifest::Manifest;
use t2t_model::path::RepoPath;
use t2t_model::problem::Problem;
use t2t_model::spans::{self, Span, Times};
use t2t_plan::dispatcher::{Beginning, Command as Told, Work};
use t2t_plan::explain;
use t2t_plan::graph::{Index, Wanted};
use t2t_plan::schedule::{Schedule, Settled, Step};
use t2t_store::fs;
use t2t_store::store::cas::Cas;
use t2t_store::store::journal::Journal;

use crate::engine::perform::Performed;
use crate::session::Session;

mod reuse;
mod attempts;
mod away;
mod asking;
mod author;
mod budget;
mod build;
mod bundle;
mod prewarm;
mod ask;
pub mod dispatcher;
mod elsewhere;
mod dispatch;
mod costs;
mod nodes;
mod noise;
mod write_logs;
pub(crate) mod evidence;
mod inputs;
pub mod job;
mod commit;
pub(crate) mod local;
pub mod perform;
mod warm_pool;
mod report;
mod rest;
pub mod request;
mod settings;
mod control;
mod in_flight;
mod lost;

pub(crate) use self::ask::drain_remote;
pub(crate) use self::asking::{ATTEMPT, Asking};
pub(crate) use self::attempts::made;
pub(crate) use self::author::{Asked, LONGEST_NEIGHBOUR, NEIGHBOURS, question, text};
pub(crate) use self::budget::Spent;
pub(crate) use self::build::{build, build_on, in_flight};
pub(crate) use self::bundle::{Bundled, NoBundle, Subject, bundle};
pub(crate) use self::control::{Begins, Command, Control, Ended};
pub(crate) use self::elsewhere::published_elsewhere;
pub(crate) use self::in_flight::{InFlight, Touched, Waker};
pub(crate) use self::nodes::{CORES, Nodes, Seat, SeatKind, taken_by};
pub(crate) use self::prewarm::get_ready;
pub(crate) use self::report::{EngineError, Report};
pub(crate) use self::settings::{AfterRejection, Children, Settings};

use self::ask::RemoteLookups;
use self::away::Journeys;
use self::in_flight::Message;
use self::inputs::PreparedInputs;

/// How often the loop looks whether the user asked to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Why a run of the loop ended early.
enum Stop {
    Error(EngineError),
    /// A file is not what it was when the session was opened.
    Outdated(String),
    /// An artifact is not in the store, and must be made again.
    Lost {
        blob: String,
        source: Digest,
    },
}

impl<E: Into<EngineError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// An action that is to run, until it is kept.
struct Pending {
    manifest: Manifest,
    why: Vec<String>,
    lane: String,
    since: Instant,
}

/// What is kept, and where.
struct Kept<'a> {
    history: &'a mut History,
    journal: &'a mut Journal,
    cas: &'a Cas,
    spent: &'a mut Spent,
}

/// One run of the loop.
struct Run<'a, 'b> {
    session: &'a Session,
    history: &'a mut History,
    journal: &'a mut Journal,
    cas: &'a Cas,
    spent: &'a mut Spent,
    settings: &'a Settings,
    interrupt: &'a Interrupt,
    emit: &'a mut dyn FnMut(Event),
    control: &'a mut Control<'b>,
    schedule: Schedule<'a>,
    in_flight: &'a mut InFlight,
    /// Which build over what is in flight this is.
    round: u64,
    lookups: RemoteLookups,
    wanted: Vec<bool>,
    /// Whether the dispatcher knows how long actions take on devices.
    are_costs_told: bool,
    /// By op: what its analysis says it asks of a device at each size.
    work: BTreeMap<String, Vec<Work>>,
    /// By lane of a device: its actions, and when they had it.
    used: BTreeMap<String, (Vec<Times>, Vec<Span>)>,
    since: Instant,
    pending: HashMap<Index, Pending>,
    scratch: PathBuf,
    inputs: PreparedInputs,
    stopped: bool,
    missing: Vec<(Index, Vec<String>)>,
    faults: Vec<EngineError>,
    /// The first file that changed while an action ran that reads it.
    changed: Option<String>,
    /// Whether an action was withheld since that was looked at: what depends on it may be decided.
    has_withheld: bool,
    /// What authors are asked, by the actions that wait for them.
    askings: HashMap<Index, Asking>,
    /// Kernel files that were made and cannot be used, by the actions that they are made for.
    unusable: HashMap<Index, Problem>,
    /// The kernel files that were put in their place or taken away, with what lay there before.
    found_there: HashMap<RepoPath, Option<Digest>>,
    /// Faults of kernel files that were told: a file's fault rejects both its compile and its check.
    told: BTreeSet<String>,
    /// What was sent to nodes.
    journeys: Journeys,
    /// How many probes each check left out that ran and passed, where it left out some.
    left_out: Vec<usize>,
    /// The arguments, by op, that checks which ran and passed tried at no other value.
    untried: BTreeMap<String, BTreeSet<String>>,
    /// What torch refuses of the cases, by op, in checks that ran and passed, where it refuses many.
    refused: BTreeMap<String, String>,
}

impl<'a, 'b> Run<'a, 'b> {
    #[expect(clippy::too_many_arguments, reason = "a run is made in one place, of all that a build has")]
    fn new(
        session: &'a Session,
        kept: Kept<'a>,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
        wanted: Wanted,
        in_flight: &'a mut InFlight,
        control: &'a mut Control<'b>,
        emit: &'a mut dyn FnMut(Event),
    ) -> Self {
        let Kept { history, journal, cas, spent } = kept;
        Self {
            session,
            history,
            journal,
            cas,
            spent,
            settings,
            interrupt,
            emit,
            wanted: wanted.wanted.clone(),
            schedule: Schedule::new(&session.graph, wanted),
            round: in_flight.begin_round(),
            in_flight,
            lookups: RemoteLookups::default(),
            are_costs_told: false,
            work: BTreeMap::new(),
            used: BTreeMap::new(),
            since: Instant::now(),
            pending: HashMap::new(),
            scratch: session.cache.join("scratch").join(std::process::id().to_string()),
            inputs: PreparedInputs::default(),
            stopped: !control.begins(),
            control,
            missing: Vec::new(),
            faults: Vec::new(),
            changed: None,
            has_withheld: false,
            askings: HashMap::new(),
            unusable: HashMap::new(),
            found_there: HashMap::new(),
            told: BTreeSet::new(),
            journeys: Journeys::default(),
            left_out: Vec::new(),
            untried: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Steps until nothing is ready and nothing runs, or until the build is left.
    fn until_all_settled(&mut self) -> Result<Report, Stop> {
        let commands = self.begin();
        self.withdraw();
        let ended = self.carry_out(commands).and_then(|()| self.steps());
        let ended = match ended.and_then(|ended| self.settle_summary_of_all(ended)) {
            Err(Stop::Outdated(path)) if self.control.is_controlled() => Ok(Ended::Outdated(path)),
            ended => ended,
        };
        if self.interrupt.is_set() || (ended.is_err() && !self.control.is_controlled()) {
            // Nothing is left running.
            self.session.pool.stop();
            self.in_flight.stop();
        }
        if self.in_flight.is_idle() {
            let _ = fs::remove(&self.scratch);
        }
        let written = self.journal.write_added();
        let ended = ended?;
        written?;
        self.tell_left_out();
        self.tell_untried();
        self.tell_refused();
        self.tell_used();
        // The logs in the workspace are those of this machine's own device, as a whole build makes them.
        let is_whole = ended == Ended::Settled && self.control.begins();
        if is_whole && !self.interrupt.is_set() && !self.session.is_elsewhere {
            self.settle_files()?;
            self.write_logs()?;
        }
        Ok(Report {
            replaced: self.replaced(),
            settled: self.session.graph.indices().map(|index| self.schedule.settled(index).cloned()).collect(),
            missing: std::mem::take(&mut self.missing),
            again: self.journeys.again,
            interrupted: self.interrupt.is_set(),
            stopped: self.stopped,
            ended,
            faults: std::mem::take(&mut self.faults),
            changed: self.changed.take(),
            ..Report::default()
        })
    }

    /// Tells the dispatcher what is to come.
    fn begin(&self) -> Vec<Told> {
        let memory = self.session.inventory.targets.values().filter_map(|row| row["memory"].as_u64()).min();
        let graph = &self.session.graph;
        self.in_flight.dispatcher().begin(&Beginning {
            graph,
            wanted: &self.wanted,
            running: &self.in_flight.tickets(),
            authors: self.session.spec.authors.at_once,
            any_device: self.settings.any_device,
            prewarms: self.may_prewarm(),
            is_followed: self.control.is_controlled(),
            memory: memory.unwrap_or(0),
            is_unknown: &|index| self.history.last(&graph.action(index).identity).is_none(),
        })
    }

    fn ran(&self) -> Vec<bool> {
        let indices = self.session.graph.indices();
        indices.map(|index| matches!(self.schedule.settled(index), Some(Settled::Ran(_)))).collect()
    }

    fn steps(&mut self) -> Result<Ended, Stop> {
        loop {
            self.decide_ready()?;
            if self.interrupt.is_set() {
                return Ok(Ended::Settled);
            }
            match self.control.next_command() {
                Command::Leave => return Ok(Ended::Left),
                Command::Hold => {
                    self.in_flight.hold(LOOK);
                    continue;
                }
                Command::Touched(files) => self.in_flight.touch(&files),
                Command::GoOn => {}
            }
            self.start_queued()?;
            if std::mem::take(&mut self.has_withheld) {
                continue;
            }
            if self.in_flight.is_idle() && self.lookups.is_answered() {
                return Ok(Ended::Settled);
            }
            if let Some(message) = self.in_flight.next(LOOK) {
                self.handle(message)?;
            }
            // Whatever has come is heard before anything is decided and started: answers come in hundreds.
            while let Some(message) = self.in_flight.next(Duration::ZERO) {
                self.handle(message)?;
            }
        }
    }

    fn handle(&mut self, message: Message) -> Result<(), Stop> {
        match message {
            Message::Waiting { what, holder } => (self.emit)(Event::Waiting { what, holder }),
            Message::Done(ticket, performed) => self.land(ticket, &performed)?,
            Message::Answered(round, index, entry) if round == self.round => self.answered(index, entry)?,
            Message::Fetched(round, index, record, blobs) if round == self.round => {
                self.fetched(index, *record, blobs)?;
            }
            // What an earlier build asked, which was left.
            Message::Answered(..) | Message::Fetched(..) | Message::Wake => {}
        }
        Ok(())
    }

    /// Takes all steps that the schedule has now: what runs Python is queued, what does not is done at once.
    fn decide_ready(&mut self) -> Result<(), Stop> {
        loop {
            let sources = &self.session.sources;
            let Some(step) = self.schedule.next_step(self.history, &|path, like| sources.seen(path, like)) else {
                return Ok(self.journal.write_added()?);
            };
            match step {
                Step::Recall { index, key } => {
                    self.history.recall(key, self.session.recall(key)?);
                    self.schedule.again(index);
                }
                Step::Read { index, path, kernel } => {
                    let made = self.read_made(index, &path, kernel)?;
                    self.schedule.supply(index, made);
                }
                Step::Settled(index) => {
                    self.cancel_orphan(index);
                    self.tell_settled(index)?;
                }
                Step::Run { index, manifest, why } => {
                    if self.reuse(index, &manifest) || self.stopped || self.ask(index, &manifest, &why) {
                        continue;
                    }
                    let old = match &why {
                        t2t_plan::decide::Why::Changed { old, .. } => self.manifest(*old),
                        _ => None,
                    };
                    let why = explain::reasons(&why, old.as_ref(), &manifest).iter().map(ToString::to_string).collect();
                    let (lane, since) = ("cpu".to_owned(), Instant::now());
                    self.pending.insert(index, Pending { manifest, why, lane, since });
                    self.dispatch(index)?;
                }
            }
        }
    }

    fn manifest(&self, key: Digest) -> Option<Manifest> {
        self.cas.get(key).ok().and_then(|bytes| Manifest::decode(&bytes))
    }

    /// Adds an action that has ended to what its device did.
    fn count_use(&mut self, index: Index, performed: &Performed) {
        if self.session.graph.action(index).lane == Lane::Device {
            let end = cores::monotonic();
            let wall = u64::try_from(performed.wall.as_nanos()).unwrap_or(u64::MAX);
            let (times, held) = self.used.entry(self.pending[&index].lane.clone()).or_default();
            times.push(performed.times.clone());
            held.push(Span { begin: end.saturating_sub(wall), end });
        }
    }

    fn tell_used(&mut self) {
        let wall = self.since.elapsed();
        for (lane, (times, held)) in std::mem::take(&mut self.used) {
            if let Some(used) = spans::used(&times, &held, wall) {
                (self.emit)(Event::DeviceUsed { lane, used });
            }
        }
    }
}
