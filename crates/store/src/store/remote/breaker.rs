//! A breaker: after some failures in a row nothing is tried for a while.
//!
//! It is told the time, and does not know what fails.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many failures in a row open it.
const FAILURES: u32 = 3;

/// A breaker, closed at first.
#[derive(Debug)]
pub(super) struct Breaker {
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    /// Returns a breaker that stays open for `pause`.
    pub(crate) fn new(pause: Duration) -> Self {
        Self { pause, state: Mutex::default() }
    }

    /// Returns whether something may be tried now. After a pause one try is let through, and decides.
    pub(crate) fn lets_through(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.open_until {
            Some(end) if now < end => false,
            Some(_) => {
                state.open_until = Some(now + self.pause);
                true
            }
            None => true,
        }
    }

    /// Takes that something worked.
    pub(crate) fn worked(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// Takes that something failed, and returns whether the breaker opened by it.
    pub(crate) fn failed(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failures += 1;
        let was_open = state.open_until.is_some();
        if state.failures >= FAILURES {
            state.open_until = Some(now + self.pause);
        }
        !was_open && state.open_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(30);

    #[test]
    fn three_failures_in_a_row_open_it_and_one_try_after_the_pause_decides() {
        let (breaker, start) = (Breaker::new(PAUSE), Instant::now());
        assert!(!breaker.failed(start) && !breaker.failed(start) && breaker.lets_through(start));
        assert!(breaker.failed(start), "the third opens it");
        assert!(!breaker.failed(start), "it is open already");
        assert!(!breaker.lets_through(start + PAUSE / 2));
        assert!(breaker.lets_through(start + PAUSE));
        assert!(!breaker.lets_through(start + PAUSE), "only one tries");
        assert!(!breaker.failed(start + PAUSE));
        assert!(!breaker.lets_through(start + PAUSE + PAUSE / 2));
        assert!(breaker.lets_through(start + PAUSE * 2));
        breaker.worked();
        assert!(breaker.lets_through(start) && breaker.lets_through(start));
    }

    #[test]
    fn a_success_between_failures_starts_the_count_again() {
        let (breaker, now) = (Breaker::new(PAUSE), Instant::now());
        for _ in 0..10 {
            assert!(!breaker.failed(now) && !breaker.failed(now));
            breaker.worked();
        }
        assert!(breaker.lets_through(now));
    }
}
