//! The pool: the fork servers of a build, started when first needed, and calls to their children as plain functions.
//!
//! Each kind of server is restarted once when it dies. It does not know phases or outcomes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use t2t_protocol::{End, Finished, Request, ServerHello, ServerKind, WarmChild};

use crate::interrupt::Interrupt;
use crate::worker::{Bytecode, Worker, WorkerConfig, WorkerError, WorkerEvent};

mod cancel;

pub use cancel::Cancel;

/// How often a kind of server is started in one build.
const STARTS: u32 = 2;

/// The fork servers of a build.
#[derive(Debug)]
pub struct Pool {
    configs: Vec<WorkerConfig>,
    /// One lock per kind, held while its server starts, so that calls for other kinds do not wait.
    starting: Vec<Mutex<()>>,
    /// The process that compiles bytecode, from the first server's start on.
    bytecode: OnceLock<Bytecode>,
    servers: Mutex<HashMap<ServerKind, Server>>,
    calls: Arc<Mutex<HashMap<u64, Sender<Finished>>>>,
    /// Device → when it was timed last.
    timed: Mutex<HashMap<String, u64>>,
    next: AtomicU64,
    interrupt: Interrupt,
}

/// What is known of a server.
#[derive(Debug, Default)]
struct Told {
    /// Why it died, once it has.
    died: Mutex<Option<String>>,
    /// How many children get ready.
    unready: AtomicUsize,
}

#[derive(Debug, Default)]
struct Server {
    worker: Option<Arc<Worker>>,
    starts: u32,
    /// Whether the one that runs was told to rest.
    has_rested: bool,
    /// Key → how many warm children there are, ready or getting ready.
    warm_children: HashMap<String, usize>,
    told: Arc<Told>,
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
            servers: Mutex::default(),
            calls: Arc::default(),
            timed: Mutex::default(),
            next: AtomicU64::new(1),
            interrupt,
        }
    }

    /// Runs `request` in a child of the server of `kind`, and returns how the child ended. The request's id is chosen here.
    ///
    /// Once the child runs, warm children are started as each of `warm_children` says, one or two at a time and up to their limit. [`Self::cancel`] with the
    /// same `cancel` kills the child.
    pub fn call(
        &self,
        kind: ServerKind,
        mut request: Request,
        warm_children: &[WarmChild],
        cancel: &Cancel,
    ) -> Result<Finished, NoCall> {
        if cancel.is_set() {
            return Err(NoCall::Cancelled);
        }
        let worker = self.worker(kind)?;
        // Compiling on all cores would disturb a measurement. The next build goes on with it.
        if let Some(bytecode) = self.bytecode.get().filter(|_| request.undisturbed) {
            bytecode.stop();
        }
        let key = request.reserve.clone();
        self.count_out(kind, key.as_deref());
        request.id = self.next.fetch_add(1, Ordering::Relaxed);
        let id = request.id;
        let (sender, receiver) = channel();
        // Before `submit`: the child's end may come before `submit` returns.
        lock(&self.calls).insert(id, sender);
        let submitted = cancel.begin(kind, id, || worker.submit(request));
        if !matches!(submitted, Some(Ok(()))) {
            lock(&self.calls).remove(&id);
        }
        if matches!(submitted, Some(Err(_))) {
            self.let_go(kind, &worker);
        }
        submitted.ok_or(NoCall::Cancelled)??;
        for warm_child in warm_children {
            self.fill(kind, &worker, warm_child);
        }
        // The pool must hold the last reference, so that `stop` ends the server while this call waits.
        drop(worker);
        let ended = receiver.recv();
        cancel.end();
        if let (Ok(Finished { stayed: true, .. }), Some(key)) = (&ended, &key) {
            self.count_in(kind, key);
        }
        match ended {
            _ if cancel.is_set() => Err(NoCall::Cancelled),
            Ok(finished) => Ok(finished),
            Err(_) if self.interrupt.is_set() => Err(NoCall::Interrupted),
            Err(_) => Err(NoCall::Died("gone".to_owned())),
        }
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

    /// Notes that a request takes a warm child.
    fn count_out(&self, kind: ServerKind, key: Option<&str>) {
        let mut servers = lock(&self.servers);
        let count = servers.get_mut(&kind).zip(key).and_then(|(server, key)| server.warm_children.get_mut(key));
        if let Some(count) = count {
            *count = count.saturating_sub(1);
        }
    }

    /// Notes that a child has stayed and is ready for the next request.
    fn count_in(&self, kind: ServerKind, key: &str) {
        let mut servers = lock(&self.servers);
        if let Some(count) = servers.get_mut(&kind).and_then(|server| server.warm_children.get_mut(key)) {
            *count += 1;
        }
    }

    /// Starts warm children as `warm_child` says, up to their limit. Starts the server of `kind` if it does not run.
    pub fn keep_ready(&self, kind: ServerKind, warm_child: &WarmChild) -> Result<(), NoCall> {
        let worker = self.worker(kind)?;
        self.fill(kind, &worker, warm_child);
        Ok(())
    }

    /// Notes that `device` was timed until then, on the machine's monotonic clock.
    pub fn note_timed(&self, device: &str, until: u64) {
        lock(&self.timed).insert(device.to_owned(), until);
    }

    /// Returns until when `device` was timed last, as far as this process did.
    pub fn timed_until(&self, device: &str) -> Option<u64> {
        lock(&self.timed).get(device).copied()
    }

    /// Ends the warm children of the server of `kind` for `device`; their keys begin with it.
    pub fn dismiss(&self, kind: ServerKind, device: &str) {
        let mut servers = lock(&self.servers);
        let Some(server) = servers.get_mut(&kind) else { return };
        server.warm_children.retain(|key, _| !key.starts_with(device));
        if let Some(worker) = &server.worker {
            // A server that has died has no warm children.
            let _ = worker.dismiss(device);
        }
    }

    /// Tells the server of `kind` to rest, once; starts it if it does not run. Later calls do nothing.
    pub fn rest(&self, kind: ServerKind) -> Result<(), NoCall> {
        let worker = self.worker(kind)?;
        let has_rested =
            lock(&self.servers).get_mut(&kind).is_none_or(|server| std::mem::replace(&mut server.has_rested, true));
        if !has_rested {
            worker.rest()?;
        }
        Ok(())
    }

    /// Starts warm children as `warm_child` says, up to their limit. The server decides how many start at once.
    fn fill(&self, kind: ServerKind, worker: &Worker, warm_child: &WarmChild) {
        let missing = {
            let mut servers = lock(&self.servers);
            let Some(server) = servers.get_mut(&kind) else { return };
            let have = server.warm_children.entry(warm_child.key.clone()).or_default();
            let missing = warm_child.most.saturating_sub(*have);
            // Counted before they are asked for: a call on another thread must not ask for the same ones.
            *have += missing;
            server.told.unready.fetch_add(missing, Ordering::Relaxed);
            missing
        };
        for _ in 0..missing {
            // The call that waits reports a server that has died.
            let _ = worker.prepare(warm_child.clone());
        }
    }

    /// Says whether children of the server of `kind` get ready.
    pub fn get_ready(&self, kind: ServerKind) -> bool {
        let has_any = |server: &Server| server.worker.is_some() && server.told.unready.load(Ordering::Relaxed) > 0;
        lock(&self.servers).get(&kind).is_some_and(has_any)
    }

    /// Returns what the server of `kind` says of itself, starting it where it does not run.
    pub fn hello(&self, kind: ServerKind) -> Result<ServerHello, NoCall> {
        Ok(self.worker(kind)?.hello().clone())
    }

    /// Kills all servers and their children; calls that wait return.
    pub fn stop(&self) {
        lock(&self.servers).clear();
        lock(&self.calls).clear();
    }

    /// Forgets a server that accepts no requests any more, though its death is not reported yet: the next call gets another.
    fn let_go(&self, kind: ServerKind, gone: &Arc<Worker>) {
        let mut servers = lock(&self.servers);
        let Some(server) = servers.get_mut(&kind) else { return };
        if server.worker.as_ref().is_some_and(|worker| Arc::ptr_eq(worker, gone)) {
            server.worker = None;
            server.warm_children.clear();
        }
    }

    fn worker(&self, kind: ServerKind) -> Result<Arc<Worker>, NoCall> {
        if self.interrupt.is_set() {
            return Err(NoCall::Interrupted);
        }
        let place = self.configs.iter().position(|config| config.kind == kind).expect("every kind is configured");
        // A start takes seconds. This lock makes a second call of the kind wait for it instead of starting another server.
        let _starting = lock(&self.starting[place]);
        let told = match self.running(kind)? {
            Ok(worker) => return Ok(worker),
            Err(told) => told,
        };
        self.bytecode.get_or_init(|| Bytecode::begin(&self.configs[place]));
        let worker = Arc::new(Worker::start(&self.configs[place], self.sink(Arc::clone(&told)))?);
        let mut servers = lock(&self.servers);
        if self.interrupt.is_set() {
            return Err(NoCall::Interrupted);
        }
        let server = servers.entry(kind).or_default();
        server.worker = Some(Arc::clone(&worker));
        server.has_rested = false;
        server.told = told;
        Ok(worker)
    }

    /// Returns the running server of `kind`. If there is none, it counts one more start and returns the slot for the new server's state.
    fn running(&self, kind: ServerKind) -> Result<Result<Arc<Worker>, Arc<Told>>, NoCall> {
        let mut servers = lock(&self.servers);
        let server = servers.entry(kind).or_default();
        let died = lock(&server.told.died).take();
        if died.is_some() {
            server.worker = None;
            server.warm_children.clear();
        }
        if let Some(worker) = &server.worker {
            return Ok(Ok(Arc::clone(worker)));
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
                let one_less = |count: usize| count.checked_sub(1);
                let _ = told.unready.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
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

/// A poisoned lock is fine: each value is changed by one call, so a thread that panicked left a whole one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
