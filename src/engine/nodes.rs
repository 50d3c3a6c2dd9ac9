//! Nodes: what a cluster lends to a build, and what its nodes say of an action that one of them performed.
//!
//! It does not know what becomes of the action then.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use t2t_host::cluster::{Asked, Cluster, End};
use t2t_model::action::{DeviceClass, Identity, Phase};
use t2t_model::digest::Digest;
use t2t_protocol::Calibration;

/// What a node lends to one action at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    /// The node's id.
    pub(crate) node: String,
    /// The node's name and the device's number there, or that of the cores, as people see it: a lane.
    pub(crate) lane: String,
    /// Which of the two it is.
    pub(crate) kind: SeatKind,
}

/// What an action takes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeatKind {
    /// A device.
    Device,
    /// As many cores as a check has processes, or a compile.
    Cores,
}

/// How many cores a seat of [`SeatKind::Cores`] has: those of a candidate and of the judge that follows it.
pub(crate) const CORES: usize = 2;

/// What a cluster lends.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) cluster: Arc<Cluster>,
    /// What there was when the build began, of the nodes that fit it, node by node: devices, then cores.
    pub(crate) seats: Vec<Seat>,
    /// `$TORCH_CUDA_ARCH_LIST`, which bundles tell the nodes.
    pub(crate) architectures: Option<String>,
}

/// What came of an action that a node was to perform, beside its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Away {
    /// A result, in this file, and with one of a measurement the calibration of the device that it ran on.
    Result(PathBuf, Option<Box<Calibration>>),
    /// Nothing: the node has another toolchain, device or harness, as it says.
    Unfit(Vec<String>),
    /// Nothing: the node or the cluster failed it, for this reason.
    Lost(String),
}

/// Returns what of a node an action takes where nodes lend devices: what depends on a device and runs Python. Where they lend `cores`, those analyze, compile and check on the
/// interpreter. None of what is performed here.
pub(crate) fn taken_by(identity: &Identity, cores: bool) -> Option<SeatKind> {
    let is_interpreted = identity.device == Some(DeviceClass::Interpreter);
    match identity.target.phase {
        Phase::Generate | Phase::Select | Phase::Log | Phase::Summary => None,
        Phase::Analyze | Phase::Compile => cores.then_some(SeatKind::Cores),
        Phase::Check if is_interpreted && cores => Some(SeatKind::Cores),
        _ => identity.device.as_ref().map(|_| SeatKind::Device),
    }
}

/// An action that is on its way.
pub(super) struct Sent {
    pub(super) node: String,
    pub(super) kind: SeatKind,
    /// The text of its bundle, and where the bytes lie that it names.
    pub(super) bundle: String,
    pub(super) blobs: BTreeMap<Digest, PathBuf>,
}

impl Nodes {
    /// Returns what the cluster lends: these devices of its nodes.
    pub(crate) fn of(cluster: Arc<Cluster>, seats: Vec<Seat>, architectures: Option<String>) -> Self {
        Self { cluster, seats, architectures }
    }

    /// Returns how many seats of a kind there are.
    pub(crate) fn seats_of(&self, kind: SeatKind) -> usize {
        self.seats.iter().filter(|seat| seat.kind == kind).count()
    }

    /// Returns what of a node an action takes; None of what is performed here.
    pub(crate) fn taken_by(&self, identity: &Identity) -> Option<SeatKind> {
        taken_by(identity, self.seats_of(SeatKind::Cores) > 0).filter(|kind| self.seats_of(*kind) > 0)
    }

    /// Returns how many nodes lend something.
    pub(crate) fn count(&self) -> usize {
        self.seats.iter().map(|seat| &seat.node).collect::<BTreeSet<_>>().len()
    }

    /// Returns the ids of the nodes that are alive.
    pub(super) fn alive(&self) -> BTreeSet<String> {
        self.cluster.nodes().into_iter().map(|node| node.id).collect()
    }

    /// Has a node perform an action on one of its devices, waits for the end, and returns what came of it.
    pub(super) fn perform(&self, sent: &Sent, stopped: impl Fn() -> bool) -> Away {
        let Sent { node, kind, bundle, blobs } = sent;
        let (gpus, cpus, jobs) = match kind {
            SeatKind::Device => (1, 0, None),
            SeatKind::Cores => (0, CORES, Some(CORES)),
        };
        away(self.cluster.perform(&Asked { node, gpus, cpus, jobs, bundle, blobs }, stopped))
    }
}

/// Returns the name of the node of a lane.
pub(super) fn name_of(lane: &str) -> &str {
    lane.rsplit_once('/').map_or(lane, |(name, _)| name)
}

/// Returns what the end of `t2t perform run` on a node comes to.
fn away(end: End) -> Away {
    let (exit, document, said, result) = match end {
        End::Lost(reason) => return Away::Lost(reason),
        End::Ended { exit, document, said, result } => (exit, document.unwrap_or_default(), said, result),
    };
    if let Some(result) = result {
        return Away::Result(result, serde_json::from_value(document["calibration"].clone()).ok());
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(why) = document["unfit"].as_array() {
        return Away::Unfit(why.iter().filter_map(text).collect());
    }
    let lost = text(&document["outcome"]["lost"]["reason"]);
    Away::Lost(lost.unwrap_or_else(|| {
        let words = said.trim().lines().find(|line| line.starts_with("error: ")).or_else(|| said.trim().lines().last());
        format!("`t2t perform` ended with exit code {exit}: {}", words.unwrap_or("it said nothing"))
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ended(exit: i32, document: Value, said: &str) -> Away {
        away(End::Ended { exit, document: Some(document), said: said.to_owned(), result: None })
    }

    #[test]
    fn what_a_node_says_is_a_result_or_why_there_is_none() {
        let file = PathBuf::from("result");
        let end = End::Ended { exit: 1, document: None, said: String::new(), result: Some(file.clone()) };
        assert_eq!(away(end), Away::Result(file.clone(), None));
        let document = json!({"outcome": "passed", "calibration": {"copy_gb_per_s": 4000.0}});
        let end = End::Ended { exit: 0, document: Some(document), said: String::new(), result: Some(file.clone()) };
        let calibration = Calibration { copy_gb_per_s: 4000.0, ..Calibration::default() };
        assert_eq!(away(end), Away::Result(file, Some(Box::new(calibration))));
        let why = json!({"unfit": ["torch version changed: 1 → 2"]});
        assert_eq!(ended(3, why, ""), Away::Unfit(vec!["torch version changed: 1 → 2".to_owned()]));
        let killed = json!({"outcome": {"lost": {"reason": "killed"}}});
        assert_eq!(ended(3, killed, ""), Away::Lost("killed".to_owned()));
        let said = "warning: x\nerror: no room\nhint: make some\n";
        let reason = "`t2t perform` ended with exit code 2: error: no room".to_owned();
        assert_eq!(ended(2, Value::Null, said), Away::Lost(reason));
        assert_eq!(away(End::Lost("gone".to_owned())), Away::Lost("gone".to_owned()));
    }
}
