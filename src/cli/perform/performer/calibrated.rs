//! The calibration of the device that measures here. It is made once a day, and again as long as something disturbs the device, so that whoever sends measurements to several machines sees which of them are noisy.
//!
//! It does not know what others reach.

use serde_json::Value;
use t2t_model::action::Target;
use t2t_model::manifest::Manifest;
use t2t_model::record::Record;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_protocol::Calibration;
use t2t_report::calibrations::{Calibrated, noise};

use super::super::super::error::CliError;
use super::super::super::plan::plans;
use super::{End, Performer};
use crate::engine::{InFlight, Settings};
use crate::session::Session;

impl Performer<'_> {
    /// Returns the calibration of the device of `session`, made now if none is known of today. None where there is not one device, as there is where Ray gives one, and where it cannot be
    /// calibrated: what measures on it says so itself.
    pub(super) fn calibration(
        &self,
        (session, settings): (&Session, &Settings),
        in_flight: &mut InFlight,
        say: &mut dyn FnMut(String),
    ) -> Result<Option<Value>, CliError> {
        let target = Target::calibrate();
        let ([device], Some(index)) = (session.devices.as_slice(), session.graph.find(&target)) else {
            return Ok(None);
        };
        let selection = Selection { targets: vec![target.to_string()], ..Selection::default() };
        let wanted = pick(&session.graph, &selection, Force::Stale)?;
        let plans = plans(session, &wanted)?;
        let plan = plans.iter().find(|plan| plan.index == index);
        let key = plan.and_then(|plan| plan.manifest.as_ref()).map(Manifest::key);
        if let Some(known) = key.and_then(|key| self.node.calibration(&device.uuid, key)) {
            return Ok(Some(known));
        }
        match self.built((session, settings), (&wanted, index), in_flight, say)? {
            End::Kept(record) => Ok(self.keep_calibration(session, &record)),
            End::Lost(_) | End::Unfit(_) => Ok(None),
        }
    }

    /// Keeps what a calibration of the device of `session` says, and returns it. None where it is that of another device.
    pub(super) fn keep_calibration(&self, session: &Session, record: &Record) -> Option<Value> {
        let [device] = session.devices.as_slice() else { return None };
        let bytes = session.cas().get(record.outputs.get("calibration")?.digest).ok()?;
        let document: Value = serde_json::from_slice(&bytes).ok()?;
        if document["device"]["uuid"] != device.uuid.as_str() {
            return None;
        }
        let calibration: Calibration = serde_json::from_value(document.clone()).ok()?;
        // What disturbed the device may be gone by the next measurement: then it is calibrated again.
        if noise(&[Calibrated { name: &device.uuid, calibration: &calibration }]).concat().is_empty() {
            // Where it cannot be kept it is made again, too.
            let _ = self.node.keep_calibration(&device.uuid, record.key, document.clone());
        }
        Some(document)
    }
}
