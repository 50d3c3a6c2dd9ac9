//! The engine: the one loop in which the schedule's steps are performed on their lanes, and what comes of them is kept.
//!
//! It is the only place where the core and the outside meet. It formats nothing: it emits events.
#![expect(
    clippy::disallowed_methods,
    reason = "the engine runs the threads of actions, and takes the time of those that need none"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::action::Lane;
use crate::cores::{self, Shares};
use crate::decide::History;
use crate::device::{DeviceLock, Holder};
use crate::digest::Digest;
use crate::engine::perform::{Job, Performed, perform};
use crate::engine::request::{Given, Requests};
use crate::event::Event;
use crate::explain;
use crate::figures;
use crate::fs;
use crate::graph::{Index, Wanted};
use crate::interrupt::Interrupt;
use crate::manifest::Manifest;
use crate::publication::is_published;
use crate::record::Record;
use crate::schedule::{Schedule, Settled, Step};
use crate::session::Session;
use crate::spans::{self, Span, Times};
use crate::store::cas::{Cas, Unavailable};
use crate::store::journal::Journal;
use crate::store::leftovers;
use crate::store::remote::entry::Entry;
use crate::store::remote::{Blobs, Remote};

mod ask;
mod derive;
pub mod evidence;
mod keep;
mod lanes;
pub mod local;
mod order;
pub mod perform;
mod queue;
pub mod request;

use self::ask::Asked;
pub use self::ask::part;
use self::lanes::{Lanes, Slot};
use self::order::{Binding, Work};

/// How a build is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many slots the CPU lane has.
    pub jobs: usize,
    /// How the machine's cores are shared.
    pub shares: Shares,
    /// Whether an op may be measured on several devices.
    pub any_device: bool,
    /// What happens after a rejection.
    pub after_rejection: AfterRejection,
    /// What may be run in children.
    pub children: Children,
    /// The folder of the device locks.
    pub locks: PathBuf,
    /// The cache that is shared with other machines, if there is one.
    pub remote: Option<Arc<Remote>>,
}

/// What a build does after a kernel was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRejection {
    /// Everything that does not need it goes on.
    GoOn,
    /// Nothing new is started.
    Stop,
}

/// Which actions may run in children. The others are missing where no result of theirs stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// All.
    All,
    /// Those whose results depend on no device.
    WithoutDevice,
    /// None.
    None,
}

/// What became of a build.
#[derive(Debug, Default)]
pub struct Report {
    /// By number: what became of each wanted action that settled.
    pub settled: Vec<Option<Settled>>,
    /// The actions that were not to run and whose results do not stand, with the reasons; what depends on them is among them.
    pub missing: Vec<(Index, Vec<String>)>,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Whether it stopped after a rejection.
    pub stopped: bool,
    /// How many lines of the journal were damaged, and ignored.
    pub damaged: usize,
}

/// Why a build cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store cannot be read or written.
    #[error("cannot use the store `cache/`: {0}")]
    Store(#[from] io::Error),
    /// A log cannot be read or written.
    #[error("cannot write `{path}`: {source}")]
    Log {
        /// Its place in the workspace.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A template is wrong.
    #[error(transparent)]
    Template(#[from] crate::render::RenderError),
    /// A template cannot be read.
    #[error("{path}: {message}")]
    NoTemplate {
        /// Its place in the workspace.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// Artifacts keep vanishing from the store.
    #[error("artifacts keep vanishing from the store; the last has to do with {0}")]
    Vanishing(Digest),
}

/// How often a build starts over because of one result, which it has made anew each time.
const RESTARTS: usize = 4;

/// How often the loop looks whether the user asked to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Builds the wanted part of the session's graph. `emit` is told what happens, on this thread.
pub fn build(
    session: &Session,
    wanted: &Wanted,
    settings: &Settings,
    interrupt: &Interrupt,
    emit: &mut dyn FnMut(Event),
) -> Result<Report, EngineError> {
    leftovers::sweep_scratch(&session.cache);
    let mut journal = Journal::open(&session.cache);
    let loaded = session.history()?;
    if loaded.damaged > 0 {
        emit(Event::Warning { text: format!("{} damaged lines of cache/journal are ignored", loaded.damaged) });
    }
    let cas = session.cas();
    let mut history = loaded.history;
    let mut wanted = wanted.clone();
    let mut losses: HashMap<Digest, usize> = HashMap::new();
    loop {
        let mut run = Run::new(session, &mut history, &mut journal, &cas, settings, interrupt, wanted.clone(), emit);
        match run.until_all_settled() {
            Ok(report) => return Ok(Report { damaged: loaded.damaged, ..report }),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Lost { blob, source }) => {
                let (ran, others) = (run.ran(), run.not_whole());
                emit(Event::Warning {
                    text: lost_text(&blob, others.iter().filter(|other| **other != source).count()),
                });
                for lost in others.into_iter().chain([source]) {
                    history.forget(lost);
                }
                let count = losses.entry(source).or_default();
                *count += 1;
                if *count > RESTARTS {
                    return Err(EngineError::Vanishing(source));
                }
                // What was forced and has run is not forced again.
                wanted.forced.iter_mut().zip(ran).for_each(|(forced, ran)| *forced &= !ran);
            }
        }
    }
}

fn lost_text(blob: &str, others: usize) -> String {
    match others {
        0 => format!("{blob}; the action that made it runs again"),
        1 => format!("{blob}; the action that made it runs again, and 1 other of which an artifact is gone or damaged"),
        more => format!(
            "{blob}; the action that made it runs again, and {more} others of which an artifact is gone or damaged"
        ),
    }
}

/// Why a run of the loop ended early.
enum Stop {
    Error(EngineError),
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

/// What the thread of an action tells the loop.
enum Word {
    /// It waits for a device that somebody else holds.
    Waiting { what: String, holder: String },
    /// It is done.
    Done(Index, Box<Performed>),
    /// The remote cache answered for an action.
    Answered(Index, Option<Entry>),
    /// The blobs of a result came, or cannot be had.
    Fetched(Index, Box<Record>, Option<Blobs>),
}

/// An action that is to run, until it is kept.
struct Pending {
    manifest: Manifest,
    why: Vec<String>,
    lane: String,
    since: Instant,
}

/// One run of the loop.
struct Run<'a> {
    session: &'a Session,
    history: &'a mut History,
    journal: &'a mut Journal,
    cas: &'a Cas,
    settings: &'a Settings,
    interrupt: &'a Interrupt,
    emit: &'a mut dyn FnMut(Event),
    schedule: Schedule<'a>,
    lanes: Lanes,
    queue: BTreeSet<Index>,
    asked: Asked,
    wanted: Vec<bool>,
    binding: Binding,
    /// By op: what its analysis says it asks of a device at each size.
    work: BTreeMap<String, Vec<Work>>,
    /// By lane of a device: its actions, and when they had it.
    used: BTreeMap<String, (Vec<Times>, Vec<Span>)>,
    since: Instant,
    pending: HashMap<Index, Pending>,
    words: (Sender<Word>, Receiver<Word>),
    scratch: PathBuf,
    stopped: bool,
    missing: Vec<(Index, Vec<String>)>,
    /// Faults of kernel files that were told: a file's fault rejects both its compile and its check.
    told: BTreeSet<String>,
}

impl<'a> Run<'a> {
    #[expect(clippy::too_many_arguments, reason = "a run is made in one place, of all that a build has")]
    fn new(
        session: &'a Session,
        history: &'a mut History,
        journal: &'a mut Journal,
        cas: &'a Cas,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
        wanted: Wanted,
        emit: &'a mut dyn FnMut(Event),
    ) -> Self {
        let devices = session.devices.iter().map(|device| device.uuid.clone()).collect();
        Self {
            session,
            history,
            journal,
            cas,
            settings,
            interrupt,
            emit,
            wanted: wanted.wanted.clone(),
            schedule: Schedule::new(&session.graph, wanted),
            lanes: Lanes::new(settings.jobs, devices, settings.shares.clone()),
            queue: BTreeSet::new(),
            asked: Asked::default(),
            binding: Binding::new(session.devices.len(), settings.any_device),
            work: BTreeMap::new(),
            used: BTreeMap::new(),
            since: Instant::now(),
            pending: HashMap::new(),
            words: channel(),
            scratch: session.cache.join("scratch").join(std::process::id().to_string()),
            stopped: false,
            missing: Vec::new(),
            told: BTreeSet::new(),
        }
    }

    /// Steps until nothing is ready and nothing runs.
    fn until_all_settled(&mut self) -> Result<Report, Stop> {
        let ended = std::thread::scope(|scope| {
            let ended = self.steps(scope);
            if ended.is_err() || self.interrupt.is_set() {
                // Children are killed, so that the scope's threads return.
                self.session.pool.stop();
            }
            ended
        });
        let _ = fs::remove(&self.scratch);
        ended?;
        self.tell_used();
        // The logs in the workspace are those of this machine's own device.
        if !self.interrupt.is_set() && !self.session.is_elsewhere {
            self.derive()?;
        }
        Ok(Report {
            settled: self.session.graph.indices().map(|index| self.schedule.settled(index).cloned()).collect(),
            missing: std::mem::take(&mut self.missing),
            interrupted: self.interrupt.is_set(),
            stopped: self.stopped,
            ..Report::default()
        })
    }

    /// Returns the keys of the results this build stands on of which an artifact is gone or damaged. It reads them all: where one is, others may be, and to start
    /// over for each would take as many builds.
    fn not_whole(&self) -> BTreeSet<Digest> {
        let standing = |index| {
            let settled = self.schedule.settled(index).and_then(Settled::record);
            settled.or_else(|| self.history.last(&self.session.graph.action(index).identity))
        };
        let is_whole = |record: &Record| {
            let mut needed = record.outputs.iter().filter(|(name, _)| is_published(name));
            needed.all(|(_, blob)| self.cas.get(blob.digest).is_ok())
        };
        let records = self.session.graph.indices().filter_map(standing);
        records.filter(|record| !is_whole(record)).map(|record| record.key).collect()
    }

    fn ran(&self) -> Vec<bool> {
        let indices = self.session.graph.indices();
        indices.map(|index| matches!(self.schedule.settled(index), Some(Settled::Ran(_)))).collect()
    }

    fn steps<'scope>(&mut self, scope: &'scope std::thread::Scope<'scope, '_>) -> Result<(), Stop>
    where
        'a: 'scope,
    {
        loop {
            self.decide_ready()?;
            if self.interrupt.is_set() {
                return Ok(());
            }
            self.start_queued(scope)?;
            if self.lanes.is_idle() && self.asked.is_answered() {
                return Ok(());
            }
            match self.words.1.recv_timeout(LOOK) {
                Ok(word) => self.hear(word)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("this run holds a sender"),
            }
            // Whatever has come is heard before anything is decided and started: answers come in hundreds.
            while let Ok(word) = self.words.1.try_recv() {
                self.hear(word)?;
            }
        }
    }

    fn hear(&mut self, word: Word) -> Result<(), Stop> {
        match word {
            Word::Waiting { what, holder } => (self.emit)(Event::Waiting { what, holder }),
            Word::Done(index, performed) => {
                self.lanes.free(index);
                self.count_use(index, &performed);
                self.keep(index, &performed)?;
            }
            Word::Answered(index, entry) => self.answered(index, entry)?,
            Word::Fetched(index, record, blobs) => self.fetched(index, *record, blobs)?,
        }
        Ok(())
    }

    /// Takes all steps that the schedule has now: what runs Python is queued, what does not is done at once.
    fn decide_ready(&mut self) -> Result<(), Stop> {
        loop {
            let sources = &self.session.sources;
            let Some(step) = self.schedule.next_step(self.history, &|path, like| sources.seen(path, like)) else {
                return Ok(());
            };
            match step {
                Step::Settled(index) => self.tell_settled(index)?,
                Step::Run { index, manifest, why } => {
                    if self.stopped || self.ask(index, &manifest, &why) {
                        continue;
                    }
                    let old = match &why {
                        crate::decide::Why::Changed { old, .. } => self.manifest(*old),
                        _ => None,
                    };
                    let why = explain::reasons(&why, old.as_ref(), &manifest).iter().map(ToString::to_string).collect();
                    let (lane, since) = ("cpu".to_owned(), Instant::now());
                    self.pending.insert(index, Pending { manifest, why, lane, since });
                    self.begin(index)?;
                }
            }
        }
    }

    fn manifest(&self, key: Digest) -> Option<Manifest> {
        self.cas.get(key).ok().and_then(|bytes| Manifest::decode(&bytes))
    }

    /// Performs an action that needs no child, and queues one that does.
    fn begin(&mut self, index: Index) -> Result<(), Stop> {
        if self.needs_what_is_missing(index) {
            self.miss(index);
            return Ok(());
        }
        let Some(mut performed) = self.performed_here(index)? else {
            if !self.may_run(index) {
                self.miss(index);
                return Ok(());
            }
            self.queue.insert(index);
            return Ok(());
        };
        performed.wall = self.pending[&index].since.elapsed();
        self.tell_started(index);
        self.keep(index, &performed)
    }

    fn needs_what_is_missing(&self, index: Index) -> bool {
        let mut sources = self.session.graph.dependencies(index).into_iter().map(|(source, _)| source);
        sources.any(|source| self.schedule.settled(source) == Some(&Settled::Planned))
    }

    fn may_run(&self, index: Index) -> bool {
        match self.settings.children {
            Children::All => true,
            Children::WithoutDevice => self.session.graph.action(index).identity.device.is_none(),
            Children::None => false,
        }
    }

    fn miss(&mut self, index: Index) {
        let pending = self.pending.remove(&index).expect("what begins is pending");
        let target = self.session.graph.action(index).target().clone();
        (self.emit)(Event::ActionMissing { target, why: pending.why.clone() });
        self.missing.push((index, pending.why));
        self.schedule.finish(index, Settled::Planned);
    }

    fn tell_started(&mut self, index: Index) {
        let pending = &self.pending[&index];
        let target = self.session.graph.action(index).target().clone();
        (self.emit)(Event::ActionStarted { target, lane: pending.lane.clone(), why: pending.why.clone() });
    }

    /// Starts what is queued and finds a free slot.
    fn start_queued<'scope>(&mut self, scope: &'scope std::thread::Scope<'scope, '_>) -> Result<(), Stop>
    where
        'a: 'scope,
    {
        if self.stopped {
            self.queue.clear();
        }
        while let Some((index, slot)) = self.next_queued()? {
            let job = self.job(index, &slot)?;
            self.pending.get_mut(&index).expect("what is queued is pending").lane = slot.name;
            self.tell_started(index);
            let (pool, interrupt) = (&self.session.pool, self.interrupt);
            let (words, locks) = (self.words.0.clone(), self.settings.locks.clone());
            scope.spawn(move || {
                let performed = locked(&job, &locks, &words, interrupt, || perform(&job, pool));
                let _ = words.send(Word::Done(index, Box::new(performed)));
            });
        }
        Ok(())
    }

    fn job(&self, index: Index, slot: &Slot) -> Result<Job, Stop> {
        let given = Given {
            cores: slot.cores.clone(),
            nice: slot.nice,
            processes: self.processes(index),
            ..self.given(index, slot.device.clone())?
        };
        let scratch = self.scratch.join(index.number().to_string());
        Ok(self.requests().job(self.session.graph.action(index), &given, scratch))
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

    fn requests(&self) -> Requests<'_> {
        Requests {
            spec: &self.session.spec,
            inventory: &self.session.inventory,
            root: &self.session.root,
            catalogue: &self.session.catalogue,
            shares: &self.settings.shares,
            jobs: self.settings.jobs,
        }
    }

    /// Returns what an action gets of others beside what its manifest names: compiled kernels, the tuned configuration.
    fn given(&self, index: Index, device: Option<String>) -> Result<Given, Stop> {
        let mut given = Given { device, ..Given::default() };
        for (source, _) in self.session.graph.dependencies(index) {
            let Some(record) = self.schedule.settled(source).and_then(Settled::record) else { continue };
            if let (Some(archive), Some(_)) = (record.outputs.get("triton.tar.gz"), &given.device) {
                self.bytes(archive.digest)?;
                given.warm.push(self.cas.path(archive.digest));
            }
            if let Some(tune) = record.outputs.get("tune") {
                given.tune = Some(self.document(tune.digest)?);
            }
        }
        Ok(given)
    }

    fn bytes(&self, digest: Digest) -> Result<Vec<u8>, Stop> {
        self.cas.get(digest).map_err(|error| self.lost(&error))
    }

    fn document(&self, digest: Digest) -> Result<Value, Stop> {
        let bytes = self.bytes(digest)?;
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn lost(&self, error: &Unavailable) -> Stop {
        let source = self.schedule.source_of(error.digest());
        match source {
            Some(source) => Stop::Lost { blob: error.to_string(), source },
            None => Stop::Error(EngineError::Vanishing(error.digest())),
        }
    }
}

/// Runs `work` under the lock of the job's device, where it has one. Whoever waits says for whom.
fn locked(
    job: &Job,
    locks: &Path,
    words: &Sender<Word>,
    interrupt: &Interrupt,
    work: impl FnOnce() -> Performed,
) -> Performed {
    let Some(uuid) = &job.device else { return work() };
    let who = || Holder {
        pid: std::process::id(),
        target: job.target.to_string(),
        workspace: job.root.to_string_lossy().into_owned(),
        since: figures::moment(fs::now()),
    };
    let waiting = |holder: &str| {
        let _ = words.send(Word::Waiting { what: format!("device {uuid}"), holder: holder.to_owned() });
    };
    match DeviceLock::take(locks, uuid, who, waiting, || interrupt.is_set()) {
        Ok(Some(_lock)) => work(),
        Ok(None) => Performed::lost("interrupted"),
        Err(error) => Performed::lost(format!("cannot lock device {uuid}: {error}")),
    }
}
