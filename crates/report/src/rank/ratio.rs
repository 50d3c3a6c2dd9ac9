//! The interval of the ratio of two Finals, or of two figures: by the bootstrap where the number of runs was fixed, else by the intervals with which measuring ended.
//!
//! It does not know what was measured.

use t2t_protocol::Figure;

use crate::rank::bootstrap::{self, Interval, Pairing};

/// The runs of a subject at a size. Times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Runs {
    /// The mean of each.
    pub(crate) means: Vec<f64>,
    /// Half the width of the interval with which measuring ended; none where the number of runs was fixed.
    pub(crate) within: Option<f64>,
}

impl From<&Figure> for Runs {
    fn from(figure: &Figure) -> Self {
        Self { means: figure.runs.iter().map(|run| run.mean).collect(), within: figure.within }
    }
}

/// Returns the interval of the ratio of two means over sizes, `above / below`, each with runs a size. None where a size has fewer than two runs.
///
/// Where measuring ended by what was seen, the bootstrap would not know, and draws from few runs. The intervals of the figures hold at whatever look was the last, all of them at
/// once (`python/t2t_harness/measuring/stopping.py`). So the ratio lies between the least and the most that they allow.
#[must_use]
pub(crate) fn ratio(above: &[&Runs], below: &[&Runs], pairing: Pairing) -> Option<Interval> {
    if above.iter().chain(below).all(|runs| runs.within.is_none()) {
        let [above, below] = [above, below].map(|sizes| sizes.iter().map(|runs| runs.means.as_slice()).collect());
        let (above, below): (Vec<&[f64]>, Vec<&[f64]>) = (above, below);
        return bootstrap::ratio(&above, &below, pairing);
    }
    let (above, below) = (Bounds::of(above)?, Bounds::of(below)?);
    Some(Interval { low: above.least / below.most, high: above.most / below.least })
}

/// Between what the sum of the figures lies.
struct Bounds {
    least: f64,
    most: f64,
}

/// No time is taken to be less than this share of what was measured.
const LEAST: f64 = 1e-3;

impl Bounds {
    fn of(sizes: &[&Runs]) -> Option<Self> {
        if sizes.is_empty() {
            return None;
        }
        let within: Vec<f64> = sizes.iter().map(|runs| within(runs)).collect::<Option<_>>()?;
        let (middle, within): (f64, f64) = (sizes.iter().map(|runs| mean(&runs.means)).sum(), within.iter().sum());
        Some(Self { least: (middle - within).max(LEAST * middle), most: middle + within })
    }
}

/// Returns half the width of the interval of a figure, None for fewer than two runs.
fn within(runs: &Runs) -> Option<f64> {
    let drawn = || {
        let interval = bootstrap::ratio(&[&runs.means], &[&[1.0, 1.0]], Pairing::Independent)?;
        Some((interval.high - interval.low) / 2.0)
    };
    runs.within.or_else(drawn)
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer runs than 2^52")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(mean: f64, within: f64) -> Runs {
        Runs { means: vec![mean; 6], within: Some(within) }
    }

    fn bounds(above: &[&Runs], below: &[&Runs]) -> String {
        let [low, high] = ratio(above, below, Pairing::Interleaved).unwrap().bounds();
        format!("{low:.3} to {high:.3}")
    }

    #[test]
    fn the_ratio_lies_between_what_the_intervals_allow() {
        assert_eq!(bounds(&[&known(10.0, 1.0)], &[&known(4.0, 0.5)]), "2.000 to 3.143", "9 / 4.5 and 11 / 3.5");
        let sizes = [&known(10.0, 1.0), &known(2.0, 0.5)];
        assert_eq!(bounds(&sizes, &[&known(4.0, 0.5), &known(1.0, 0.5)]), "1.750 to 3.375", "10.5 / 6 and 13.5 / 4");
        assert_eq!(bounds(&[&known(1.0, 0.0)], &[&known(1.0, 2.0)]), "0.333 to 1000.000", "no time is below zero");
    }

    #[test]
    fn a_fixed_number_of_runs_is_drawn_again() {
        let fixed = Runs { means: vec![1.0, 1.1, 0.9, 1.05], within: None };
        let other = Runs { means: vec![1.0, 1.2, 0.8, 1.0], within: None };
        let drawn = bootstrap::ratio(&[&fixed.means], &[&other.means], Pairing::Independent);
        assert_eq!(ratio(&[&fixed], &[&other], Pairing::Independent), drawn);
        let mixed = ratio(&[&fixed], &[&known(1.0, 0.0)], Pairing::Independent).unwrap();
        assert!(0.85 < mixed.low && mixed.low < 1.0 && 1.0 < mixed.high && mixed.high < 1.15, "{mixed}");
        let one = Runs { means: vec![1.0], within: None };
        assert_eq!(ratio(&[&one], &[&known(1.0, 0.1)], Pairing::Independent), None);
    }
}
