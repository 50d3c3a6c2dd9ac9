//! A way to take calls back: set once, it ends the call that is made with it, and refuses those that would follow.
//!
//! It does not know why.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use t2t_protocol::ServerKind;

/// Whether the calls of one action are taken back. Clones are the same one.
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

    /// Sets it, and returns the call that runs, which is to be killed.
    pub(super) fn set(&self) -> Option<(ServerKind, u64)> {
        let mut state = self.state();
        state.is_set = true;
        state.call.take()
    }

    /// Makes a call by `submit` unless it is set: then None. Nothing is set meanwhile, so whoever sets it afterwards learns of the call.
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

    /// A thread that panicked while it held the lock left a whole value: each is changed by one call.
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
