//! Defects: what was compiled while a device was held, although it should have been compiled before.
//!
//! It does not know why. A log lists them, and nothing is rejected for one.

use serde::Serialize;
use t2t_model::action::Phase;
use t2t_protocol::TritonCache;

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

/// Returns the defects of the variant of this name, in the order of phases, from what Triton's cache had in its check, its tune and its bench.
#[must_use]
pub(crate) fn of(variant: &str, caches: [Option<&TritonCache>; 3]) -> Vec<Defect> {
    let told = [Phase::Check, Phase::Tune, Phase::Bench].into_iter().zip(caches).filter_map(|(phase, cache)| {
        let cache = cache?;
        Some(Defect {
            variant: variant.to_owned(),
            phase: phase.name(),
            kernels: cache.misses.clone(),
            hits: cache.hits,
            launchers: cache.launchers.as_ref().map(|launchers| launchers.misses.clone()).unwrap_or_default(),
        })
    });
    told.filter(|defect| !defect.kernels.is_empty() || !defect.launchers.is_empty()).collect()
}
