//! Telemetry: what the device did before and after each measurement.
//!
//! It does not judge: what makes a figure unstable is for the bench and the ranking to say.

use serde::Serialize;
use serde_json::Number;
use t2t_protocol::{Baseline, Calibration, Snapshot, Telemetry};

use crate::figures;
use crate::rank::VariantResult;

/// What the device did around one measurement, each as `before → after`, or one value where both are the same.
#[derive(Debug, Serialize)]
pub(crate) struct TelemetryRow {
    /// A variant, `baselines` or `calibration`.
    subject: String,
    sm_clock_mhz: Option<String>,
    memory_clock_mhz: Option<String>,
    temperature_c: Option<String>,
    power_w: Option<String>,
    throttle: Option<String>,
    other_processes: Option<String>,
}

/// Returns a row for each measurement around which the device was asked: the calibration, the baselines, then the variants.
#[must_use]
pub(crate) fn rows(
    variants: &[&VariantResult],
    baseline: Option<&Baseline>,
    calibration: Option<&Calibration>,
) -> Vec<TelemetryRow> {
    let benches = variants.iter().map(|variant| {
        let bench = variant.bench.document();
        (variant.name.as_str(), bench.and_then(|bench| bench.telemetry.as_ref()))
    });
    let others = [
        ("calibration", calibration.map(|calibration| &calibration.telemetry)),
        ("baselines", baseline.map(|baseline| &baseline.telemetry)),
    ];
    others.into_iter().chain(benches).filter_map(|(name, telemetry)| TelemetryRow::of(name, telemetry?)).collect()
}

impl TelemetryRow {
    fn of(subject: &str, telemetry: &Telemetry) -> Option<Self> {
        let (before, after) = (telemetry.before.as_ref(), telemetry.after.as_ref());
        before.or(after)?;
        let span = |field: fn(&Snapshot) -> Option<String>| span(before.and_then(field), after.and_then(field));
        Some(Self {
            subject: subject.to_owned(),
            sm_clock_mhz: span(|told| number(told.sm_clock_mhz.as_ref())),
            memory_clock_mhz: span(|told| number(told.memory_clock_mhz.as_ref())),
            temperature_c: span(|told| number(told.temperature_c.as_ref())),
            power_w: span(|told| number(told.power_w.as_ref())),
            throttle: span(|told| told.throttle.as_deref().map(throttle)),
            other_processes: span(|told| Some(told.other_processes?.to_string())),
        })
    }
}

fn span(before: Option<String>, after: Option<String>) -> Option<String> {
    match (before, after) {
        (Some(before), Some(after)) if before != after => Some(format!("{before} → {after}")),
        (before, after) => before.or(after),
    }
}

fn number(told: Option<&Number>) -> Option<String> {
    told.and_then(Number::as_f64).map(figures::figure)
}

fn throttle(reasons: &[String]) -> String {
    if reasons.is_empty() { "none".to_owned() } else { reasons.join(", ") }
}
