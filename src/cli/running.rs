//! What a signal stops: the servers of the sessions that a command has open.
//!
//! It does not know what runs in them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
pub(crate) struct Running(Arc<Mutex<Vec<Arc<Pool>>>>);

impl Running {
    /// Has a signal stop these, too.
    pub(crate) fn hold(&self, pool: &Arc<Pool>) {
        self.pools().push(Arc::clone(pool));
    }

    /// Has a signal stop none of those that were held.
    pub(crate) fn let_go(&self) {
        self.pools().clear();
    }

    fn stop(&self) -> Then {
        let pools = self.pools();
        // Said before anything is waited for: a server that is just starting may take a moment to go.
        streams::say(if pools.is_empty() { INTERRUPTED } else { STOPPING });
        pools.iter().for_each(|pool| pool.stop());
        if pools.is_empty() { Then::EndHere } else { Then::EndsItself }
    }

    fn pools(&self) -> MutexGuard<'_, Vec<Arc<Pool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes signals from here on. While the returned value holds no servers, nothing runs and a signal ends the process; then it stops them.
pub(crate) fn stop_on_signal(interrupt: &Interrupt) -> Result<Running, CliError> {
    let running = Running::default();
    let held = running.clone();
    interrupt.on_signal(move || held.stop()).context("cannot take signals")?;
    Ok(running)
}
