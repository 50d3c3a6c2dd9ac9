//! Each variant against the first declared one, at each size: how many times as long the first takes.
//!
//! It chooses nothing, and does not know what a variant changes: a ratio is of everything that its docstring names, never of one technique.

use crate::rank::bootstrap::Interval;
use crate::rank::measured::Measured;
use crate::rank::{AgainstFirst, Entrant, Gain, Gains};

/// Returns how many times as long the first declared variant takes as each other that passed and was measured; none where there is only one.
///
/// Without figures of the first there is nothing to hold others against: the list of variants is empty then.
pub(super) fn first(entrants: &[Entrant]) -> Option<AgainstFirst> {
    let (first, others) = entrants.split_first().filter(|(_, others)| !others.is_empty())?;
    let measured = |entrant: &Entrant| entrant.measured.clone().filter(|_| entrant.has_passed());
    let gains = measured(first).into_iter().flat_map(|base| {
        others.iter().filter_map(move |other| Some(gain(&other.name, &measured(other)?, &base))).collect::<Vec<_>>()
    });
    Some(AgainstFirst { base: first.name.clone(), variants: gains.collect() })
}

fn gain(name: &str, own: &Measured, base: &Measured) -> Gains {
    let at = |size: &String| {
        let (ratio, interval) = own.gain_over(base, size)?;
        let is_unstable = own.is_unstable_at(size) || base.is_unstable_at(size);
        Some((size.clone(), told(ratio, interval, is_unstable)))
    };
    let is_unstable = own.sizes().any(|size| own.is_unstable_at(size) || base.is_unstable_at(size));
    Gains {
        name: name.to_owned(),
        sizes: own.sizes().filter_map(at).collect(),
        whole: told(base.final_ms / own.final_ms, base.ratio_to(own), is_unstable),
    }
}

fn told(ratio: f64, interval: Option<Interval>, is_unstable: bool) -> Gain {
    Gain { ratio, interval: interval.map(Interval::bounds), unstable: is_unstable }
}
