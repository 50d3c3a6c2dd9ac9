//! Random inputs from a seed, and in a soak from further ones.
//!
//! It does not know what is checked.

use std::fmt::Debug;

use proptest::prelude::{ProptestConfig, Strategy};
use proptest::test_runner::{RngSeed, TestRunner};

use crate::soak::{Count, rounds};

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
