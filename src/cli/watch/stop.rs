//! Stopping a watch: what a signal does.
//!
//! It does not know what runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use t2t_host::interrupt::{Interrupt, Then};
use t2t_host::pool::Pool;

use super::inbox::Input;
use super::keys::Keys;
use crate::cli::error::CliError;

/// What the thread that takes signals stops.
#[derive(Debug, Default, Clone)]
pub(super) struct StopHandle(Arc<Mutex<Stoppable>>);

/// What there is to stop.
#[derive(Debug, Default)]
pub(super) struct Stoppable {
    /// The servers, once there are any.
    pub(super) pool: Option<Arc<Pool>>,
    /// The terminal, while letters are taken from it.
    pub(super) keys: Option<Keys>,
}

impl StopHandle {
    /// Returns what there is to stop, for as long as it is looked at or changed.
    pub(super) fn lock(&self) -> MutexGuard<'_, Stoppable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a signal kill what runs and end the watch. Before there are servers nothing runs, and it ends the process.
pub(super) fn stop_on_signal(
    interrupt: &Interrupt,
    shared: &StopHandle,
    send: impl Fn(Input) + Send + 'static,
) -> Result<(), CliError> {
    let shared = shared.clone();
    let stop = move || {
        let (pool, keys) = {
            let mut stoppable = shared.lock();
            (stoppable.pool.clone(), stoppable.keys.take())
        };
        drop(keys);
        let Some(pool) = pool else { return Then::EndHere };
        pool.stop();
        send(Input::Look);
        Then::EndsItself
    };
    Ok(interrupt.on_signal(stop).context("cannot take signals")?)
}
