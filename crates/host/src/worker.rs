//! The Python behind the lanes: starts a fork server in the user's interpreter and passes requests and events.
//!
//! It does not know actions, lanes or outcomes, and keeps no queue: what is submitted runs at once.

mod bytecode;
mod client;
mod process;
mod spare;

use std::{
    collections::BTreeMap,
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use t2t_protocol::{ClientHello, Request, ServerHello, ServerKind, UnfitReason, VERSION, WarmChild};
use thiserror::Error;

pub(crate) use bytecode::Bytecode;
pub use client::{Client, ClientError, Listener, WorkerEvent, connect};
pub(crate) use process::Process;
pub(crate) use spare::{Forked, Spare, pair};

/// How long a server that was asked to leave may take.
const GRACE: Duration = Duration::from_secs(3);

/// What to start.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The interpreter, as a path or a name to look up.
    pub python: PathBuf,
    /// What the server is for.
    pub kind: ServerKind,
    /// The folder that holds the harness package. Absolute.
    pub harness: Option<PathBuf>,
    /// What to import before serving, modules, and functions as `module:function`: [`t2t_protocol::PRELOAD`] and the harness's.
    pub preload: Vec<String>,
    /// What to import while it serves, as [`ClientHello::later`] says.
    pub later: Vec<String>,
    /// What to import once something that is asked for needs it, as [`ClientHello::asked`] says.
    pub asked: Vec<String>,
    /// After which entry of `preload` the server forks another one, for the next kind that is started with this set; see [`ClientHello::fork_after`].
    pub fork_after: Option<String>,
    /// A folder that holds `t2t_worker`, where the interpreter's own environment does not.
    pub module: Option<PathBuf>,
    /// Variables for the server beside the few that it gets from t2t. Its children get only those of a closed list.
    pub environment: BTreeMap<String, String>,
    /// How long it may take until it serves. Most of that is importing torch from a cold disk, or on a busy machine.
    pub patience: Duration,
}

impl WorkerConfig {
    /// Configures a server that imports nothing yet and has five minutes to start.
    #[must_use]
    pub fn new(python: impl Into<PathBuf>, kind: ServerKind) -> Self {
        Self {
            python: python.into(),
            kind,
            harness: None,
            preload: Vec::new(),
            later: Vec::new(),
            asked: Vec::new(),
            fork_after: None,
            module: None,
            environment: BTreeMap::new(),
            patience: Duration::from_mins(5),
        }
    }

    fn hello(&self, forks: bool) -> ClientHello {
        ClientHello {
            version: VERSION,
            kind: self.kind,
            harness: self.harness.as_deref().map(|folder| folder.to_string_lossy().into_owned()),
            preload: self.preload.clone(),
            later: self.later.clone(),
            asked: self.asked.clone(),
            fork_after: self.fork_after.clone().filter(|_| forks),
        }
    }
}

/// Why there is no worker.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The interpreter cannot be executed.
    #[error("cannot start `{}`: {source}", python.display())]
    Spawn {
        /// The interpreter.
        python: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The interpreter runs, but does not serve.
    #[error("`{}` cannot serve: {source}{}", python.display(), quoted(output))]
    Hello {
        /// The interpreter.
        python: PathBuf,
        /// What went wrong.
        source: ClientError,
        /// How its process ended, and the end of what it printed.
        output: String,
    },
    /// The worker that was there cannot be reached.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl WorkerError {
    /// Returns what a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Spawn { .. } => Some("name another interpreter with `--python` or `$T2T_PYTHON`"),
            Self::Hello { source: ClientError::Unfit(unfit), .. } => hint_for(unfit.kind),
            Self::Hello { source: ClientError::Version { .. }, .. } => hint_for(UnfitReason::Version),
            Self::Hello { .. } | Self::Client(_) => None,
        }
    }
}

fn hint_for(reason: UnfitReason) -> Option<&'static str> {
    match reason {
        UnfitReason::OldPython => Some("t2t needs Python 3.10 or newer; name one with `--python` or `$T2T_PYTHON`"),
        UnfitReason::NoModule => {
            Some("run `uv sync`, or put the folder that holds `t2t_worker.abi3.so` on `PYTHONPATH`")
        }
        UnfitReason::Version => Some("t2t and `t2t_worker` come from different builds; run `uv sync`"),
        UnfitReason::Start => None,
    }
}

/// Puts the output of a process under a message, indented.
fn quoted(output: &str) -> String {
    output.lines().flat_map(|line| ["\n    ", line]).collect()
}

/// A running fork server. Dropping it ends the server and everything it has forked.
#[derive(Debug)]
pub struct Worker {
    client: Client,
    process: Arc<Process>,
    listener: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a server and waits until it serves. `sink` gets its events, on a thread of its own; it must not block for
    /// long, and must not own the worker.
    pub fn start(config: &WorkerConfig, sink: impl Fn(WorkerEvent) + Send + 'static) -> Result<Self, WorkerError> {
        Self::start_forking(config, None, |_| {}, sink)
    }

    /// Starts a server as [`Self::start`] does, which forks another process for the ends of a spare, where there are some. `launched` gets its process before it serves.
    pub(crate) fn start_forking(
        config: &WorkerConfig,
        mut spare: Option<spare::Ends>,
        launched: impl FnOnce(&Arc<Process>),
        sink: impl Fn(WorkerEvent) + Send + 'static,
    ) -> Result<Self, WorkerError> {
        let (process, stream) =
            process::spawn(&config.python, config.module.as_deref(), &config.environment, spare.as_mut())
                .map_err(|source| WorkerError::Spawn { python: config.python.clone(), source })?;
        let process = Arc::new(process);
        launched(&process);
        // The ends go with the end of this function: by then it has forked, or never will.
        Self::serving(config, process, stream, spare.is_some(), sink)
    }

    /// Has a process serve that another server forked.
    pub(crate) fn start_forked(
        config: &WorkerConfig,
        forked: Forked,
        sink: impl Fn(WorkerEvent) + Send + 'static,
    ) -> Result<Self, WorkerError> {
        let process = Arc::new(Process::forked(forked.pid, forked.output));
        Self::serving(config, process, forked.stream, false, sink)
    }

    fn serving(
        config: &WorkerConfig,
        process: Arc<Process>,
        stream: UnixStream,
        forks: bool,
        sink: impl Fn(WorkerEvent) + Send + 'static,
    ) -> Result<Self, WorkerError> {
        let (client, listener) = connect(stream, &config.hello(forks), config.patience)
            .map_err(|source| failed(&config.python, &process, source))?;
        let remains = Arc::clone(&process);
        let listener = thread::spawn(move || listener.listen(sink, || remains.end(GRACE)));
        Ok(Self { client, process, listener: Some(listener) })
    }

    /// Returns what the server said of itself.
    #[must_use]
    pub fn hello(&self) -> &ServerHello {
        self.client.hello()
    }

    /// Forks a child for a request, at once. Its events bear the request's id.
    pub fn submit(&self, request: Request) -> Result<(), WorkerError> {
        Ok(self.client.submit(request)?)
    }

    /// Starts a warm child for a request that names its key.
    pub fn prepare(&self, warm_child: WarmChild) -> Result<(), WorkerError> {
        Ok(self.client.prepare(warm_child)?)
    }

    /// Ends the warm children of a device.
    pub fn dismiss(&self, device: &str) -> Result<(), WorkerError> {
        Ok(self.client.dismiss(device)?)
    }

    /// Says that no request comes soon, so that the server may spend a few tenths of a second on making later forks cheap.
    pub fn rest(&self) -> Result<(), WorkerError> {
        Ok(self.client.rest()?)
    }

    /// Kills the child of a request. Its end is reported as usual; a child that has ended is left alone.
    pub fn cancel(&self, id: u64) -> Result<(), WorkerError> {
        Ok(self.client.cancel(id)?)
    }

    /// Ends the server and everything it has forked. The last event is [`WorkerEvent::Died`].
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // If the message cannot be sent, the server has gone already.
        self.client.ask_to_leave().ok();
        self.process.end(GRACE);
        if let Some(listener) = self.listener.take() {
            // It ends with the server's socket. If it panicked, so has the sink, and that was reported there.
            listener.join().ok();
        }
    }
}

/// Ends a process that did not become a worker, and keeps what it said.
fn failed(python: &Path, process: &Process, source: ClientError) -> WorkerError {
    let grace = match source {
        ClientError::Late(_) => Duration::ZERO,
        _ => GRACE,
    };
    let output = process.end(grace);
    WorkerError::Hello { python: python.to_owned(), source, output }
}
