//! The dispatcher of a process, shared by the loop of a build and the threads of its actions.
//!
//! What becomes of children is told to it here, and what it says about them is carried out. It does not know what children compute.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use t2t_host::pool::{Cancel, NoCall, Pool, Serving};
use t2t_plan::dispatcher::{Beginning, Call, Command, Dispatcher, Event, Server, Wanted, of_a_check};
use t2t_plan::functions::{Function, Queues};
use t2t_protocol::{Arguments, Finished, OfCheck, Part, Request, ServerKind, WarmChild};
use t2t_store::fs;

use super::job::Job;
use super::warm_pool;

/// The dispatcher. Clones are the same one.
#[derive(Debug, Clone)]
pub struct SharedDispatcher {
    dispatcher: Arc<Mutex<Dispatcher>>,
    granted: Arc<Mutex<BTreeMap<(ServerKind, String), Granted>>>,
    /// What is known of the next check on the interpreter, if it is of the same variant as the last one.
    likely: Arc<Mutex<Option<Arguments>>>,
}

/// The files and folders that a child may open. A sandbox grants those themselves, and not what takes their place.
type Granted = Vec<Option<(u64, u64)>>;

impl Default for SharedDispatcher {
    /// Returns one for calls that belong to no build.
    fn default() -> Self {
        Self::new(1, 0, 0)
    }
}

impl SharedDispatcher {
    /// Returns the dispatcher of a machine of which nothing is in use: `jobs` slots on the CPU, so many devices, and places on cores that others lend.
    #[must_use]
    pub(super) fn new(jobs: usize, devices: usize, lent: usize) -> Self {
        let dispatcher = Dispatcher::new(jobs, devices).lent(lent);
        Self { dispatcher: Arc::new(Mutex::new(dispatcher)), granted: Arc::default(), likely: Arc::default() }
    }

    /// Begins a build.
    pub(super) fn begin(&self, beginning: &Beginning<'_>) -> Vec<Command> {
        self.dispatcher().begin(beginning)
    }

    /// Tells it what happened, and returns what is to be done.
    pub(super) fn handle(&self, event: Event<'_>) -> Vec<Command> {
        self.dispatcher().handle(event)
    }

    /// Asks it something.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&Dispatcher) -> T) -> T {
        question(&self.dispatcher())
    }

    /// Tells it how far the server for devices has come with the children that get ready there.
    pub(super) fn hear_devices(&self, pool: &Pool) {
        let kind = ServerKind::Device;
        let Some(heard) = pool.heard(kind) else { return };
        let server = Server { kind, serial: heard.serial };
        let event = if heard.is_gone { Event::Gone(server) } else { Event::Prepared(server, heard.prepared) };
        self.handle(event);
    }

    /// Has a child call `function` for `job`, and others get ready beside it. Once `cancel` is set nothing is called.
    pub(super) fn call(
        &self,
        pool: &Pool,
        job: &Job,
        (function, queues): (&'static Function, Queues),
        request: Request,
        cancel: &Cancel,
    ) -> Result<Finished, NoCall> {
        let (kind, caller) = (job.kind, warm_pool::caller(job));
        let granted = caller.stays(function).then(|| granted(&request));
        if let Some(granted) = &granted {
            self.renew(pool, job, granted);
        }
        let mut begun = None;
        let ended = pool.call(kind, request, cancel, |serving, id| {
            let call = Call { server: server(kind, serving), id };
            begun = Some(call);
            let commands = self.handle(Event::Called { call, caller, function, queues });
            make(serving, commands, |key| {
                warm_pool::for_device(job.device.as_deref().unwrap_or_default(), job.spare.as_ref(), key)
            });
        });
        if let Some(call) = begun {
            let has_stayed = matches!(&ended, Ok(Finished { stayed: true, .. }));
            self.handle(Event::Returned { call, has_stayed });
            // It served beside one that may open other files, which were there later or sooner.
            if let Some(granted) = granted.filter(|_| has_stayed) {
                self.renew(pool, job, &granted);
            }
        }
        if cancel.is_set() { Err(NoCall::Cancelled) } else { ended }
    }

    /// Has children get ready at the server of `kind`, starting it where it does not run; `warm_child` says how those of a key do.
    pub(super) fn keep_ready(
        &self,
        pool: &Pool,
        kind: ServerKind,
        wanted: &Wanted,
        warm_child: impl Fn(String) -> WarmChild,
    ) -> Result<(), NoCall> {
        let serving = pool.serving(kind)?;
        let Wanted { key, most } = wanted;
        let commands = self.handle(Event::Wanted { server: server(kind, &serving), key, most: *most });
        make(&serving, commands, warm_child);
        Ok(())
    }

    /// Has children ready for the next check on the interpreter, its candidate and its judge, once its server runs. For when nothing is to be done: they take time of the
    /// cores while they get ready. With the `salt` of that check the candidate's child draws its inputs, where the check is of the same variant as the last one.
    pub(crate) fn prepare_a_check(&self, pool: &Pool, salt: Option<&str>) -> Result<(), NoCall> {
        let (kind, [candidate, judge]) = (ServerKind::Interpreter, of_a_check());
        let likely = self.likely.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let likely = likely
            .zip(salt)
            .map(|(likely, salt)| json!(Arguments { part: Part::Check(OfCheck { salt: salt.to_owned() }), ..likely }));
        self.keep_ready(pool, kind, &candidate, |key| warm_pool::for_a_check(key, json!(likely)))?;
        self.keep_ready(pool, kind, &judge, |key| warm_pool::for_a_check(key, Value::Null))
    }

    /// Takes what a check on the interpreter came to know of the next one of its variant.
    pub(super) fn note_likely(&self, likely: Arguments) {
        *self.likely.lock().unwrap_or_else(PoisonError::into_inner) = Some(likely);
    }

    /// Ends the children that wait, some of which stayed, if files or folders that those may open were replaced: by a branch that was checked out, say, or a bundle that was laid out.
    fn renew(&self, pool: &Pool, job: &Job, granted: &Granted) {
        let device = job.device.clone().unwrap_or_default();
        let mut known = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.insert((job.kind, device.clone()), granted.clone());
        if before.is_some_and(|before| before != *granted)
            && self.handle(Event::Lacked(job.kind, &device)).contains(&Command::Dismiss)
        {
            pool.dismiss(job.kind, &device);
        }
    }

    /// Ends the children that wait for the device of `job`, which lacked something there: it may have been theirs as well.
    pub(super) fn dismiss_for(&self, job: &Job, pool: &Pool) {
        let Some(device) = &job.device else { return };
        if self.handle(Event::Lacked(job.kind, device)).contains(&Command::Dismiss) {
            pool.dismiss(job.kind, device);
        }
    }

    /// A thread that panicked while it held the lock broke a rule of the dispatcher's own, and has said so.
    fn dispatcher(&self) -> MutexGuard<'_, Dispatcher> {
        self.dispatcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what the child of a request may open.
fn granted(request: &Request) -> Granted {
    let paths = request.sandbox.iter().flat_map(|sandbox| sandbox.read.iter().chain(&sandbox.write));
    paths.map(|path| fs::identity(path.as_ref())).collect()
}

fn server(kind: ServerKind, serving: &Serving) -> Server {
    Server { kind, serial: serving.serial() }
}

/// Has a server make the children that the dispatcher says.
fn make(serving: &Serving, commands: Vec<Command>, warm_child: impl Fn(String) -> WarmChild) {
    for command in commands {
        if let Command::Prepare(key, count) = command {
            let warm_child = warm_child(key);
            (0..count).for_each(|_| serving.prepare(warm_child.clone()));
        }
    }
}
