//! The pool: the fork servers of a build, started when first needed, and calls to their children as plain functions.
//!
//! Each kind of server is restarted once when it dies. It does not know phases or outcomes.
#![expect(clippy::disallowed_types, reason = "the threads of all actions share the servers")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use t2t_protocol::{End, Finished, Request, ServerHello, ServerKind};

use crate::interrupt::Interrupt;
use crate::worker::{Worker, WorkerConfig, WorkerError, WorkerEvent};

/// How often a kind of server is started in one build.
const STARTS: u32 = 2;

/// The fork servers of a build.
#[derive(Debug)]
pub struct Pool {
    configs: Vec<WorkerConfig>,
    servers: Mutex<HashMap<ServerKind, Server>>,
    calls: Arc<Mutex<HashMap<u64, Sender<Finished>>>>,
    next: AtomicU64,
    interrupt: Interrupt,
}

#[derive(Debug, Default)]
struct Server {
    worker: Option<Arc<Worker>>,
    starts: u32,
    dead: Arc<Mutex<Option<String>>>,
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
}

impl Pool {
    /// Returns a pool that starts servers as `configs` say, one a kind.
    #[must_use]
    pub fn new(configs: Vec<WorkerConfig>, interrupt: Interrupt) -> Self {
        Self { configs, servers: Mutex::default(), calls: Arc::default(), next: AtomicU64::new(1), interrupt }
    }

    /// Runs `request` in a child of the server of `kind`, and returns how the child ended. The request's id is chosen here.
    pub fn call(&self, kind: ServerKind, mut request: Request) -> Result<Finished, NoCall> {
        let worker = self.worker(kind)?;
        request.id = self.next.fetch_add(1, Ordering::Relaxed);
        let id = request.id;
        let (sender, receiver) = channel();
        lock(&self.calls).insert(id, sender);
        if let Err(error) = worker.submit(request) {
            lock(&self.calls).remove(&id);
            return Err(error.into());
        }
        drop(worker);
        receiver
            .recv()
            .map_err(|_| if self.interrupt.is_set() { NoCall::Interrupted } else { NoCall::Died("gone".to_owned()) })
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

    fn worker(&self, kind: ServerKind) -> Result<Arc<Worker>, NoCall> {
        if self.interrupt.is_set() {
            return Err(NoCall::Interrupted);
        }
        let mut servers = lock(&self.servers);
        let server = servers.entry(kind).or_default();
        let died = lock(&server.dead).take();
        if died.is_some() {
            server.worker = None;
        }
        if let Some(worker) = &server.worker {
            return Ok(Arc::clone(worker));
        }
        if server.starts >= STARTS {
            return Err(NoCall::Died(died.unwrap_or_else(|| "it would not start again".to_owned())));
        }
        server.starts += 1;
        let config = self.configs.iter().find(|config| config.kind == kind).expect("every kind is configured");
        let worker = Arc::new(Worker::start(config, self.sink(Arc::clone(&server.dead)))?);
        server.worker = Some(Arc::clone(&worker));
        Ok(worker)
    }

    /// Hands each child's end to the call that waits for it.
    fn sink(&self, dead: Arc<Mutex<Option<String>>>) -> impl Fn(WorkerEvent) + Send + 'static {
        let calls = Arc::clone(&self.calls);
        move |event| match event {
            WorkerEvent::Started { .. } => {}
            WorkerEvent::Finished(finished) => {
                let call = lock(&calls).remove(&finished.id);
                // A call that no longer waits was stopped.
                call.map(|call| call.send(*finished).ok());
            }
            WorkerEvent::Died { reason, outstanding } => {
                *lock(&dead) = Some(reason.clone());
                for id in outstanding {
                    let end = End::Refused(format!("the worker died: {reason}"));
                    let call = lock(&calls).remove(&id);
                    call.map(|call| call.send(Finished::bare(id, end)).ok());
                }
            }
        }
    }
}

/// A thread that panicked while it held a lock left a whole value: each is changed by one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
