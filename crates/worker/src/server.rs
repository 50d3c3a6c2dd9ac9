//! The server's loop: it takes requests, forks children, reports their ends and leaves nothing behind. In between it does later imports, part by part.
//!
//! It does not know what the children compute. It runs detached from Python and attaches only to fork. It sees the end of t2t as the end of the socket,
//! whatever killed t2t. No child survives the server: each has asked the kernel to die with it.

use std::{
    io,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use libc::pid_t;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{signal::SigSet, signal::Signal, signalfd::SignalFd},
    unistd::{Pid, getpid},
};
use pyo3::prelude::*;
use t2t_protocol::{End, Finished, FromWorker, Request, ToWorker, WarmChild};

use crate::{
    apart::Namespaces,
    channel::Secret,
    child::{self, Order, Origin, Plan},
    control::{Control, Peer},
    imports::Later,
    kin::{self, Mark},
    leaving::Leaving,
    pages,
    pipes::Pipes,
    ready::{Ready, device_of},
    running_child::{Before, RunningChild},
    sandbox::Interpreter,
    warm_pool::WarmPool,
};

mod waiting;
mod endings;

/// How often running children are sampled. Also how long nothing must happen before an import starts that nobody waits for.
const TICK: Duration = Duration::from_millis(20);
/// How often the leftovers of a child are swept. Also how long to wait for another message before an import starts that somebody waits for.
const SWEEP: Duration = Duration::from_millis(2);
/// How long an action waits for a child that gets ready and would disturb it. Starting a device takes a second at most.
const GETS_READY: Duration = Duration::from_secs(30);

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Serve,
    Leave,
}

/// The fork server.
#[derive(Debug)]
pub(crate) struct Server {
    control: Control,
    signals: SignalFd,
    interpreter: Interpreter,
    namespaces: Namespaces,
    pid: Pid,
    running: Vec<RunningChild>,
    warm_pool: WarmPool,
    later: Later,
    leaving: Leaving,
    /// Messages that cannot be served yet, in order of arrival: those whose modules are not imported yet, requests whose device still holds dismissed children,
    /// and warm children that would disturb a running action.
    waiting: Vec<ToWorker>,
    /// Whether nothing has happened for a while.
    is_quiet: bool,
    /// Whether t2t sent messages in this turn: more may follow.
    has_heard: bool,
    /// Whether t2t asked for a rest that has not happened yet.
    is_to_rest: bool,
}

impl Server {
    /// Makes a server on a socket. The signals that it reads must be blocked.
    pub(crate) fn new(
        control: Control,
        signals: SignalFd,
        interpreter: Interpreter,
        namespaces: Namespaces,
        later: Later,
    ) -> io::Result<Self> {
        control.stop_blocking()?;
        let (running, warm_pool, waiting) = (Vec::new(), WarmPool::default(), Vec::new());
        let (pid, is_quiet, has_heard, is_to_rest) = (getpid(), false, false, false);
        let leaving = Leaving::default();
        Ok(Self {
            control,
            signals,
            interpreter,
            namespaces,
            pid,
            running,
            warm_pool,
            later,
            leaving,
            waiting,
            is_quiet,
            has_heard,
            is_to_rest,
        })
    }

    /// Serves until t2t has gone or asks it to stop. Then no child is left.
    pub(crate) fn run(mut self) {
        // The first turn comes before the first wait: messages that came with the hello are in the buffer already, so `poll` would not report them.
        while self.turn() == Next::Serve {
            self.wait();
        }
        self.end_everything();
    }

    fn turn(&mut self) -> Next {
        self.control.flush();
        if self.hear_signals() == Next::Leave || self.hear_client() == Next::Leave {
            return Next::Leave;
        }
        self.look_after_actions();
        // An import keeps the loop busy, so ends are reported before it. Waiting requests come after it, since it may be what they wait for.
        self.import_later();
        self.serve_waiting();
        self.notify_quiet();
        Next::Serve
    }

    /// Does the next part of the later imports, if somebody waits for it or there is nothing else to do. A part takes up to a second or two, in which the
    /// server sees nothing.
    fn import_later(&mut self) {
        if self.is_to_import() {
            self.later.advance();
        }
        if self.is_to_rest && self.later.is_over_unasked() {
            self.is_to_rest = false;
            pages::enlarge();
        }
    }

    /// Reports children that got ready, tells waiting children that they may use their device, and tells measurements that nothing disturbs them.
    fn notify_quiet(&mut self) {
        let now = Instant::now();
        self.tell_of_prepared();
        let is_on = |child: &RunningChild, device: &str| child.device.as_deref() == Some(device);
        let running = &self.running;
        self.warm_pool.let_go(now, |device| {
            let mut there = running.iter().filter(|child| is_on(child, device)).peekable();
            there.peek().is_some() && there.all(RunningChild::is_at_ease)
        });
        let is_disturbed = self.warm_pool.disturb(now, GETS_READY) || !self.leaving.is_empty();
        for child in self.running.iter_mut().filter(|child| !is_disturbed && child.awaits_quiet(now)) {
            child.tell_quiet(self.warm_pool.on_device(child.device.as_deref()));
        }
    }

    /// Tries the waiting messages again. Those that still cannot be served wait on.
    fn serve_waiting(&mut self) {
        for message in std::mem::take(&mut self.waiting) {
            match message {
                ToWorker::Run(request) => self.start(request),
                ToWorker::Prepare(warm_child) => self.prepare(warm_child),
                // No other message is ever put there.
                _ => {}
            }
        }
    }

    /// Waits for a message, a signal, output of a child, or the timeout.
    fn wait(&mut self) {
        let mut events = PollFlags::POLLIN;
        events.set(PollFlags::POLLOUT, self.control.has_unsent());
        let mut sources =
            vec![PollFd::new(self.control.as_fd(), events), PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let outputs = self.running.iter().flat_map(RunningChild::descriptors);
        sources.extend(outputs.map(|output| PollFd::new(output, PollFlags::POLLIN)));
        // A signal is no reason to fail: the next turn looks at everything.
        let has_timed_out = poll(&mut sources, self.timeout()) == Ok(0);
        self.is_quiet = has_timed_out && !self.is_sweeping();
    }

    fn timeout(&self) -> PollTimeout {
        if self.is_to_import() {
            return PollTimeout::ZERO;
        }
        let nobody_comes = self.waiting.is_empty() && !self.warm_pool.get_ready() && self.later.is_over_unasked();
        let has_nothing_to_do = self.running.is_empty() && self.leaving.is_empty() && nobody_comes;
        match (has_nothing_to_do, self.is_sweeping() || self.is_awaited()) {
            (true, _) => PollTimeout::NONE,
            (false, true) => PollTimeout::try_from(SWEEP).unwrap_or(PollTimeout::ZERO),
            (false, false) => PollTimeout::try_from(TICK).unwrap_or(PollTimeout::ZERO),
        }
    }

    /// Says whether a child has ended and left something, is ending, or waits for quiet.
    fn is_sweeping(&self) -> bool {
        let (now, is_over) = (Instant::now(), |child: &RunningChild| child.ended().is_some() || child.is_ending());
        !self.leaving.is_empty() || self.running.iter().any(|child| is_over(child) || child.awaits_quiet(now))
    }

    fn hear_signals(&mut self) -> Next {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo != Signal::SIGCHLD as u32 {
                return Next::Leave;
            }
            self.reap_orphans();
        }
        Next::Serve
    }

    fn hear_client(&mut self) -> Next {
        let peer = self.control.receive();
        self.has_heard = false;
        loop {
            let message = self.control.next_message();
            self.has_heard |= matches!(message, Ok(Some(_)));
            match message {
                Ok(Some(ToWorker::Run(request))) => self.start(request),
                Ok(Some(ToWorker::Prepare(warm_child))) => self.prepare(warm_child),
                Ok(Some(ToWorker::Cancel { id })) => self.cancel(id),
                Ok(Some(ToWorker::Dismiss { device })) => self.dismiss(&device),
                // Only noted here: later imports allocate pages, too, so the rest follows them.
                Ok(Some(ToWorker::Rest)) => self.is_to_rest = true,
                Ok(None) if peer == Peer::Present => return Next::Serve,
                // A second hello, or bytes that do not parse, break the protocol.
                Ok(Some(ToWorker::Shutdown | ToWorker::Hello(_)) | None) | Err(_) => return Next::Leave,
            }
        }
    }

    fn cancel(&mut self, id: u64) {
        let is_it = |message: &ToWorker| matches!(message, ToWorker::Run(request) if request.id == id);
        if let Some(index) = self.waiting.iter().position(is_it)
            && let ToWorker::Run(request) = self.waiting.remove(index)
        {
            self.use_up(request.reserve.as_deref());
            self.report_end(Finished::bare(id, End::Cancelled));
        }
        for child in self.running.iter_mut().filter(|child| child.id == id) {
            child.stop(End::Cancelled);
        }
    }

    /// Ends children that are ready, and forgets those that were to get ready. What is asked for next of their device waits until they hold nothing of it.
    fn dismiss(&mut self, device: &str) {
        let is_of_device = |message: &ToWorker| matches!(message, ToWorker::Prepare(warm_child) if device_of(&warm_child.environment).unwrap_or_default() == device);
        for message in self.waiting.extract_if(.., |message| is_of_device(message)).collect::<Vec<_>>() {
            if let ToWorker::Prepare(warm_child) = message {
                self.tell_prepared(warm_child.key);
            }
        }
        let now = Instant::now();
        for ready in self.warm_pool.dismiss(device) {
            self.leaving.dismiss(ready.pid, ready.mark, now, device);
        }
    }

    fn start(&mut self, request: Box<Request>) {
        if self.leaving.hold(device_of(&request.environment).as_deref()) {
            self.waiting.push(ToWorker::Run(request));
            return;
        }
        let ready = self.handed_over(&request);
        // Reported now, since the child's end may come at once, and t2t must hear of `prepared` before `finished`.
        self.tell_of_prepared();
        if ready.is_none() && !self.later.has(request.needs.as_deref()) {
            self.waiting.push(ToWorker::Run(request));
            return;
        }
        if ready.is_none() {
            self.use_up(request.reserve.as_deref());
        }
        match ready.map_or_else(|| self.fork(&request), Ok) {
            Ok(child) => {
                let started = FromWorker::Started { id: child.id, pid: child.pid };
                self.control.send(&started).expect("two numbers fit a frame");
                self.running.push(child);
            }
            Err(reason) => self.report_end(Finished::bare(request.id, End::Refused(reason))),
        }
    }

    /// Hands the request to a warm child, if there is one that takes it.
    fn handed_over(&mut self, request: &Request) -> Option<RunningChild> {
        let ready = self.warm_pool.take(request)?;
        let before = Before::handing_over(self.pid.as_raw(), ready.pid);
        Some(RunningChild::of_ready(request, ready, before))
    }

    /// Ends or forgets one child that was to serve a request which has one of its own, or was taken back: t2t, which counts them, takes each request to use one up.
    fn use_up(&mut self, key: Option<&str>) {
        let Some(key) = key.filter(|key| !self.warm_pool.end_one(key)) else { return };
        let is_alike = |message: &ToWorker| matches!(message, ToWorker::Prepare(other) if other.key == key);
        if let Some(index) = self.waiting.iter().position(is_alike) {
            self.waiting.remove(index);
            self.tell_prepared(key.to_owned());
        }
    }

    fn fork(&self, request: &Request) -> Result<RunningChild, String> {
        let before = Before::now(self.pid.as_raw());
        let (pid, mark, secret, pipes) = self.child(Order::Now(request))?;
        Ok(RunningChild::new(request, pid, mark, secret, pipes, before))
    }

    /// Forks a child that gets ready. That it cannot be is no news: its request will be told.
    fn prepare(&mut self, warm_child: WarmChild) {
        // A child with a folder of its own starts the device only when it is told to, so it can be forked beside a measurement.
        let is_held = warm_child.scratch.is_none() && self.would_disturb(&warm_child);
        if !self.later.has(warm_child.needs.as_deref()) || is_held || self.is_crowded(&warm_child) {
            self.waiting.push(ToWorker::Prepare(warm_child));
            return;
        }
        let forked = WarmPool::pipe().ok().and_then(|(orders, sink)| {
            let (pid, mark, secret, pipes) = self.child(Order::Later(&warm_child, orders)).ok()?;
            Some((pid, mark, secret, pipes, sink))
        });
        match forked {
            Some((pid, mark, secret, pipes, sink)) => {
                self.warm_pool.add(Ready::new(warm_child, pid, mark, secret, pipes, sink));
            }
            None => self.tell_prepared(warm_child.key),
        }
    }

    fn tell_of_prepared(&mut self) {
        for key in self.warm_pool.prepared() {
            self.tell_prepared(key);
        }
    }

    fn tell_prepared(&mut self, key: String) {
        self.control.send(&FromWorker::Prepared { key }).expect("a key that came in a frame fits one");
    }

    fn child(&self, order: Order<'_>) -> Result<(pid_t, Mark, Secret, Pipes), String> {
        // A fork copies the calling thread alone. A lock that another thread holds would stay locked in the child for ever.
        let threads = kin::threads_that_stay();
        if threads != 1 {
            return Err(format!("the server has {threads} threads, and only one of them would live in the child"));
        }
        let secret = Secret::draw().map_err(|error| format!("/dev/urandom: {error}"))?;
        let (pipes, ends) = Pipes::new().map_err(|error| format!("pipes: {error}"))?;
        let mark = Mark::of_slot(self.free_slot());
        let origin = Origin { server: self.pid, mark, namespaces: self.namespaces };
        let plan = Plan { order, interpreter: &self.interpreter, origin, secret, ends };
        let pid = Python::attach(|py| fork(py, plan)).map_err(|error| format!("fork: {error}"))?;
        Ok((pid, mark, secret, pipes))
    }

    fn free_slot(&self) -> usize {
        let waiting = self.warm_pool.marks().chain(self.leaving.marks());
        let marks: Vec<Mark> = self.running.iter().map(|child| child.mark).chain(waiting).collect();
        // A slot is free once no living child has its mark; otherwise the orphans of one action could be taken for another's.
        (0..marks.len()).find(|slot| !marks.contains(&Mark::of_slot(*slot))).unwrap_or(marks.len())
    }

    fn report_end(&mut self, finished: Finished) {
        let id = finished.id;
        if let Err(error) = self.control.send(&FromWorker::Finished(Box::new(finished))) {
            let short = Finished::bare(id, End::BadReply(error.to_string()));
            let short = FromWorker::Finished(Box::new(short));
            self.control.send(&short).expect("an end without its output fits a frame");
        }
    }
}

/// Forks through Python, so that its at-fork hooks run. In the child it does not return.
fn fork(py: Python<'_>, plan: Plan<'_>) -> PyResult<pid_t> {
    let pid: pid_t = py.import("os")?.call_method0("fork")?.extract()?;
    if pid == 0 {
        child::live(py, plan);
    }
    Ok(pid)
}

/// Lists the signals that the server reads from a descriptor instead of being interrupted by them.
pub(crate) fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD].into_iter().collect()
}
