//! What a soak (`tests/soak.sh`) asks of the tests, and what they tell it: how long to go on, and one line with what was counted.
//!
//! It does not know what is counted. Without a soak each test goes as far as it says itself, and its line is not shown.

use std::env;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::{ProptestConfig, Strategy};
use proptest::test_runner::{RngSeed, TestRunner};

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

/// Draws `cases` inputs from a seed, or in a soak as many from each of the seeds after it as there is time for, and checks each.
pub fn fuzz<S: Strategy>(seed: u64, cases: u32, inputs: &S, check: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let count = Count::of("fuzz", "inputs");
    for round in rounds(1) {
        let seed = RngSeed::Fixed(seed + round);
        let config = ProptestConfig { failure_persistence: None, rng_seed: seed, cases, ..ProptestConfig::default() };
        let drawn = TestRunner::new(config).run(inputs, |input| {
            check(input);
            count.add(1);
            Ok(())
        });
        drawn.unwrap_or_else(|failure| panic!("{seed:?}: {failure}"));
    }
}
