//! Cancellation of calls: once set, it ends the call that runs with it, and refuses later ones.
//!
//! It does not know why a call is cancelled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use t2t_protocol::ServerKind;

/// Whether the calls of one action are cancelled. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    /// The call that runs: its server and its number there.
    call: Option<(ServerKind, u64)>,
}

impl Cancel {
    /// Returns whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.state().is_set
    }

    /// Sets it, and returns the running call, which the caller kills.
    pub(super) fn set(&self) -> Option<(ServerKind, u64)> {
        let mut state = self.state();
        state.is_set = true;
        state.call.take()
    }

    /// Makes a call by `submit`; None if it is set. It holds the lock meanwhile, so a later `set` learns of the call.
    pub(super) fn begin<E>(
        &self,
        kind: ServerKind,
        id: u64,
        submit: impl FnOnce() -> Result<(), E>,
    ) -> Option<Result<(), E>> {
        let mut state = self.state();
        if state.is_set {
            return None;
        }
        let submitted = submit();
        if submitted.is_ok() {
            state.call = Some((kind, id));
        }
        Some(submitted)
    }

    /// Says that the call has ended.
    pub(super) fn end(&self) {
        self.state().call = None;
    }

    /// A poisoned lock is fine: the value is changed by one call, so a thread that panicked left a whole one.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: ServerKind = ServerKind::Interpreter;

    #[test]
    fn what_runs_is_told_to_whoever_takes_it_back_and_nothing_follows() {
        let cancel = Cancel::default();
        assert_eq!(cancel.begin(KIND, 7, || Ok::<(), ()>(())), Some(Ok(())));
        assert_eq!(cancel.clone().set(), Some((KIND, 7)));
        assert!(cancel.is_set());
        assert_eq!(cancel.begin(KIND, 8, || -> Result<(), ()> { panic!("it is not called") }), None);
        assert_eq!(cancel.set(), None, "a call is taken back once");
    }

    #[test]
    fn a_call_that_has_ended_or_was_not_made_is_not_taken_back() {
        let cancel = Cancel::default();
        assert_eq!(cancel.begin(KIND, 7, || Ok::<(), ()>(())), Some(Ok(())));
        cancel.end();
        assert_eq!(cancel.begin(KIND, 8, || Err("refused")), Some(Err("refused")));
        assert_eq!(cancel.set(), None);
    }
}
