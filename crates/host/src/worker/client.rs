//! The protocol from t2t's side: a hello, requests out, events in.
//!
//! It does not know processes: given a connected socket it works the same, which is how it is tested.

use std::{
    collections::BTreeSet,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::Value;
use t2t_protocol::{
    ClientHello, Finished, FrameError, FrameReader, FromWorker, Request, ServerHello, ToWorker, Unfit, VERSION,
    WarmChild, encode,
};
use thiserror::Error;

const CHUNK: usize = 16 << 10;

/// What the worker reports while it serves. [`WorkerEvent::Died`] is the last event.
#[derive(Debug)]
pub enum WorkerEvent {
    /// A child runs.
    Started {
        /// The request.
        id: u64,
        /// The child's process.
        pid: i32,
    },
    /// A child has ended and nothing of it is left.
    Finished(Box<Finished>),
    /// A warm child is ready, or never will be.
    Prepared {
        /// The key that requests name.
        key: String,
    },
    /// The server has gone. Nothing of it is left.
    Died {
        /// Why, for people.
        reason: String,
        /// The requests that will not be answered, in order.
        outstanding: Vec<u64>,
    },
}

/// Why there is no connection to a worker.
#[derive(Debug, Error)]
pub enum ClientError {
    /// It said why it cannot serve.
    #[error("{}", .0.reason)]
    Unfit(Unfit),
    /// It speaks another version of the protocol.
    #[error("its `t2t_worker` speaks version {theirs} of the worker protocol, this t2t {VERSION}")]
    Version {
        /// The version it named.
        theirs: Value,
    },
    /// It said nothing in time.
    #[error("it was not ready within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// It left before its hello.
    #[error("it ended before it was ready")]
    Ended,
    /// It has died or was shut down.
    #[error("the worker has gone")]
    Gone,
    /// What was to be sent is no frame, or what came.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The socket failed.
    #[error("the worker's socket: {0}")]
    Socket(#[from] io::Error),
}

/// The requests that have no end yet; `None` once no more can come.
type Outstanding = Arc<Mutex<Option<BTreeSet<u64>>>>;

/// The sending half. Any thread may use it.
#[derive(Debug)]
pub struct Client {
    hello: ServerHello,
    stream: Mutex<UnixStream>,
    outstanding: Outstanding,
}

/// The receiving half, for one thread.
#[derive(Debug)]
pub struct Listener {
    stream: UnixStream,
    reader: FrameReader,
    outstanding: Outstanding,
}

/// Exchanges hellos over a socket, within a time.
pub fn connect(stream: UnixStream, hello: &ClientHello, deadline: Duration) -> Result<(Client, Listener), ClientError> {
    let mut sender = stream.try_clone()?;
    let outstanding = Arc::new(Mutex::new(Some(BTreeSet::new())));
    let mut listener = Listener { stream, reader: FrameReader::default(), outstanding: Arc::clone(&outstanding) };
    send(&mut sender, &ToWorker::Hello(hello.clone()))?;
    let hello = listener.wait_for_hello(deadline)?;
    Ok((Client { hello, stream: Mutex::new(sender), outstanding }, listener))
}

/// Sends a message. If the peer has gone, the reader reports [`ClientError::Ended`]; here it is no broken pipe.
fn send(stream: &mut UnixStream, message: &ToWorker) -> Result<(), ClientError> {
    match stream.write_all(&encode(message)?) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

impl Client {
    /// Returns what the worker said first.
    #[must_use]
    pub(crate) fn hello(&self) -> &ServerHello {
        &self.hello
    }

    /// Asks for a child. Its events bear the request's id.
    pub fn submit(&self, request: Request) -> Result<(), ClientError> {
        let id = request.id;
        // Registered before it is sent, since its end may come at once.
        lock(&self.outstanding).as_mut().ok_or(ClientError::Gone)?.insert(id);
        let sent = self.send(&ToWorker::Run(Box::new(request)));
        if sent.is_err()
            && let Some(ids) = lock(&self.outstanding).as_mut()
        {
            ids.remove(&id);
        }
        sent
    }

    /// Asks for a warm child.
    pub(crate) fn prepare(&self, warm_child: WarmChild) -> Result<(), ClientError> {
        self.send(&ToWorker::Prepare(warm_child))
    }

    /// Asks to end the warm children of a device.
    pub(crate) fn dismiss(&self, device: &str) -> Result<(), ClientError> {
        self.send(&ToWorker::Dismiss { device: device.to_owned() })
    }

    /// Says that no request comes soon.
    pub(crate) fn rest(&self) -> Result<(), ClientError> {
        self.send(&ToWorker::Rest)
    }

    /// Asks to kill a child. Its end comes as always.
    pub(crate) fn cancel(&self, id: u64) -> Result<(), ClientError> {
        self.send(&ToWorker::Cancel { id })
    }

    /// Asks the server to kill everything and leave.
    pub(crate) fn ask_to_leave(&self) -> Result<(), ClientError> {
        self.send(&ToWorker::Shutdown)
    }

    fn send(&self, message: &ToWorker) -> Result<(), ClientError> {
        send(&mut lock(&self.stream), message)
    }
}

impl Listener {
    fn wait_for_hello(&mut self, patience: Duration) -> Result<ServerHello, ClientError> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(message) = self.reader.next_message()? {
                self.stream.set_read_timeout(None)?;
                return hello(message);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ClientError::Late(patience));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.read() {
                Ok(0) => return Err(ClientError::Ended),
                Err(error) if !is_timeout(&error) => return Err(error.into()),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Turns frames into events until the server has gone. Then `autopsy` kills what it left and says why it died.
    pub fn listen(mut self, sink: impl Fn(WorkerEvent), autopsy: impl FnOnce() -> String) {
        let broken = self.pass_on(&sink).err();
        let outstanding = lock(&self.outstanding).take().unwrap_or_default();
        let cause = autopsy();
        let reason = broken.map_or(cause.clone(), |error| format!("{error}; {cause}"));
        sink(WorkerEvent::Died { reason, outstanding: outstanding.into_iter().collect() });
    }

    fn pass_on(&mut self, sink: &impl Fn(WorkerEvent)) -> Result<(), ClientError> {
        loop {
            while let Some(message) = self.reader.next_message()? {
                if let Some(event) = self.event(message) {
                    sink(event);
                }
            }
            if self.read()? == 0 {
                return Ok(());
            }
        }
    }

    fn event(&self, message: FromWorker) -> Option<WorkerEvent> {
        match message {
            FromWorker::Started { id, pid } => Some(WorkerEvent::Started { id, pid }),
            FromWorker::Finished(finished) => {
                lock(&self.outstanding).as_mut()?.remove(&finished.id);
                Some(WorkerEvent::Finished(finished))
            }
            FromWorker::Prepared { key } => Some(WorkerEvent::Prepared { key }),
            // A hello comes first or not at all.
            FromWorker::Hello(_) | FromWorker::Unfit(_) | FromWorker::Forked { .. } => None,
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut chunk = [0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(count) => {
                    self.reader.push(&chunk[..count]);
                    return Ok(count);
                }
                // A server that was killed with unread requests in its socket resets it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads the first message. The version is checked before the rest is parsed, since another version's message may look different.
fn hello(message: Value) -> Result<ServerHello, ClientError> {
    if let Some(hello) = message.get("hello") {
        let theirs = hello["version"].clone();
        if theirs != VERSION {
            return Err(ClientError::Version { theirs });
        }
    }
    match serde_json::from_value(message).map_err(FrameError::Json)? {
        FromWorker::Hello(hello) => Ok(*hello),
        FromWorker::Unfit(unfit) => Err(ClientError::Unfit(unfit)),
        FromWorker::Started { .. }
        | FromWorker::Finished(_)
        | FromWorker::Prepared { .. }
        | FromWorker::Forked { .. } => Err(ClientError::Ended),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A thread that panicked while it held a lock left a whole value: each is changed by one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
