//! The bootstrap: how far a ratio of two means would wander if the same runs were drawn again.
//!
//! It does not know what was measured. Its chance is a fixed sequence, so that equal runs give equal intervals.

use std::fmt;

use crate::figures;

/// How often the runs are drawn again.
const RESAMPLES: usize = 2_000;

/// Where every sequence begins; any number would do.
const SEED: u64 = 0x7432_7472_616e_6b31;

/// The middle 95 % of the resampled ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// The 2.5th percentile.
    pub(crate) low: f64,
    /// The 97.5th percentile.
    pub(crate) high: f64,
}

impl Interval {
    /// Returns whether the two cannot be told apart.
    #[must_use]
    pub(crate) fn holds_one(&self) -> bool {
        self.low <= 1.0 && 1.0 <= self.high
    }

    /// Returns both as documents have them.
    #[must_use]
    pub(crate) fn bounds(self) -> [f64; 2] {
        [self.low, self.high]
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}–{}", figures::figure(self.low), figures::figure(self.high))
    }
}

/// How the runs of two subjects belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Run by run: they took turns in one process.
    Interleaved,
    /// Not at all.
    Independent,
}

/// Returns the interval of the ratio of two means over sizes, `above / below`, each a list of runs a size.
///
/// None where a size has fewer than two runs: nothing is known of its scatter.
#[must_use]
pub(crate) fn ratio(above: &[&[f64]], below: &[&[f64]], pairing: Pairing) -> Option<Interval> {
    let enough = |sizes: &[&[f64]]| !sizes.is_empty() && sizes.iter().all(|runs| runs.len() >= 2);
    if !enough(above) || !enough(below) {
        return None;
    }
    let mut chance = Chance(SEED);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let start = chance.clone();
            let numerator = redrawn(above, &mut chance);
            let mut again = if pairing == Pairing::Interleaved { start } else { chance.clone() };
            let denominator = redrawn(below, &mut again);
            chance = again;
            numerator / denominator
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    Some(Interval { low: ratios[RESAMPLES / 40], high: ratios[RESAMPLES - 1 - RESAMPLES / 40] })
}

/// Returns the mean over sizes of the mean of runs drawn with replacement.
fn redrawn(sizes: &[&[f64]], chance: &mut Chance) -> f64 {
    let means = sizes.iter().map(|runs| mean((0..runs.len()).map(|_| runs[chance.below(runs.len())])));
    mean(means)
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer runs than 2^52")]
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// `SplitMix64`: the smallest generator that passes the usual tests.
#[derive(Clone)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        usize::try_from(product >> 64).expect("below a usize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_runs_give_equal_intervals() {
        let runs: &[f64] = &[1.0, 1.1, 0.9, 1.05];
        let other: &[f64] = &[1.0, 1.2, 0.8, 1.0];
        let once = ratio(&[runs], &[other], Pairing::Independent);
        assert_eq!(once, ratio(&[runs], &[other], Pairing::Independent));
        assert!(once.unwrap().holds_one());
    }

    #[test]
    fn interleaved_runs_cancel_what_both_suffered() {
        let torch: &[f64] = &[2.0, 4.0, 6.0, 8.0];
        let variant: &[f64] = &[1.0, 2.0, 3.0, 4.0];
        assert_eq!(ratio(&[torch], &[variant], Pairing::Interleaved), Some(Interval { low: 2.0, high: 2.0 }));
        assert!(ratio(&[torch], &[variant], Pairing::Independent).unwrap().low < 1.5);
    }

    #[test]
    fn a_single_run_has_no_interval() {
        assert_eq!(ratio(&[&[1.0]], &[&[2.0, 2.0]], Pairing::Independent), None);
        assert_eq!(ratio(&[], &[], Pairing::Independent), None);
    }

    #[test]
    fn the_interval_of_a_normal_mean_is_about_two_standard_errors() {
        // Sixteen values of mean 10 and standard deviation 1.0: the standard error is 0.25.
        let runs: Vec<f64> = (0..16).map(|at| if at % 2 == 0 { 9.0 } else { 11.0 }).collect();
        let exact: &[f64] = &[1.0, 1.0];
        let found = ratio(&[&runs], &[exact], Pairing::Independent).unwrap();
        assert!((found.low - 9.5).abs() < 0.13 && (found.high - 10.5).abs() < 0.13, "{found}");
    }
}
