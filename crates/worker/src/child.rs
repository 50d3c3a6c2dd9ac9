//! What the child does, from the fork to its `_exit`.
//!
//! It does not know how it is watched. It runs in the server's own stack frame, so it must never return from it: whatever happens, a panic too, ends in
//! `_exit`.

use std::{
    os::fd::OwnedFd,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::unistd::{Pid, chdir};
use pyo3::{exceptions::PySystemExit, prelude::*, types::PyModule};
use serde_json::Value;
use t2t_protocol::{Request, WarmChild};

use crate::{
    apart::Namespaces,
    channel::{self, Answer, Secret},
    convert, environment, imports,
    kin::Mark,
    orders::{self, Orders},
    pipes::Ends,
    powers,
    sandbox::{self, Interpreter},
};

mod detached;
mod limits;

use self::detached::detach;
use self::limits::{give_way, move_to_cores, set_limits};

/// The length at which an exception's text is cut: the traceback of a deep recursion is long.
const TEXT: usize = 64 << 10;

/// Where a child gets its request.
#[derive(Debug)]
pub(crate) enum Order<'a> {
    /// The request is known at the fork.
    Now(&'a Request),
    /// The request comes through a pipe, once the child is ready.
    Later(&'a WarmChild, OwnedFd),
}

/// The child's parent, and its identity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub server: Pid,
    /// The mark of its descendants.
    pub mark: Mark,
    /// Whether it gets its own.
    pub namespaces: Namespaces,
}

/// What the server prepares for a child before the fork.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub order: Order<'a>,
    pub interpreter: &'a Interpreter,
    pub origin: Origin,
    pub secret: Secret,
    pub ends: Ends,
}

/// Lives the child's life. Called right after the fork, attached to Python.
pub(crate) fn live(py: Python<'_>, plan: Plan<'_>) -> ! {
    let code = catch_unwind(AssertUnwindSafe(|| run(py, plan))).unwrap_or_else(|_| {
        channel::answer(&Answer::Refused("the worker's own code panicked in the child".to_owned()));
        1
    });
    // SAFETY: _exit takes a number. Destructors and at-exit handlers belong to the server, whose copy this is.
    unsafe { libc::_exit(code) }
}

/// Returns the exit code.
fn run(py: Python<'_>, plan: Plan<'_>) -> i32 {
    let Plan { order, interpreter, origin, secret, ends } = plan;
    imports::collect_again(py).ok();
    match order {
        Order::Now(request) => {
            let settled = detach(origin, ends, None, secret);
            let settled = settled.and_then(|()| shut_in(request, interpreter, None));
            serve(py, request, interpreter, settled).code()
        }
        Order::Later(warm_child, orders) => {
            let detached = detach(origin, ends, Some(orders), secret);
            if let Err(reason) = detached.and_then(|()| get_ready(py, warm_child)) {
                // If a request was handed over meanwhile this is its end; otherwise nobody reads it.
                channel::answer(&Answer::Refused(format!("the child did not get ready: {reason}")));
                return 1;
            }
            channel::ready();
            serve_all(py, interpreter, warm_child.scratch.as_deref())
        }
    }
}

/// Serves requests from the pipe as long as they let the child stay, and returns the exit code. Threads and processes that it has started may still write to
/// the folder in which it got ready.
fn serve_all(py: Python<'_>, interpreter: &Interpreter, folder: Option<&str>) -> i32 {
    let mut orders = Orders::open();
    let mut is_shut_in = false;
    loop {
        // The pipe is closed: no request will come.
        let Some(request) = orders.next() else { return 1 };
        if !request.stays {
            // Closed, so that kernel code finds no pipe.
            drop(orders);
            let settled = shut_in(&request, interpreter, folder);
            return serve(py, &request, interpreter, settled).code();
        }
        let settled = if is_shut_in { move_in(&request) } else { shut_in(&request, interpreter, folder) };
        is_shut_in = true;
        match serve(py, &request, interpreter, settled) {
            Served::Replied => {}
            ended @ Served::Ended(_) => return ended.code(),
        }
    }
}

/// How a request was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// The function returned a reply.
    Replied,
    /// Otherwise: the exit code.
    Ended(i32),
}

impl Served {
    fn code(self) -> i32 {
        match self {
            Self::Replied => 0,
            Self::Ended(code) => code,
        }
    }
}

/// Calls the function of a request and answers. If `settled` is an error, that is the answer.
fn serve(py: Python<'_>, request: &Request, interpreter: &Interpreter, settled: Result<(), String>) -> Served {
    let prepare = || environment::prepare(py, request, interpreter).map_err(|error| error_text(py, &error));
    let function = match settled.and_then(|()| prepare()) {
        Ok(function) => function,
        Err(reason) => {
            channel::answer(&Answer::Refused(reason));
            return Served::Ended(1);
        }
    };
    let (answer, code) = match convert::to_python(py, &request.arguments) {
        Ok(arguments) => {
            channel::began();
            call(py, &function, arguments)
        }
        Err(error) => (Answer::Refused(error_text(py, &error)), 1),
    };
    if !channel::is_owner() {
        // A process that kernel code forked returned to here. Only the child itself may answer.
        return Served::Ended(0);
    }
    flush(py);
    channel::answer(&answer);
    if matches!(answer, Answer::Reply(_)) { Served::Replied } else { Served::Ended(code) }
}

fn call(py: Python<'_>, function: &Bound<'_, PyAny>, arguments: Bound<'_, PyAny>) -> (Answer, i32) {
    match function.call1((arguments,)) {
        Ok(reply) => (convert::to_json(&reply).map_or_else(Answer::Bad, Answer::Reply), 0),
        Err(error) if error.is_instance_of::<PySystemExit>(py) => {
            let code = exit_code(py, &error);
            (Answer::Exit(code), code)
        }
        Err(error) => (raised(py, &error), 0),
    }
}

/// Reads the code of a `SystemExit` as Python does: none is 0, and anything that is no number is printed and 1.
fn exit_code(py: Python<'_>, error: &PyErr) -> i32 {
    let Ok(code) = error.value(py).getattr("code") else { return 1 };
    if code.is_none() {
        return 0;
    }
    code.extract::<i32>().map_or_else(
        |_| {
            eprintln!("{code}");
            1
        },
        |code| code & 0xff,
    )
}

fn raised(py: Python<'_>, error: &PyErr) -> Answer {
    let kind = error.get_type(py);
    let name = kind.qualname().map_or_else(|_| "Exception".to_owned(), |name| name.to_string());
    let module = kind.module().map_or_else(|_| "builtins".to_owned(), |module| module.to_string());
    let kind = if module == "builtins" { name } else { format!("{module}.{name}") };
    let message = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned());
    Answer::Raised { kind, message: cut(message), traceback: cut(error_text(py, error)) }
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT {
        let start = text.ceil_char_boundary(text.len() - TEXT);
        text.replace_range(..start, "[…] ");
    }
    text
}

/// Formats an exception as Python prints it; short where even that fails.
fn error_text(py: Python<'_>, error: &PyErr) -> String {
    let format = || -> PyResult<String> {
        // Before 3.12 an error that was fetched holds its traceback beside the exception; this puts it back.
        let exception = error.clone_ref(py).into_value(py);
        let lines: Vec<String> = py.import("traceback")?.call_method1("format_exception", (exception,))?.extract()?;
        Ok(lines.concat())
    };
    format().unwrap_or_else(|_| error.to_string())
}

fn drop_powers() -> Result<(), String> {
    powers::drop_all().map_err(|error| format!("capabilities: {error}"))
}

/// Does the slow work before there is a request. No wall is up yet, so no kernel code may run here.
fn get_ready(py: Python<'_>, warm_child: &WarmChild) -> Result<(), String> {
    move_to_cores(warm_child.cores.as_deref());
    if let Some(folder) = &warm_child.scratch {
        chdir(Path::new(folder)).map_err(|error| format!("scratch folder `{folder}`: {error}"))?;
    }
    let ready = || -> PyResult<()> {
        environment::replace(py, &warm_child.environment, warm_child.scratch.as_deref().unwrap_or("/nonexistent"))?;
        let (module, name) = warm_child.function.split_once(':').unwrap_or((&warm_child.function, "main"));
        let function = PyModule::import(py, module)?.getattr(name)?;
        match &warm_child.arguments {
            Value::Null => function.call0().map(drop),
            arguments => function.call1((convert::to_python(py, arguments)?,)).map(drop),
        }
    };
    GETS_READY.store(true, Ordering::Relaxed);
    let done = ready().map_err(|error| error_text(py, &error));
    GETS_READY.store(false, Ordering::Relaxed);
    done
}

/// Whether this process gets ready for a request.
static GETS_READY: AtomicBool = AtomicBool::new(false);

/// Says whether this process still gets ready although its request has come, or can no longer come. Then it should skip whatever it can.
pub(crate) fn is_awaited() -> bool {
    if !GETS_READY.load(Ordering::Relaxed) {
        return false;
    }
    orders::is_there()
}

/// Puts up the walls around a request.
fn shut_in(request: &Request, interpreter: &Interpreter, folder: Option<&str>) -> Result<(), String> {
    set_limits(request)?;
    let scratch = Path::new(&request.scratch);
    if let Some(sandbox) = &request.sandbox {
        sandbox::keep_writing_in(sandbox, scratch, folder.map(Path::new))?;
    }
    // The working folder still lies in the old mount; changing into it again enters the new one.
    move_in(request)?;
    drop_powers()?;
    match &request.sandbox {
        Some(sandbox) => sandbox::enter(sandbox, interpreter, scratch),
        None => Ok(()),
    }
}

/// Changes into the request's scratch folder.
fn move_in(request: &Request) -> Result<(), String> {
    move_to_cores(request.limits.cores.as_deref());
    give_way(request);
    chdir(Path::new(&request.scratch)).map_err(|error| format!("scratch folder `{}`: {error}", request.scratch))
}

/// Flushes the buffers of Python and of C. Kernel code may have replaced the streams, so failures are ignored.
fn flush(py: Python<'_>) {
    for name in ["stdout", "stderr"] {
        let stream = py.import("sys").and_then(|sys| sys.getattr(name));
        stream.and_then(|stream| stream.call_method0("flush")).ok();
    }
    // SAFETY: a null stream stands for all of them.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}
