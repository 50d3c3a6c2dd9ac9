//! A cluster: the process of its driver, a program of Python. Actions go out, their ends come in, a line of JSON each.
//!
//! Nothing of a cluster is linked, and nobody who names none starts a driver. It does not know what actions are, nor which of them is tried again.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use t2t_model::digest::Digest;
use t2t_store::secrets;

/// The protocol; `python/api/t2t_ray/messages.py` has the same number. 1: first. 2: nodes tell their devices. 3: nodes that lend cores are asked, too. 4: it says
/// when it joins.
const VERSION: u32 = 4;

/// The module of the driver.
const MODULE: &str = "t2t_ray";

/// How often whoever waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// How long a driver may take to end what runs and to leave.
const PATIENCE: Duration = Duration::from_secs(8);

/// How much of what a driver prints is kept: the end of it, in bytes.
const LAST_WORDS: usize = 4 << 10;

/// A node that is alive.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Node {
    /// What the cluster knows it by.
    pub id: String,
    /// What people know it by: its address.
    pub name: String,
    /// How many cores it lends.
    pub cpus: usize,
    /// How many devices it lends.
    pub gpus: usize,
    /// What its owner says of it.
    pub labels: BTreeMap<String, String>,
    /// What `t2t perform facts` says there. None of one that lends no device, and of one that came later.
    pub facts: Option<Value>,
    /// Why it says nothing, where it was asked.
    pub fault: Option<String>,
}

/// An action for a node.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The node's id.
    pub node: &'a str,
    /// How many devices it takes.
    pub gpus: usize,
    /// How many cores it takes beside, as the cluster counts them.
    pub cpus: usize,
    /// How many slots of the CPU its t2t has; the node's own choice where it is not said.
    pub jobs: Option<usize>,
    /// The text of its bundle.
    pub bundle: &'a str,
    /// Where the bytes lie that the bundle names.
    pub blobs: &'a BTreeMap<Digest, PathBuf>,
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// `t2t perform run` ended.
    Ended {
        /// With this exit code.
        exit: i32,
        /// With this document, if it printed one.
        document: Option<Value>,
        /// With these last words.
        said: String,
        /// With a result, in this file.
        result: Option<PathBuf>,
    },
    /// The node or the cluster failed: why.
    Lost(String),
}

/// Why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum NoCluster {
    /// The driver cannot be started.
    #[error("cannot start `{python} -m {MODULE}`: {source}")]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The driver says what is wrong.
    #[error("{message}")]
    Fault {
        /// What.
        message: String,
        /// What helps.
        hint: String,
    },
    /// The driver ended without a word of the protocol.
    #[error("`{python} -m {MODULE}` ended: {words}")]
    Ended {
        /// The interpreter.
        python: PathBuf,
        /// Its last words.
        words: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    Joining { hint: String },
    Nodes { nodes: Vec<Node> },
    Ended { id: u64, exit: i32, document: Option<Value>, said: String, result: Option<PathBuf> },
    Lost { id: u64, reason: String },
    Fault { message: String, hint: String },
}

/// What the driver has said.
#[derive(Default)]
struct State {
    /// What helps if the driver ends while it joins; None before it does.
    hint: Option<String>,
    nodes: Option<Vec<Node>>,
    waiting: HashMap<u64, Sender<End>>,
    next: u64,
    fault: Option<(String, String)>,
    /// Whether the driver says nothing more.
    is_over: bool,
}

/// A cluster, for as long as this is held: dropping it ends the driver, and what it started.
pub struct Cluster {
    driver: Mutex<Child>,
    orders: Mutex<Option<ChildStdin>>,
    state: Arc<Mutex<State>>,
    words: Arc<Mutex<Vec<u8>>>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("nodes", &self.nodes()).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts the driver of the cluster at `address` with this interpreter, and returns once it says which nodes there are, and what they have. Results come into the folder `scratch`, which is
    /// there. Fails where the cluster cannot be used, and once `stopped` is true.
    pub fn start(
        python: &Path,
        (address, cores): (&str, bool),
        scratch: &Path,
        stopped: impl Fn() -> bool,
    ) -> Result<Self, NoCluster> {
        let fails = |source| NoCluster::Start { python: python.to_owned(), source };
        let mut command = Command::new(python);
        // In a group of its own: Ctrl-C is for t2t, which has it end what runs.
        command.args(["-u", "-m", MODULE]).process_group(0);
        secrets::withhold(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut driver = command.spawn().map_err(fails)?;
        let (orders, told, said) = (driver.stdin.take(), driver.stdout.take(), driver.stderr.take());
        let (state, words) = (Arc::<Mutex<State>>::default(), Arc::<Mutex<Vec<u8>>>::default());
        let (heard, kept) = (Arc::clone(&state), Arc::clone(&words));
        thread::spawn(move || keep(said.map(BufReader::new).into_iter().flat_map(Read::bytes), &kept));
        thread::spawn(move || listen(told.map(BufReader::new).into_iter().flat_map(BufRead::lines), &heard));
        let cluster = Self { driver: Mutex::new(driver), orders: Mutex::new(orders), state, words };
        cluster.say(&json!({"open": {"version": VERSION, "address": address, "scratch": scratch, "cores": cores}}));
        loop {
            let state = locked(&cluster.state);
            if let Some((message, hint)) = &state.fault {
                return Err(NoCluster::Fault { message: message.clone(), hint: hint.clone() });
            }
            if state.is_over {
                let hint = state.hint.clone();
                drop(state);
                if let Some(hint) = hint {
                    let message = format!("cannot reach the Ray cluster at {address}: {}", cluster.last_words());
                    return Err(NoCluster::Fault { message, hint });
                }
                return Err(NoCluster::Ended { python: python.to_owned(), words: cluster.last_words() });
            }
            if state.nodes.is_some() {
                drop(state);
                return Ok(cluster);
            }
            drop(state);
            if stopped() {
                return Err(NoCluster::Interrupted);
            }
            thread::sleep(LOOK);
        }
    }

    /// Returns the nodes that are alive; none once the driver has ended.
    #[must_use]
    pub fn nodes(&self) -> Vec<Node> {
        let state = locked(&self.state);
        if state.is_over { Vec::new() } else { state.nodes.clone().unwrap_or_default() }
    }

    /// Returns why the cluster cannot be used any more; None where it can.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let state = locked(&self.state);
        let told = state.fault.as_ref().map(|(message, _)| message.clone());
        told.or_else(|| state.is_over.then(|| "the driver of the cluster ended".to_owned()))
    }

    /// Has a node perform an action, and returns how it ended. Once `stopped` is true it is cancelled, and lost.
    pub fn perform(&self, asked: &Asked<'_>, stopped: impl Fn() -> bool) -> End {
        let (id, end) = self.expect();
        let Asked { node, gpus, cpus, jobs, bundle, blobs } = asked;
        self.say(&json!({"perform": {
            "id": id, "node": node, "gpus": gpus, "cpus": cpus, "jobs": jobs, "bundle": bundle, "blobs": blobs,
        }}));
        loop {
            match end.recv_timeout(LOOK) {
                Ok(end) => return end,
                Err(RecvTimeoutError::Timeout) if stopped() => {
                    locked(&self.state).waiting.remove(&id);
                    self.say(&json!({"cancel": {"id": id}}));
                    return End::Lost("interrupted".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return End::Lost(self.fault().unwrap_or_else(|| "the driver of the cluster ended".to_owned()));
                }
            }
        }
    }

    /// Returns a number for an action, and where its end will be told.
    fn expect(&self) -> (u64, Receiver<End>) {
        let (sender, end) = channel();
        let mut state = locked(&self.state);
        state.next += 1;
        let id = state.next;
        // Of a driver that has ended nobody hears: the receiver is disconnected at once.
        if !state.is_over {
            state.waiting.insert(id, sender);
        }
        (id, end)
    }

    /// Says a line. A driver that has ended does not hear it, and whoever waits learns so.
    fn say(&self, line: &impl Serialize) {
        if let (Some(orders), Ok(text)) = (locked(&self.orders).as_mut(), serde_json::to_string(line)) {
            let _ = orders.write_all(format!("{text}\n").as_bytes()).and_then(|()| orders.flush());
        }
    }

    fn last_words(&self) -> String {
        // They may be on their way.
        let _ = locked(&self.driver).wait();
        thread::sleep(LOOK);
        let words = String::from_utf8_lossy(&locked(&self.words)).trim().to_owned();
        words.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The end of its orders is the order to leave.
        locked(&self.orders).take();
        let end = Instant::now() + PATIENCE;
        let mut driver = locked(&self.driver);
        while matches!(driver.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        // One that hangs holds nothing that it should not let go of.
        let _ = driver.kill().and_then(|()| driver.wait());
    }
}

/// Hears what the driver says, until it says nothing more.
fn listen(lines: impl Iterator<Item = io::Result<String>>, state: &Mutex<State>) {
    for line in lines.map_while(Result::ok) {
        let Ok(told) = serde_json::from_str(&line) else { continue };
        let mut state = locked(state);
        let (id, end) = match told {
            Told::Joining { hint } => {
                state.hint = Some(hint);
                continue;
            }
            Told::Nodes { nodes } => {
                state.nodes = Some(nodes);
                continue;
            }
            Told::Fault { message, hint } => {
                state.fault = Some((message, hint));
                continue;
            }
            Told::Ended { id, exit, document, said, result } => (id, End::Ended { exit, document, said, result }),
            Told::Lost { id, reason } => (id, End::Lost(reason)),
        };
        if let Some(waiting) = state.waiting.remove(&id) {
            let _ = waiting.send(end);
        }
    }
    let mut state = locked(state);
    state.is_over = true;
    state.waiting.clear();
}

/// Keeps the end of what the driver prints for people.
fn keep(bytes: impl Iterator<Item = io::Result<u8>>, words: &Mutex<Vec<u8>>) {
    for byte in bytes.map_while(Result::ok) {
        let mut words = locked(words);
        words.push(byte);
        if words.len() > 2 * LAST_WORDS {
            words.drain(..LAST_WORDS);
        }
    }
}

/// A thread that panicked left a whole value: each is changed by one call.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
