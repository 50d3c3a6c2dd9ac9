//! The pool: the fork servers of a build, started when first needed, and calls to their children as plain functions.
//!
//! Each kind of server is restarted once when it dies. It does not know phases or outcomes, and counts no children.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::{mem, thread};

use t2t_protocol::{End, Finished, Request, ServerHello, ServerKind, WarmChild};

use crate::interrupt::Interrupt;
use crate::worker::{Bytecode, ClientError, Process, Spare, Worker, WorkerConfig, WorkerError, WorkerEvent, pair};

mod cancel;

pub use cancel::Cancel;

/// How often a kind of server is started in one build.
const STARTS: u32 = 2;

/// How many servers were started in this process, by any pool.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// The fork servers of a build.
#[derive(Debug)]
pub struct Pool {
    configs: Vec<WorkerConfig>,
    /// One lock per kind, held while its server starts, so that calls for other kinds do not wait.
    starting: Vec<Mutex<()>>,
    /// The process that compiles bytecode, from the first server's start on.
    bytecode: OnceLock<Bytecode>,
    /// What the first server forks for the second kind.
    shared: Mutex<Shared>,
    servers: Mutex<HashMap<ServerKind, Server>>,
    /// The processes that do not serve yet.
    launched: Mutex<HashMap<ServerKind, Weak<Process>>>,
    /// Whether no server is to start any more.
    is_over: AtomicBool,
    calls: Arc<Mutex<HashMap<u64, Sender<Finished>>>>,
    /// Device → when it was timed last.
    timed: Mutex<HashMap<String, u64>>,
    next: AtomicU64,
    interrupt: Interrupt,
}

/// The imports that servers of two kinds share.
#[derive(Debug, Default)]
enum Shared {
    /// No server has begun on them.
    #[default]
    Unmade,
    /// One has, and forks a process after them, which nobody uses yet.
    Waits(Spare),
    /// That one was used, or there was none.
    Used,
}

/// What is known of a server.
#[derive(Debug, Default)]
struct Told {
    /// Why it died, once it has.
    died: Mutex<Option<String>>,
    /// Of how many children it has said that they are ready, or never will be.
    prepared: AtomicU64,
}

#[derive(Debug, Default)]
struct Server {
    worker: Option<Arc<Worker>>,
    starts: u32,
    /// Whether the one that runs was told to rest.
    has_rested: bool,
    /// The number of the one that runs, or ran last.
    serial: u64,
    told: Arc<Told>,
}

/// A server that runs, for as long as something is said to it.
#[derive(Debug)]
pub struct Serving {
    serial: u64,
    worker: Arc<Worker>,
}

impl Serving {
    /// Returns its number, which no other server of this process has. A later one has a greater number.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Has it make a child as `warm_child` says. When that is forked is for the server to say.
    pub fn prepare(&self, warm_child: WarmChild) {
        // A server that has died is told of by the call that waits.
        let _ = self.worker.prepare(warm_child);
    }
}

/// What is known of the server of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// Its number.
    pub serial: u64,
    /// Of how many children that it was to make it has said that they are ready, or never will be.
    pub prepared: u64,
    /// Whether it runs no more.
    pub is_gone: bool,
}

/// Why a call could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NoCall {
    /// The server would not start.
    #[error(transparent)]
    Start(#[from] WorkerError),
    /// It died too often.
    #[error("the worker died: {0}")]
    Died(String),
    /// The build is being stopped.
    #[error("interrupted")]
    Interrupted,
    /// The call was taken back.
    #[error("cancelled")]
    Cancelled,
}

impl Pool {
    /// Returns a pool that starts servers as `configs` say, one a kind.
    #[must_use]
    pub fn new(configs: Vec<WorkerConfig>, interrupt: Interrupt) -> Self {
        let starting = configs.iter().map(|_| Mutex::default()).collect();
        Self {
            configs,
            starting,
            bytecode: OnceLock::new(),
            shared: Mutex::default(),
            servers: Mutex::default(),
            launched: Mutex::default(),
            is_over: AtomicBool::new(false),
            calls: Arc::default(),
            timed: Mutex::default(),
            next: AtomicU64::new(1),
            interrupt,
        }
    }

    /// Runs `request` in a child of the server of `kind`, and returns how the child ended. The request's id is chosen here.
    ///
    /// Once the request was sent, `then` is called with the server and that id. [`Self::cancel`] with the same `cancel` kills the child.
    pub fn call(
        &self,
        kind: ServerKind,
        mut request: Request,
        cancel: &Cancel,
        then: impl FnOnce(&Serving, u64),
    ) -> Result<Finished, NoCall> {
        if cancel.is_set() {
            return Err(NoCall::Cancelled);
        }
        request.id = self.next.fetch_add(1, Ordering::Relaxed);
        let id = request.id;
        let (serving, receiver) = loop {
            let serving = self.serving(kind)?;
            if let Some(bytecode) = self.bytecode.get().filter(|_| request.undisturbed) {
                bytecode.stop();
            }
            if let Some(receiver) = self.submit(kind, &serving.worker, request.clone(), cancel)? {
                break (serving, receiver);
            }
        };
        then(&serving, id);
        drop(serving);
        let ended = receiver.recv();
        cancel.end();
        match ended {
            Ok(finished) => Ok(finished),
            Err(_) if cancel.is_set() => Err(NoCall::Cancelled),
            Err(_) if self.interrupt.is_set() => Err(NoCall::Interrupted),
            Err(_) => Err(NoCall::Died("gone".to_owned())),
        }
    }

    /// Sends `request` to `worker`, and returns where its end will come; `None` where that server has gone and nothing was sent. [`Self::serving`] bounds how often.
    fn submit(
        &self,
        kind: ServerKind,
        worker: &Arc<Worker>,
        request: Request,
        cancel: &Cancel,
    ) -> Result<Option<Receiver<Finished>>, NoCall> {
        let id = request.id;
        let (sender, receiver) = channel();
        // Before `submit`: the child's end may come before `submit` returns.
        lock(&self.calls).insert(id, sender);
        let submitted = cancel.begin(kind, id, || worker.submit(request));
        if matches!(submitted, Some(Ok(()))) {
            return Ok(Some(receiver));
        }
        lock(&self.calls).remove(&id);
        let Some(Err(error)) = submitted else { return Err(NoCall::Cancelled) };
        self.let_go(kind, worker);
        if matches!(error, WorkerError::Client(ClientError::Gone)) { Ok(None) } else { Err(error.into()) }
    }

    /// Cancels the call that runs with `cancel`, if any, and all later ones: its child is killed, the server goes on.
    pub fn cancel(&self, cancel: &Cancel) {
        let Some((kind, id)) = cancel.set() else { return };
        let worker = lock(&self.servers).get(&kind).and_then(|server| server.worker.clone());
        if let Some(worker) = worker {
            // A server that has died has ended the call already.
            let _ = worker.cancel(id);
        }
    }

    /// Begins another build on the running servers: each kind may again be restarted as often as in a first one.
    pub fn begin_build(&self) {
        for server in lock(&self.servers).values_mut() {
            server.starts = u32::from(server.worker.is_some());
        }
    }

    /// Notes that `device` was timed until then, on the machine's monotonic clock.
    pub fn note_timed(&self, device: &str, until: u64) {
        lock(&self.timed).insert(device.to_owned(), until);
    }

    /// Returns until when `device` was timed last, as far as this process did.
    pub fn timed_until(&self, device: &str) -> Option<u64> {
        lock(&self.timed).get(device).copied()
    }

    /// Ends the children of the server of `kind` that are ready for `device`.
    pub fn dismiss(&self, kind: ServerKind, device: &str) {
        let worker = lock(&self.servers).get(&kind).and_then(|server| server.worker.clone());
        // A server that has died has none.
        let _ = worker.map(|worker| worker.dismiss(device));
    }

    /// Tells the server of `kind` to rest, once; starts it if it does not run. Later calls do nothing.
    pub fn rest(&self, kind: ServerKind) -> Result<(), NoCall> {
        let Serving { worker, .. } = self.serving(kind)?;
        let has_rested =
            lock(&self.servers).get_mut(&kind).is_none_or(|server| std::mem::replace(&mut server.has_rested, true));
        if !has_rested {
            worker.rest()?;
        }
        Ok(())
    }

    /// Returns what is known of the server of `kind`; None where none was started.
    #[must_use]
    pub fn heard(&self, kind: ServerKind) -> Option<Heard> {
        let servers = lock(&self.servers);
        let server = servers.get(&kind).filter(|server| server.serial > 0)?;
        let is_gone = server.worker.is_none() || lock(&server.told.died).is_some();
        Some(Heard { serial: server.serial, prepared: server.told.prepared.load(Ordering::Relaxed), is_gone })
    }

    /// Returns what the server of `kind` says of itself, starting it where it does not run.
    pub fn hello(&self, kind: ServerKind) -> Result<ServerHello, NoCall> {
        Ok(self.serving(kind)?.worker.hello().clone())
    }

    /// Kills all servers and their children; calls that wait return. Later calls start others, unless the build is being stopped.
    pub fn stop(&self) {
        *lock(&self.shared) = Shared::Used;
        let servers = mem::take(&mut *lock(&self.servers));
        lock(&self.calls).clear();
        let launched = if self.is_over() { mem::take(&mut *lock(&self.launched)) } else { HashMap::new() };
        // Each takes some milliseconds to go: torch has much memory to give back.
        thread::scope(|scope| {
            for server in servers.into_values() {
                scope.spawn(move || drop(server));
            }
            for process in launched.into_values().filter_map(|process| process.upgrade()) {
                scope.spawn(move || process.kill());
            }
        });
        if self.is_over() {
            // A start that had no process yet kills the one that it gets. It is waited for: who stops may end t2t next.
            self.starting.iter().for_each(|starting| drop(lock(starting)));
        }
    }

    /// Kills all servers, those that do not serve yet, too, and their children; none is started any more. Returns once nothing of them is left.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.stop();
    }

    /// Returns whether no server is to start any more.
    fn is_over(&self) -> bool {
        self.interrupt.is_set() || self.is_over.load(Ordering::Acquire)
    }

    /// Forgets a server that accepts no requests any more, though its death is not reported yet: the next call gets another.
    fn let_go(&self, kind: ServerKind, gone: &Arc<Worker>) {
        let mut servers = lock(&self.servers);
        let Some(server) = servers.get_mut(&kind) else { return };
        if server.worker.as_ref().is_some_and(|worker| Arc::ptr_eq(worker, gone)) {
            server.worker = None;
        }
    }

    /// Returns the server of `kind`, starting it where it does not run. Whoever has it lets go of it soon: it ends with the last that does.
    pub fn serving(&self, kind: ServerKind) -> Result<Serving, NoCall> {
        if self.is_over() {
            return Err(NoCall::Interrupted);
        }
        let place = self.configs.iter().position(|config| config.kind == kind).expect("every kind is configured");
        // A start takes seconds. This lock makes a second call of the kind wait for it instead of starting another server.
        let _starting = lock(&self.starting[place]);
        if self.is_over() {
            return Err(NoCall::Interrupted);
        }
        let told = match self.running(kind)? {
            Ok(serving) => return Ok(serving),
            Err(told) => told,
        };
        self.bytecode.get_or_init(|| Bytecode::begin(&self.configs[place]));
        let started = self.start(&self.configs[place], &told);
        lock(&self.launched).remove(&kind);
        let mut servers = lock(&self.servers);
        if self.is_over() {
            return Err(NoCall::Interrupted);
        }
        let worker = Arc::new(started?);
        let server = servers.entry(kind).or_default();
        server.worker = Some(Arc::clone(&worker));
        server.has_rested = false;
        server.serial = STARTED.fetch_add(1, Ordering::Relaxed) + 1;
        server.told = told;
        Ok(Serving { serial: server.serial, worker })
    }

    /// Starts a server: the process that another kind's has forked, where there is one that serves, else a new one.
    fn start(&self, config: &WorkerConfig, told: &Arc<Told>) -> Result<Worker, WorkerError> {
        let sink = || self.sink(Arc::clone(told));
        let new = |spare| {
            let launched = |process: &Arc<Process>| {
                lock(&self.launched).insert(config.kind, Arc::downgrade(process));
                if self.is_over() {
                    process.kill();
                }
            };
            Worker::start_forking(config, spare, launched, sink())
        };
        if config.fork_after.is_none() {
            return new(None);
        }
        let mut shared = lock(&self.shared);
        if matches!(*shared, Shared::Unmade)
            && let Ok((spare, ends)) = pair()
        {
            *shared = Shared::Waits(spare);
            drop(shared);
            return new(Some(ends));
        }
        let before = std::mem::replace(&mut *shared, Shared::Used);
        drop(shared);
        if let Shared::Waits(spare) = before
            && let Some(forked) = spare.wait()
            && let Ok(worker) = Worker::start_forked(config, forked, sink())
        {
            return Ok(worker);
        }
        new(None)
    }

    /// Returns the server of `kind` that runs; where none does, it is counted as started, and the place of what it will tell is returned.
    fn running(&self, kind: ServerKind) -> Result<Result<Serving, Arc<Told>>, NoCall> {
        let mut servers = lock(&self.servers);
        let server = servers.entry(kind).or_default();
        let died = lock(&server.told.died).take();
        if died.is_some() {
            server.worker = None;
        }
        if let Some(worker) = &server.worker {
            return Ok(Ok(Serving { serial: server.serial, worker: Arc::clone(worker) }));
        }
        if server.starts >= STARTS {
            return Err(NoCall::Died(died.unwrap_or_else(|| "it would not start again".to_owned())));
        }
        server.starts += 1;
        // A fresh state, so that a late report of the previous server's death does not mark this one.
        server.told = Arc::default();
        Ok(Err(Arc::clone(&server.told)))
    }

    /// Hands each child's end to the call that waits for it.
    fn sink(&self, told: Arc<Told>) -> impl Fn(WorkerEvent) + Send + 'static {
        let calls = Arc::clone(&self.calls);
        move |event| match event {
            WorkerEvent::Started { .. } => {}
            WorkerEvent::Prepared { .. } => {
                told.prepared.fetch_add(1, Ordering::Relaxed);
            }
            WorkerEvent::Finished(finished) => {
                let call = lock(&calls).remove(&finished.id);
                // If nobody waits any more, the call was stopped.
                call.map(|call| call.send(*finished).ok());
            }
            WorkerEvent::Died { reason, outstanding } => {
                *lock(&told.died) = Some(reason.clone());
                for id in outstanding {
                    let end = End::Refused(format!("the worker died: {reason}"));
                    let call = lock(&calls).remove(&id);
                    call.map(|call| call.send(Finished::bare(id, end)).ok());
                }
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end();
    }
}

/// A poisoned lock is fine: each value is changed by one call, so a thread that panicked left a whole one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
