//! Telemetry: what the device did before and after each measurement.
//!
//! It does not judge: what makes a figure unstable is for the bench and the ranking to say.

use serde::Serialize;
use serde_json::Value;

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
    variants: &[VariantResult],
    baseline: Option<&Value>,
    calibration: Option<&Value>,
) -> Vec<TelemetryRow> {
    let benches = variants.iter().filter_map(|variant| Some((variant.name.as_str(), variant.bench.document()?)));
    let others = [("calibration", calibration), ("baselines", baseline)];
    let others = others.into_iter().filter_map(|(name, document)| Some((name, document?)));
    others.chain(benches).filter_map(|(name, document)| TelemetryRow::of(name, &document["telemetry"])).collect()
}

impl TelemetryRow {
    fn of(subject: &str, telemetry: &Value) -> Option<Self> {
        let (before, after) = (&telemetry["before"], &telemetry["after"]);
        if before.is_null() && after.is_null() {
            return None;
        }
        let span = |field: &str| span(told(&before[field]), told(&after[field]));
        Some(Self {
            subject: subject.to_owned(),
            sm_clock_mhz: span("sm_clock_mhz"),
            memory_clock_mhz: span("memory_clock_mhz"),
            temperature_c: span("temperature_c"),
            power_w: span("power_w"),
            throttle: span("throttle"),
            other_processes: span("other_processes"),
        })
    }
}

fn span(before: Option<String>, after: Option<String>) -> Option<String> {
    match (before, after) {
        (Some(before), Some(after)) if before != after => Some(format!("{before} → {after}")),
        (before, after) => before.or(after),
    }
}

fn told(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(reasons) if reasons.is_empty() => Some("none".to_owned()),
        Value::Array(reasons) => Some(reasons.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")),
        Value::Number(number) => number.as_f64().map(figures::figure),
        other => Some(other.as_str().map_or_else(|| other.to_string(), str::to_owned)),
    }
}
