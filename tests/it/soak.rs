//! What a soak (`tests/soak.sh`) asks of the tests, and what they tell it: how long to go on, and one line with what was counted.
//!
//! It does not know what is counted. Without a soak each test goes as far as it says itself, and its line is not shown.

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many seconds each test of a kind goes on.
const SECONDS: &str = "T2T_SOAK_SECONDS";

/// Counts what a test does, and tells it when the test is over, however it ends.
pub struct Count {
    kind: &'static str,
    done: &'static str,
    number: AtomicU64,
}

impl Count {
    /// Begins to count: `soak: KIND 3 DONE, 0 wrong`.
    pub fn of(kind: &'static str, done: &'static str) -> Self {
        Self { kind, done, number: AtomicU64::new(0) }
    }

    /// Counts so many more.
    pub fn add(&self, more: usize) {
        self.number.fetch_add(u64::try_from(more).unwrap(), Ordering::Relaxed);
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        let wrong = u8::from(thread::panicking());
        println!("soak: {} {} {}, {wrong} wrong", self.kind, self.number.load(Ordering::Relaxed), self.done);
    }
}

/// Returns the numbers of a test's rounds: `usual` many, or in a soak as many as begin within its time, and one at least.
pub fn rounds(usual: u64) -> impl Iterator<Item = u64> {
    let time = seconds();
    let begin = Instant::now();
    (0..).take_while(move |number| match time {
        None => *number < usual,
        Some(time) => *number == 0 || begin.elapsed() < time,
    })
}

/// Returns how long a test goes on in a soak.
fn seconds() -> Option<Duration> {
    let text = env::var(SECONDS).ok()?;
    Some(Duration::from_secs(text.parse().unwrap_or_else(|_| panic!("{SECONDS} is no number: {text}"))))
}
