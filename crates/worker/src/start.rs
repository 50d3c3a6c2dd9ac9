//! From the first line of Python to a server that can fork: the socket, the hello, the first imports.
//!
//! It does not know which modules matter; t2t names them. It runs no tensor operation and touches no device.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    thread::{self, JoinHandle},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl::set_child_subreaper,
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::{dup2_stdin, getpid, pipe2},
};
use pyo3::prelude::*;
use serde_json::Value;
use t2t_protocol::{ClientHello, FromWorker, Missing, ServerHello, ServerKind, ToWorker, Unfit, UnfitReason, VERSION};

use crate::{
    apart::{self, Namespaces},
    control::Control,
    imports::{self, Later},
    kin,
    sandbox::{self, Interpreter},
    server::{Server, signals},
    spare::{self, Ends, Side},
};

/// The modules that every child uses; imported once.
const OWN: [&str; 4] = ["faulthandler", "gc", "tempfile", "traceback"];

/// Serves t2t over standard input.
pub(crate) fn serve(py: Python<'_>) -> PyResult<Infallible> {
    let mut socket = take_stdin()?;
    let namespaces = apart::tried();
    loop {
        let watched = socket.try_clone()?;
        let mut control = Control::new(socket);
        match prepare(py, &mut control, &watched, namespaces) {
            Ok(Prepared::Server(ready)) => {
                let Ready { hello, signals, interpreter, later } = *ready;
                drop(watched);
                control.send(&FromWorker::Hello(Box::new(hello))).map_err(io::Error::other)?;
                let server = Server::new(control, signals, interpreter, namespaces, later)?;
                py.detach(|| server.run());
                kin::leave(0)
            }
            // In the process that was forked. What it has of the other's socket is closed here: only that one may keep it open.
            Ok(Prepared::Spare(own)) => socket = own,
            Err(unfit) => {
                control.send(&FromWorker::Unfit(unfit)).map_err(io::Error::other)?;
                kin::leave(1)
            }
        }
    }
}

/// Moves the socket away from standard input, where anything may read it.
fn take_stdin() -> io::Result<OwnedFd> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(socket)
}

/// What a process has become once its imports are done.
enum Prepared {
    /// The server that the hello asked for.
    Server(Box<Ready>),
    /// One that was forked on the way, with a socket of its own.
    Spare(OwnedFd),
}

/// All that the server needs beside the socket.
struct Ready {
    hello: ServerHello,
    signals: SignalFd,
    interpreter: Interpreter,
    later: Later,
}

fn prepare(py: Python<'_>, control: &mut Control, socket: &OwnedFd, namespaces: Namespaces) -> Result<Prepared, Unfit> {
    let client = client_hello(control)?;
    let start = || -> PyResult<Prepared> {
        if let Some(last) = &client.fork_after
            && let Side::Spare(own) = fork_after(py, &client, last, socket)?
        {
            return Ok(Prepared::Spare(own));
        }
        set_child_subreaper(true).map_err(io::Error::from)?;
        signals().thread_block().map_err(io::Error::from)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&signals(), flags).map_err(io::Error::from)?;
        let watch = Watch::start(socket.try_clone()?)?;
        let missing = import_all(py, &client)?;
        watch.stop();
        let hello = server_hello(py, &client, missing, namespaces)?;
        let interpreter = Interpreter::of(py, client.harness.as_ref().map(PathBuf::from))?;
        let later = Later::new(client.later, client.asked);
        Ok(Prepared::Server(Box::new(Ready { hello, signals, interpreter, later })))
    };
    start().map_err(|error| Unfit { kind: UnfitReason::Start, reason: describe(py, &error) })
}

/// Imports the entries of `preload` up to `last`, then forks. An entry that fails does so again in either process, which tells of it.
fn fork_after(py: Python<'_>, client: &ClientHello, last: &str, socket: &OwnedFd) -> PyResult<Side> {
    let ends = Ends::take()?;
    let count = client.preload.iter().position(|name| name == last).map_or(0, |place| place + 1);
    let watch = Watch::start(socket.try_clone()?)?;
    begin(py, client)?;
    imports::all(py, &client.preload[..count], false);
    imports::freeze(py)?;
    watch.stop();
    spare::fork(py, ends)
}

/// Reads the first message. Its version is looked at before the rest of it, which may be another's.
fn client_hello(control: &mut Control) -> Result<ClientHello, Unfit> {
    let start = |reason| Unfit { kind: UnfitReason::Start, reason };
    let message: Value = control.wait().map_err(|error| start(format!("no hello from t2t: {error}")))?;
    let version = &message["hello"]["version"];
    if *version != VERSION {
        let reason = format!("t2t speaks version {version} of the worker protocol, this module {VERSION}");
        return Err(Unfit { kind: UnfitReason::Version, reason });
    }
    match serde_json::from_value(message) {
        Ok(ToWorker::Hello(hello)) => Ok(hello),
        Ok(_) => Err(start("the first message is not a hello".to_owned())),
        Err(error) => Err(start(format!("the hello of t2t does not parse: {error}"))),
    }
}

/// Ends the process when t2t goes while modules are imported, which takes seconds and cannot be interrupted. It is a
/// thread, so it must be gone before the first fork.
struct Watch {
    stop: OwnedFd,
    thread: JoinHandle<()>,
}

impl Watch {
    fn start(socket: OwnedFd) -> io::Result<Self> {
        let (stopped, stop) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let thread = thread::Builder::new().name("t2t-watch".to_owned()).spawn(move || {
            let mut sources = [&socket, &stopped].map(|source| PollFd::new(source.as_fd(), PollFlags::empty()));
            poll(&mut sources, PollTimeout::NONE).ok();
            let [t2t, stop] = sources.map(|source| source.any() == Some(true));
            if t2t && !stop {
                kin::leave(1)
            }
        })?;
        Ok(Self { stop, thread })
    }

    fn stop(self) {
        drop(self.stop);
        // A panic in it would have been a poll that failed; the loop sees the end of the socket anyway.
        self.thread.join().ok();
    }
}

/// Imports what the children will use. A module that fails is no reason not to serve: t2t asks what there is.
fn import_all(py: Python<'_>, client: &ClientHello) -> PyResult<Vec<Missing>> {
    begin(py, client)?;
    py.import("os")?.getattr("environ")?.set_item("TRITON_INTERPRET", client.kind.triton_interpret())?;
    // Elsewhere Triton's key is the harness's own (`triton/normalize.py`), and torch's compiler, which asks for Triton's, does not run.
    let reads_triton = client.kind == ServerKind::Device;
    let failed = imports::all(py, &client.preload, reads_triton).into_iter();
    let missing = failed.map(|(module, error)| Missing { module, reason: describe(py, &error) }).collect();
    imports::freeze(py)?;
    Ok(missing)
}

/// Does what comes before any import that t2t names. A second time, in a process that was forked, it changes nothing.
fn begin(py: Python<'_>, client: &ClientHello) -> PyResult<()> {
    imports::stop_collecting(py)?;
    // A server with a second thread cannot fork, and OpenBLAS starts its threads when it is loaded.
    py.import("os")?.getattr("environ")?.set_item("OPENBLAS_NUM_THREADS", "1")?;
    let path = py.import("sys")?.getattr("path")?;
    if let Some(harness) = &client.harness
        && !path.contains(harness)?
    {
        path.call_method1("insert", (0, harness))?;
    }
    for module in OWN {
        py.import(module)?;
    }
    Ok(())
}

fn server_hello(
    py: Python<'_>,
    client: &ClientHello,
    missing: Vec<Missing>,
    namespaces: Namespaces,
) -> PyResult<ServerHello> {
    let sys = py.import("sys")?;
    let version = Python::version_str();
    Ok(ServerHello {
        version: VERSION,
        kind: client.kind,
        worker: env!("CARGO_PKG_VERSION").to_owned(),
        pid: getpid().as_raw(),
        python: version.split_whitespace().next().unwrap_or(version).to_owned(),
        executable: sys.getattr("executable")?.extract()?,
        path: sys.getattr("path")?.extract()?,
        packages: packages(py, &client.preload)?,
        missing,
        landlock: sandbox::landlock(),
        namespaces: namespaces == Namespaces::Own,
    })
}

fn packages(py: Python<'_>, modules: &[String]) -> PyResult<BTreeMap<String, String>> {
    let loaded = py.import("sys")?.getattr("modules")?;
    let mut packages = BTreeMap::new();
    for module in modules {
        let name = module.split('.').next().unwrap_or(module);
        let version = loaded.call_method1("get", (name,))?.getattr("__version__");
        if let Ok(version) = version {
            packages.insert(name.to_owned(), version.str()?.to_string());
        }
    }
    Ok(packages)
}

fn describe(py: Python<'_>, error: &PyErr) -> String {
    let kind = error.get_type(py);
    let kind = kind.qualname().map_or_else(|_| "Exception".to_owned(), |name| name.to_string());
    format!("{kind}: {}", error.value(py))
}
