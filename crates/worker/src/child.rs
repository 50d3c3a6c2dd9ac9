//! What the child does, from the fork to its `_exit`.
//!
//! It does not know how it is watched. It runs in the server's own stack frame, so it must never return from it: whatever happens, a panic too, ends in
//! `_exit`.

use std::{
    fs,
    os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    sched::{CpuSet, sched_setaffinity},
    sys::{
        prctl::set_pdeathsig,
        resource::{Resource, getrlimit, setrlimit},
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
    },
    unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, getpid, getppid, setsid},
};
use pyo3::{exceptions::PySystemExit, prelude::*, types::PyModule};
use serde_json::Value;
use t2t_protocol::{Request, WarmChild};

use crate::{
    apart::{self, Namespaces},
    channel::{self, Answer, Secret},
    convert, environment, kin,
    kin::Mark,
    orders::{self, ORDERS, Orders},
    pipes::Ends,
    powers,
    sandbox::{self, Interpreter},
};

/// Where the reply pipe lies in the child.
const CHANNEL: RawFd = 3;
const OPEN_FILES: u64 = 4096;
const FILE_BYTES: u64 = 64 << 30;
/// Limit on processes and threads of a user who is not root. The server counts processes for every user.
const TASKS: u64 = 8192;
/// How much more a process may map writable than it may hold: thread stacks and allocators reserve more than they use.
const RESERVED: u64 = 4 << 30;
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

/// Separates the process from the server. The channel is opened early, so that later failures are reported.
fn detach(origin: Origin, ends: Ends, orders: Option<OwnedFd>, secret: Secret) -> Result<(), String> {
    let Origin { server, mark, namespaces } = origin;
    own_session(server)?;
    mark.put_on();
    take_descriptors(ends, orders, secret)?;
    own_signals()?;
    if namespaces == Namespaces::Own {
        apart::enter()?;
    }
    // Capabilities belong to a thread, and a device's driver starts threads while the child gets ready, so they are dropped now. Those of its own namespace are
    // kept until its walls need them.
    if apart::is_apart() { Ok(()) } else { drop_powers() }
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

/// Leaves the server's group, and asks to die with the server. The parent is compared because it may have died before it was asked.
fn own_session(server: Pid) -> Result<(), String> {
    setsid().map_err(|error| format!("setsid: {error}"))?;
    set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("pdeathsig: {error}"))?;
    if getppid() != server {
        kin::kill(getpid().as_raw());
    }
    Ok(())
}

/// Keeps four descriptors: an empty input, the two outputs, the channel. The control socket must not reach kernel code.
fn take_descriptors(ends: Ends, orders: Option<OwnedFd>, secret: Secret) -> Result<(), String> {
    let Ends { stdout, stderr, reply } = ends;
    let null = fs::File::open("/dev/null").map_err(|error| format!("/dev/null: {error}"))?;
    let moved = dup2_stdin(null.as_fd()).and_then(|()| dup2_stdout(&stdout)).and_then(|()| dup2_stderr(&stderr));
    moved.map_err(|error| format!("dup2: {error}"))?;
    // Both are moved beyond the numbers that they get below: otherwise the `dup3` of one could close the other.
    let (reply, orders) = (beyond(reply)?, orders.map(beyond).transpose()?);
    let raw = reply.as_raw_fd();
    // They are closed by number below; closing them again on drop would be a double close.
    for descriptor in [null.into(), stdout, stderr, reply] {
        std::mem::forget::<OwnedFd>(descriptor);
    }
    let last = if orders.is_some() { ORDERS } else { CHANNEL };
    // SAFETY: the numbers name descriptors that nothing in this process uses from here on.
    let channel = unsafe {
        let ordered = orders.is_none_or(|orders| libc::dup3(orders.into_raw_fd(), ORDERS, libc::O_CLOEXEC) == ORDERS);
        let moved = ordered && libc::dup3(raw, CHANNEL, libc::O_CLOEXEC) == CHANNEL;
        let first = libc::c_uint::try_from(last + 1).unwrap_or(libc::c_uint::MAX);
        let closed = libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) == 0;
        if !moved || !closed {
            return Err(format!("descriptors: {}", std::io::Error::last_os_error()));
        }
        OwnedFd::from_raw_fd(CHANNEL)
    };
    channel::open(channel, secret);
    Ok(())
}

/// Moves a descriptor to a number that is none of those that a child keeps.
fn beyond(descriptor: OwnedFd) -> Result<OwnedFd, String> {
    let moved = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(ORDERS + 1)).map_err(|error| format!("dup: {error}"))?;
    drop(descriptor);
    // SAFETY: the number was given out just now.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}

/// Restores the signals that the server changed. Python's handler of SIGINT was inherited from it, too.
fn own_signals() -> Result<(), String> {
    // SAFETY: SIG_DFL is no function that could be called.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(|error| format!("sigprocmask: {error}"))
}

fn set_limits(request: &Request) -> Result<(), String> {
    lower(Resource::RLIMIT_CORE, 0)?;
    lower(Resource::RLIMIT_NOFILE, OPEN_FILES)?;
    lower(Resource::RLIMIT_FSIZE, FILE_BYTES)?;
    // In a namespace of its own the child's tasks are counted alone; elsewhere all of the user's are.
    if apart::is_apart() {
        lower(Resource::RLIMIT_NPROC, TASKS)?;
    }
    // The limit counts the whole process, so a child that stays would spend one request's limit on all of them: it gets none.
    if let Some(milliseconds) = request.limits.cpu_ms.filter(|_| !request.stays) {
        // Time spent on getting ready does not count. This is a spare: the server samples more often, and all threads and descendants together. The system
        // counts whole ticks here, which on a busy machine exceed the time that a process had; at less than twice the limit it could fire before the server
        // does. SIGXCPU, which names the reason, comes before SIGKILL, which does not.
        let seconds = kin::own_cpu().as_secs() + 2 * milliseconds.div_ceil(1000) + 1;
        limit(Resource::RLIMIT_CPU, seconds, seconds + 2)?;
    }
    if let Some(bytes) = request.limits.memory_bytes {
        lower(Resource::RLIMIT_DATA, kin::own_data().saturating_add(bytes).saturating_add(RESERVED))?;
    }
    Ok(())
}

/// Moves the child, with all threads that it will start, to its cores. A refusal costs only time, so it is no error.
fn move_to_cores(cores: Option<&[usize]>) {
    if let Some(cores) = cores {
        let mut set = CpuSet::new();
        // A number beyond the set's size cannot be a core that the server may use.
        for core in cores {
            let _ = set.set(*core);
        }
        sched_setaffinity(Pid::from_raw(0), &set).ok();
    }
}

fn give_way(request: &Request) {
    if let Some(nice) = request.limits.nice {
        // SAFETY: setpriority takes three numbers; 0 is this process.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    }
}

fn lower(resource: Resource, value: u64) -> Result<(), String> {
    limit(resource, value, value)
}

fn limit(resource: Resource, soft: u64, hard: u64) -> Result<(), String> {
    let failed = |error| format!("{resource:?}: {error}");
    let (_, most) = getrlimit(resource).map_err(failed)?;
    setrlimit(resource, soft.min(most), hard.min(most)).map_err(failed)
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
