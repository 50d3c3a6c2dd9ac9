//! Each variant against the first declared one, at each size: how many times as long the first takes.
//!
//! It chooses nothing, and does not know what a variant changes: a ratio is of everything that its docstring names, never of one technique.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::rank::Entrant;
use crate::rank::bootstrap::Interval;
use crate::rank::measured::Measured;

/// Returns how many times as long the first declared variant takes as each other that passed and was measured; null where there is only one.
///
/// Without figures of the first there is nothing to hold others against: the list of variants is empty then.
pub(super) fn first(entrants: &[Entrant]) -> Value {
    let Some((first, others)) = entrants.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Value::Null;
    };
    let measured = |entrant: &Entrant| entrant.measured.clone().filter(|_| entrant.has_passed());
    let gains = measured(first).into_iter().flat_map(|base| {
        others.iter().filter_map(move |other| Some(gain(&other.name, &measured(other)?, &base))).collect::<Vec<_>>()
    });
    json!({"base": first.name, "variants": gains.collect::<Vec<_>>()})
}

fn gain(name: &str, own: &Measured, base: &Measured) -> Value {
    let at = |size: &String| {
        let (ratio, interval) = own.gain_over(base, size)?;
        let is_unstable = own.is_unstable_at(size) || base.is_unstable_at(size);
        Some((size.clone(), told(ratio, interval, is_unstable)))
    };
    let is_unstable = own.sizes().any(|size| own.is_unstable_at(size) || base.is_unstable_at(size));
    json!({
        "name": name,
        "sizes": own.sizes().filter_map(at).collect::<BTreeMap<_, _>>(),
        "final": told(base.final_ms / own.final_ms, base.ratio_to(own), is_unstable),
    })
}

fn told(ratio: f64, interval: Option<Interval>, is_unstable: bool) -> Value {
    json!({"ratio": ratio, "interval": interval.map(|interval| [interval.low, interval.high]), "unstable": is_unstable})
}
