//! Noise: nodes whose devices others use, or that are slower or less steady than devices of their model are. They are named, and what they measured stands.
//!
//! It does not know which node performs what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use t2t_model::action::{Action, Phase, Target};
use t2t_model::event::Event;
use t2t_model::record::Record;
use t2t_plan::schedule::Settled;
use t2t_protocol::{Calibration, read};
use t2t_report::calibrations::{Calibrated, noise};

use super::nodes::name_of;
use super::{Run, Stop};

/// What has been heard of noise in a build.
#[derive(Debug, Default)]
pub(super) struct Noise {
    /// The nodes of which it was told that something disturbs what they measure.
    disturbed: BTreeSet<String>,
    /// Device → its node and itself, for people, and its calibration.
    calibrations: BTreeMap<String, (String, Calibration)>,
    /// Of what it was told that its calibration is noisy.
    told: BTreeSet<String>,
}

impl Run<'_, '_> {
    /// Names a node on which something disturbed a measurement, once.
    pub(super) fn tell_disturbed(&mut self, action: &Action, lane: &str, record: &Record) -> Result<(), Stop> {
        let name = name_of(lane);
        let phase = action.target().phase;
        if !matches!(phase, Phase::Calibrate | Phase::Baseline | Phase::Bench)
            || self.journeys.noise.disturbed.contains(name)
        {
            return Ok(());
        }
        // The document has the name of the phase, but for that of calibrate.
        let document = ["calibration", phase.name()].iter().find_map(|name| record.outputs.get(*name));
        let Some(document) = document.map(|blob| self.bytes(blob.digest)).transpose()? else { return Ok(()) };
        let why = disturbances(&document).join("; ");
        if !why.is_empty() {
            self.journeys.noise.disturbed.insert(name.to_owned());
            let text = format!("node {name} was disturbed while it measured {}: {why}", action.target());
            (self.emit)(Event::Warning { text });
        }
        Ok(())
    }

    /// Takes the calibration of a device of the node `name`, if one came, and names what of all that is known is noisy, once each: GPUs of nodes, and the calibration that is kept.
    pub(super) fn hear_calibration(&mut self, name: &str, calibration: Option<&Calibration>) {
        let Some(calibration) = calibration else { return };
        let device = calibration.device.uuid.clone().unwrap_or_default();
        // A node may have a GPU that is noisy and one that is not.
        let place = format!("node {name} ({device})");
        self.journeys.noise.calibrations.insert(device, (place, calibration.clone()));
        let kept = self.kept_calibration();
        let own = kept.as_ref().map(|calibration| Calibrated { name: KEPT, calibration });
        let of_nodes = self.journeys.noise.calibrations.values();
        let of_nodes = of_nodes.map(|(name, calibration)| Calibrated { name, calibration });
        let all: Vec<Calibrated<'_>> = of_nodes.chain(own).collect();
        let found: Vec<(String, String)> =
            all.iter().zip(noise(&all)).map(|(one, why)| (one.name.to_owned(), why.join("; "))).collect();
        for (name, why) in found.into_iter().filter(|(_, why)| !why.is_empty()) {
            if !self.journeys.noise.told.insert(name.clone()) {
                continue;
            }
            let more = if name == KEPT { ". `t2t build --force calibrate` makes it anew" } else { "" };
            (self.emit)(Event::Warning { text: format!("{name} is noisy: {why}{more}") });
        }
    }

    /// Returns the calibration that ceilings are drawn from, of this build or of the last one that had it.
    fn kept_calibration(&self) -> Option<Calibration> {
        let index = self.session.graph.find(&Target::calibrate())?;
        let settled = self.schedule.settled(index).and_then(Settled::record);
        let last = || self.history.last(&self.session.graph.action(index).identity).map(Arc::as_ref);
        let record = settled.or_else(last)?;
        let bytes = self.cas.get(record.outputs.get("calibration")?.digest).ok()?;
        read::document(&bytes).ok()
    }
}

/// What the calibration is called that ceilings are drawn from.
const KEPT: &str = "the calibration that is kept";

/// Returns what disturbed a measurement on its device, as the `document` of a calibrate, a baseline or a bench says: who else used the device, and what slowed it down. Runs that vary
/// are the kernel's own doing as often as not, and not meant (`measuring/telemetry.py`, `disturbances`).
fn disturbances(document: &[u8]) -> Vec<String> {
    #[derive(Deserialize)]
    struct Document {
        why_unstable: Option<String>,
    }
    let document: Option<Document> = serde_json::from_slice(document).ok();
    let why = document.and_then(|document| document.why_unstable).unwrap_or_default();
    let is_of_device =
        |part: &&str| part.starts_with("throttled: ") || part.starts_with("other processes on the GPU: ");
    why.split("; ").filter(is_of_device).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn who_disturbs_a_device_is_told_apart_from_runs_that_vary() {
        let told = |why: Value| disturbances(json!({"unstable": true, "why_unstable": why}).to_string().as_bytes());
        let why = "runs vary by 8 % at small; other processes on the GPU: 2; throttled: sw_thermal_slowdown";
        assert_eq!(told(json!(why)), ["other processes on the GPU: 2", "throttled: sw_thermal_slowdown"]);
        assert_eq!((told(json!("runs vary by 8 % at small")), told(Value::Null)), (vec![], vec![]));
        assert_eq!(disturbances(b"no document"), [""; 0]);
    }
}
