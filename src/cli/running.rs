//! What a signal stops: the servers of the sessions that a command has open.
//!
//! It does not know what runs in them.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use t2t_host::interrupt::{Interrupt, Then};
use t2t_host::pool::Pool;

use super::error::CliError;
use super::streams;

/// What is said of a signal where nothing runs.
const INTERRUPTED: &str = "interrupted";

/// What is said of a signal where something runs.
pub(crate) const STOPPING: &str =
    "interrupted: what runs is stopped, what was finished is kept; once more ends t2t at once";

/// The servers that a signal stops.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Held>);

#[derive(Debug, Default)]
struct Held {
    pools: Mutex<Vec<Arc<Pool>>>,
    /// What ends them.
    ending: Mutex<Vec<JoinHandle<()>>>,
}

impl Running {
    /// Has a signal stop these, too.
    pub(crate) fn hold(&self, pool: &Arc<Pool>) {
        lock(&self.0.pools).push(Arc::clone(pool));
    }

    /// Has a signal stop none of those that were held.
    pub(crate) fn let_go(&self) {
        lock(&self.0.pools).clear();
    }

    /// Ends those that are held, while something else goes on: nothing is asked of them any more.
    pub(crate) fn end_beside(&self) {
        let pools = lock(&self.0.pools).clone();
        lock(&self.0.ending).push(thread::spawn(move || pools.iter().for_each(|pool| pool.end())));
    }

    /// Ends those that are held. Returns once nothing of them is left.
    pub(crate) fn end(&self) {
        self.end_beside();
        let ending = mem::take(&mut *lock(&self.0.ending));
        for thread in ending {
            // One that panicked has ended nothing, and was told of.
            drop(thread.join());
        }
        self.let_go();
    }

    fn stop(&self) -> Then {
        let pools = lock(&self.0.pools);
        // Said before anything is waited for: a server that is just starting may take a moment to go.
        streams::say(if pools.is_empty() { INTERRUPTED } else { STOPPING });
        pools.iter().for_each(|pool| pool.stop());
        if pools.is_empty() { Then::EndHere } else { Then::EndsItself }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes signals from here on. While the returned value holds no servers, nothing runs and a signal ends the process; then it stops them.
pub(crate) fn stop_on_signal(interrupt: &Interrupt) -> Result<Running, CliError> {
    let running = Running::default();
    let held = running.clone();
    interrupt.on_signal(move || held.stop()).context("cannot take signals")?;
    Ok(running)
}
