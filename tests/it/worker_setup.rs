//! The builder of worker tests: a harness module from inline text, a server over it, and the ends of its children.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
};

use serde_json::{Value, json};
use t2t_host::worker::{Worker, WorkerConfig, WorkerEvent};
use t2t_protocol::{End, Finished, Limits, Request, Sandbox, ServerKind};
use tempfile::TempDir;

pub use crate::project::SOON;

/// Names the interpreter that the tests drive; it has `t2t_worker`.
pub fn python() -> PathBuf {
    crate::environment::python()
}

/// A folder with a harness of one module, `work`, and a folder for scratch.
pub struct Bench {
    pub folder: TempDir,
}

impl Bench {
    /// Writes the module.
    pub fn new(module: &str) -> Self {
        let folder = crate::environment::folder();
        fs::create_dir(folder.path().join("harness")).unwrap();
        fs::create_dir(folder.path().join("scratch")).unwrap();
        fs::write(folder.path().join("harness/work.py"), module).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Configures a server over the harness.
    pub fn config(&self) -> WorkerConfig {
        let mut config = WorkerConfig::new(python(), ServerKind::Compiled);
        config.harness = Some(self.path("harness"));
        config.preload = vec!["work".to_owned()];
        config
    }

    /// Starts a server.
    pub fn start(&self) -> Server {
        Server::start(&self.config())
    }

    /// Asks for a function of the module, in the sandbox, without arguments.
    pub fn request(&self, id: u64, function: &str) -> Request {
        Request {
            id,
            function: format!("work:{function}"),
            arguments: json!({}),
            scratch: text(&self.path("scratch")),
            environment: BTreeMap::new(),
            limits: Limits::wall(240_000),
            sandbox: Some(Sandbox::default()),
            watch_under: None,
            reserve: None,
            stays: false,
            undisturbed: false,
            needs: None,
        }
    }

    /// Runs one function in a server of its own.
    pub fn run(&self, function: &str) -> Finished {
        self.start().run(self.request(1, function))
    }
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A server and what it told.
pub struct Server {
    pub worker: Worker,
    pub events: Receiver<WorkerEvent>,
}

impl Server {
    pub fn start(config: &WorkerConfig) -> Self {
        let (sender, events) = channel();
        let worker = Worker::start(config, move |event| drop(sender.send(event))).unwrap_or_else(|error| {
            panic!("error: {error}\nhint: {}", error.hint().unwrap_or("none"));
        });
        Self { worker, events }
    }

    pub fn next(&self) -> WorkerEvent {
        self.events.recv_timeout(SOON).unwrap()
    }

    /// Submits a request and returns its child once it runs.
    pub fn started(&self, request: Request) -> i32 {
        self.worker.submit(request).unwrap();
        loop {
            match self.next() {
                WorkerEvent::Started { pid, .. } => return pid,
                WorkerEvent::Prepared { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Waits for the next end.
    pub fn finished(&self) -> Finished {
        loop {
            match self.next() {
                WorkerEvent::Started { .. } | WorkerEvent::Prepared { .. } => {}
                WorkerEvent::Finished(finished) => return *finished,
                WorkerEvent::Died { reason, .. } => panic!("the server died: {reason}"),
            }
        }
    }

    pub fn run(&self, request: Request) -> Finished {
        self.worker.submit(request).unwrap();
        self.finished()
    }
}

/// Returns the reply, or fails with all that is known.
pub fn reply(finished: &Finished) -> &Value {
    match &finished.end {
        End::Reply(value) => value,
        other => panic!("{other}\n{}", finished.stderr.text()),
    }
}
