//! `t2t watch`: after each settled batch of changes it builds what became stale, on warm servers.
//!
//! A round is one look at the workspace and the build that follows. A change leaves the round that runs; what is in flight goes on into the next one, which cancels
//! what is obsolete. What is stale is never decided here.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use console::Term;
use t2t_host::interrupt::{INTERRUPTED, Interrupt};
use t2t_host::watch::{How, NoWatch, Places, Watch};
use t2t_model::action::Target;
use t2t_model::event::Event;
use t2t_model::path::RepoPath;
use t2t_plan::graph::Wanted;
use t2t_plan::graph::pick::{Force, pick};
use t2t_store::git;
use t2t_store::store::lock::Lock;

use super::cluster::{self, Join, Joined};
use super::error::CliError;
use super::{BuildArguments, Common, WatchArguments, context, executor, remote, setup, streams};
use crate::engine::{self, Begins, InFlight, Nodes, Settings, Waker};
use crate::reporter::{Bars, Screen, Verbosity, View, view};
use crate::session::{KeptServers, Options, Probing, Session};

mod edited;
mod inbox;
mod keys;
mod relevance;
mod round;
mod stop;

use self::edited::Short;
use self::inbox::{Due, Inbox, Input};
use self::keys::Keys;
use self::relevance::Relevance;
use self::stop::{StopHandle, stop_on_signal};

/// The folders that t2t itself writes.
const OWN: [&str; 2] = ["cache", "logs"];

/// How often the board is drawn while something runs, and signals are looked for.
const LOOK: Duration = Duration::from_millis(500);

/// How long a file that is being written is waited for, where nothing says that it is.
const WRITTEN: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn watch(common: &Common, arguments: WatchArguments) -> Result<u8, CliError> {
    if common.as_device.as_ref().is_some_and(|models| models.contains(',')) {
        return Err(CliError::misuse("a watch is for one model", "start one for each, in its own clone"));
    }
    let root = context::workspace()?;
    let interrupt = Interrupt::default();
    let (sender, inputs) = channel();
    let waker: Arc<OnceLock<Waker>> = Arc::default();
    let send = {
        let waker = Arc::clone(&waker);
        move |input: Input| {
            let _ = sender.send(input);
            if let Some(waker) = waker.get() {
                waker.wake();
            }
        }
    };
    let shared: StopHandle = StopHandle::default();
    stop_on_signal(&interrupt, &shared, send.clone())?;
    let how = arguments.poll.map_or(How::Told, How::Looked);
    let places = Places::new(&root, &OWN, git::index_lock(&root));
    let tell = send.clone();
    let watch = Watch::start(places, how, move |batch| {
        tell(batch.map_or(Input::Look, Input::Batch));
    });
    let watch = watch.map_err(unwatchable)?;
    let screen = Screen::of(&Term::stdout(), &|name| env::var_os(name));
    let verbosity = if common.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    if screen.bars == Bars::Yes {
        shared.lock().keys = Keys::open(move |key| send(Input::Key(key)));
    }
    let WatchArguments { targets, jobs, on, on_cpus, .. } = arguments;
    let mut watching = Watching {
        common,
        arguments: BuildArguments { targets, jobs, on, on_cpus, ..BuildArguments::default() },
        root,
        interrupt,
        shared,
        waker,
        watch,
        inbox: RefCell::new(Inbox::new(inputs, Due::at_first())),
        view: RefCell::new(view(verbosity, screen)),
        lock: None,
        picked: None,
        relevance: Relevance::default(),
        is_read: false,
        in_flight: None,
        settings: None,
        joined: Joined::default(),
        lending: Lending::Unknown,
        remote: remote::OpenedRemote::default(),
        code: None,
        last: BTreeSet::new(),
        failed: BTreeSet::new(),
        next_salt: setup::salt(),
    };
    let ended = watching.until_left();
    watching.leave();
    ended
}

fn unwatchable(error: NoWatch) -> CliError {
    CliError::Machine { message: error.to_string(), hint: Some(error.hint) }
}

/// A workspace that is watched.
struct Watching<'a> {
    common: &'a Common,
    arguments: BuildArguments,
    root: PathBuf,
    interrupt: Interrupt,
    shared: StopHandle,
    waker: Arc<OnceLock<Waker>>,
    watch: Watch,
    inbox: RefCell<Inbox>,
    view: RefCell<Box<dyn View>>,
    /// Held while anything is built.
    lock: Option<Lock>,
    /// The last workspace that could be read, or the part of it that was edited since, and what of it is wanted.
    picked: Option<(Session, Wanted)>,
    /// What is of account for what was built.
    relevance: Relevance,
    /// Whether the workspace could be read at the last look.
    is_read: bool,
    in_flight: Option<InFlight>,
    /// How the last round was run.
    settings: Option<Settings>,
    /// The cluster that all rounds share.
    joined: Joined,
    lending: Lending,
    /// The remote cache that all rounds share.
    remote: remote::OpenedRemote,
    /// The exit code of the last state.
    code: Option<u8>,
    /// What ran last.
    last: BTreeSet<Target>,
    /// What is rejected or lost.
    failed: BTreeSet<Target>,
    /// What the values of the next round's checks depend on: while nothing is to be done, children draw some.
    next_salt: String,
}

/// What nodes of a cluster lend to the rounds.
enum Lending {
    /// The workspace, which may name one, could not be read yet.
    Unknown,
    /// None is named.
    Nothing,
    Nodes(Arc<Nodes>),
}

impl Watching<'_> {
    /// Builds round by round until the user leaves, and returns the exit code.
    fn until_left(&mut self) -> Result<u8, CliError> {
        loop {
            let due = std::mem::take(&mut self.inbox.borrow_mut().due);
            if due.is_any {
                self.round(&due)?;
            } else {
                self.rest();
            }
            if self.interrupt.is_set() {
                return Ok(INTERRUPTED);
            }
            if self.inbox.borrow().is_quit {
                return Ok(self.code.unwrap_or(INTERRUPTED));
            }
        }
    }

    /// Waits for something to do.
    fn rest(&mut self) {
        let mut view = self.view.borrow_mut();
        view.draw();
        // What would mend a workspace that cannot be read, no session knows.
        let session = self.picked.as_ref().map(|(session, _)| session).filter(|_| self.is_read);
        let minds = |path: &Path| match session {
            Some(session) => is_relevant(session, &self.relevance, path),
            None => !streams::is_output(path),
        };
        let mut inbox = self.inbox.borrow_mut();
        inbox.wait(LOOK, view.as_mut(), &self.root, &minds);
        if let (Some(touched), Some(in_flight)) = (inbox.take_passed(), &mut self.in_flight) {
            in_flight.touch(&touched);
        }
    }

    /// Stops what is left.
    fn leave(&mut self) {
        if let Some(in_flight) = self.in_flight.as_mut().filter(|in_flight| !in_flight.is_idle()) {
            in_flight.stop();
        }
        if let Some(settings) = &self.settings {
            engine::drain_remote(settings, &self.interrupt, &mut |event| self.view.borrow_mut().report(&event));
        }
        self.view.borrow_mut().close();
        self.shared.lock().keys = None;
    }

    /// Looks at the workspace as it is now, and builds it.
    fn round(&mut self, due: &Due) -> Result<(), CliError> {
        let since = due.batch.since.unwrap_or_else(Instant::now);
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.touch(&due.touched(&self.root));
        }
        self.tell_change(due);
        if !self.take_lock()? {
            return Ok(());
        }
        if let Short::Look(ahead) = self.round_of_edits(due, since) {
            match self.open() {
                Ok((session, wanted)) => {
                    self.is_read = true;
                    self.build(session, wanted, due, since, &ahead);
                }
                Err(error) if self.picked.is_none() && !is_mended_by_an_edit(&error) => return Err(error),
                Err(CliError::Interrupted) => return Ok(()),
                Err(error) => self.make_do(&error),
            }
        }
        if self.in_flight.as_ref().is_none_or(InFlight::is_idle) && !self.inbox.borrow().due.is_any {
            self.lock = None;
        }
        Ok(())
    }

    fn tell_change(&self, due: &Due) {
        let files: Vec<String> = due.files(&self.root).iter().map(ToString::to_string).collect();
        let mut view = self.view.borrow_mut();
        if !files.is_empty() {
            view.change(&files);
        }
        if let Some(trouble) = &due.batch.trouble {
            view.report(&Event::Warning { text: format!("changes of some folders are not seen: {trouble}") });
        }
    }

    /// Takes the workspace's lock where it is not held. Returns false where the user left meanwhile.
    fn take_lock(&mut self) -> Result<bool, CliError> {
        if self.lock.is_some() {
            return Ok(true);
        }
        let command = env::args().collect::<Vec<_>>().join(" ");
        let waiting = |holder: &str| {
            let what = "the workspace's lock, cache/lock".to_owned();
            self.view.borrow_mut().report(&Event::Waiting { what, holder: holder.to_owned() });
        };
        let stopped = || {
            self.inbox.borrow_mut().take(self.view.borrow_mut().as_mut(), &self.root, &|_| true);
            self.interrupt.is_set() || self.inbox.borrow().is_quit
        };
        let lock = Lock::take_unless(&self.root.join("cache"), &command, waiting, stopped);
        self.lock = lock.context("cannot lock the store `cache/`")?;
        Ok(self.lock.is_some())
    }

    /// Returns the workspace as it is now, on the servers that run if they are still the right ones.
    fn open(&mut self) -> Result<(Session, Wanted), CliError> {
        let executor = executor::given(self.arguments.on.as_deref());
        let options = Options { executor, ..context::options(self.common, &self.root, Probing::Allowed) };
        let kept = self.picked.as_ref().map(|(session, _)| KeptServers::of(session));
        let open = || {
            let session = KeptServers::open(kept.as_ref(), &self.root, &options, &self.interrupt)?;
            self.shared.lock().pool = Some(Arc::clone(&session.pool));
            let wanted = pick(&session.graph, &self.arguments.targets.selection(&session)?, Force::Stale)?;
            Ok((session, wanted))
        };
        if !matches!(self.lending, Lending::Unknown) {
            return open();
        }
        let mut joined = std::mem::take(&mut self.joined);
        let lent = cluster::lent((self.common, &self.arguments), Join::AtOnce, &mut joined, &self.interrupt, open);
        self.joined = joined;
        let lent = lent?;
        let nodes = lent.nodes(self.common);
        if nodes.is_none() && self.common.as_device.is_some() {
            let hint = "leave out `--as-device`, or name a cluster that has one with `--on`";
            return Err(CliError::misuse("nothing runs on a device that is not here", hint));
        }
        for event in lent.told() {
            self.view.borrow_mut().report(&event);
        }
        self.lending = nodes.map_or(Lending::Nothing, Lending::Nodes);
        Ok(lent.opened())
    }

    /// Returns how a round of `session` is run.
    fn settings(&mut self, session: &Session) -> Result<Settings, CliError> {
        let settings = setup::settings(self.common, &self.arguments, session, &self.remote)?;
        let salt = std::mem::replace(&mut self.next_salt, setup::salt());
        Ok(cluster::on(self.lent(), Settings { salt, ..settings }))
    }

    /// Returns what nodes lend to the rounds, if they do.
    fn lent(&self) -> Option<&Arc<Nodes>> {
        match &self.lending {
            Lending::Nodes(nodes) => Some(nodes),
            Lending::Unknown | Lending::Nothing => None,
        }
    }

    /// Shows what keeps the workspace from being built. What is in flight goes on meanwhile.
    fn make_do(&mut self, error: &CliError) {
        self.view.borrow_mut().problem(&error.text());
        self.code = Some(error.code());
        self.is_read = false;
        let (Some((session, wanted)), Some(settings)) = (self.picked.take(), self.settings.clone()) else { return };
        if self.in_flight.as_ref().is_some_and(|in_flight| !in_flight.is_idle()) {
            // The result was printed above.
            let _ = self.run(&session, &wanted, &settings, Begins::Nothing, &mut |event, view| view.report(event));
        }
        self.picked = Some((session, wanted));
    }
}

/// Whether an edit of the workspace may repair it: then it is worth watching from the start.
fn is_mended_by_an_edit(error: &CliError) -> bool {
    matches!(error, CliError::Spec(_))
}

/// Returns whether a change at `path` can matter to `session`, or to those before it.
fn is_relevant(session: &Session, before: &Relevance, path: &Path) -> bool {
    RepoPath::below(&session.root, path).is_ok_and(|path| session.is_relevant(&path) || before.has(&path))
}
