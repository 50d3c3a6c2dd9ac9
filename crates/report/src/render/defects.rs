//! Defects: what was compiled while a device was held, although it should have been compiled before.
//!
//! It does not know why. A log lists them, and nothing is rejected for one.

use serde::Serialize;
use serde_json::Value;
use t2t_model::action::Phase;

/// What one action of a variant compiled on the device's time.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Defect {
    variant: String,
    phase: &'static str,
    /// Kernels that Triton's cache did not have.
    kernels: Vec<String>,
    /// How many kernels it had.
    hits: u64,
    /// Kernels whose launchers were built.
    launchers: Vec<String>,
}

/// Returns the defects of the variant of this name, in the order of phases, from the documents of its check, its tune and its bench.
#[must_use]
pub(crate) fn of(variant: &str, documents: [Option<&Value>; 3]) -> Vec<Defect> {
    let told = [Phase::Check, Phase::Tune, Phase::Bench].into_iter().zip(documents).filter_map(|(phase, document)| {
        let cache = &document?["triton_cache"];
        Some(Defect {
            variant: variant.to_owned(),
            phase: phase.name(),
            kernels: names(&cache["misses"]),
            hits: cache["hits"].as_u64().unwrap_or(0),
            launchers: names(&cache["launchers"]["misses"]),
        })
    });
    told.filter(|defect| !defect.kernels.is_empty() || !defect.launchers.is_empty()).collect()
}

fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
