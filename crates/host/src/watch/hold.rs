//! A hold: git's lock on its index, and whether git still works behind it or has left it behind.
//!
//! It does not know where the lock lies: it is told when it was made, and the time by both clocks.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long git may hold its index before its lock counts as left behind.
const PATIENCE: Duration = Duration::from_secs(10);

/// The lock that was seen last.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    /// When it was made, by the calendar, and when it was first seen.
    seen: Cell<Option<(i64, Instant)>>,
}

impl Hold {
    /// Returns whether git works behind a lock that was `made` then, in nanoseconds since 1970; `calendar` is the present time in the same measure. If the
    /// calendar is set back, the lock lies in the future. So the time for which it has been seen counts, too.
    pub(crate) fn lasts(&self, made: i64, calendar: i64, now: Instant) -> bool {
        let first = match self.seen.get() {
            Some((of, first)) if of == made => first,
            _ => now,
        };
        self.seen.set(Some((made, first)));
        let age = u64::try_from(calendar.saturating_sub(made)).map_or(Duration::ZERO, Duration::from_nanos);
        age.max(now.duration_since(first)) < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_lock_counts_as_left_behind_whatever_becomes_of_the_calendar() {
        let (hold, start) = (Hold::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(hold.lasts(100 * SECOND, 100 * SECOND, start));
        assert!(hold.lasts(100 * SECOND, 105 * SECOND, after(5)));
        assert!(!hold.lasts(100 * SECOND, 110 * SECOND, after(10)));
        // The calendar is set back by a day: the lock lies in the future.
        assert!(!hold.lasts(100 * SECOND, -86_300 * SECOND, after(11)));
        // Another one is made, and left behind.
        assert!(hold.lasts(-86_299 * SECOND, -86_299 * SECOND, after(12)));
        assert!(!hold.lasts(-86_299 * SECOND, i64::MIN, after(22)));
    }

    #[test]
    fn a_lock_of_the_future_is_waited_for_once() {
        let (hold, start) = (Hold::default(), Instant::now());
        assert!(hold.lasts(i64::MAX, 0, start));
        assert!(!hold.lasts(i64::MAX, 0, start + PATIENCE));
        assert!(!hold.lasts(i64::MAX, 0, start + 2 * PATIENCE));
    }

    #[test]
    fn an_old_lock_is_never_waited_for() {
        assert!(!Hold::default().lasts(0, 60 * SECOND, Instant::now()));
    }
}
