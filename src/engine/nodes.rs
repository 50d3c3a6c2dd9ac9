//! Nodes: what a cluster lends to a build, and what its nodes say of an action that one of them performed.
//!
//! It does not know what becomes of the action then.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use t2t_host::cluster::{Asked, Cluster, End};
use t2t_model::action::{Identity, Phase};
use t2t_model::digest::Digest;

/// A device of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    /// The node's id.
    pub(crate) node: String,
    /// The node's name and the device's number there, as people see it: a lane.
    pub(crate) lane: String,
}

/// What a cluster lends.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) cluster: Arc<Cluster>,
    /// The devices that there were when the build began, of the nodes that fit it, node by node.
    pub(crate) seats: Vec<Seat>,
    /// `$TORCH_CUDA_ARCH_LIST`, which bundles tell the nodes.
    pub(crate) architectures: Option<String>,
}

/// What came of an action that a node was to perform, beside its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Away {
    /// A result, in this file.
    Result(PathBuf),
    /// Nothing: the node has another toolchain, device or harness, as it says.
    Unfit(Vec<String>),
    /// Nothing: the node or the cluster failed it, for this reason.
    Lost(String),
}

/// Returns whether nodes perform an action where there are some: what depends on a device and runs Python.
pub(crate) fn is_for_nodes(identity: &Identity) -> bool {
    let is_made = matches!(identity.target.phase, Phase::Generate | Phase::Select | Phase::Log | Phase::Summary);
    identity.device.is_some() && !is_made
}

/// An action that is on its way.
pub(super) struct Sent {
    pub(super) node: String,
    /// The text of its bundle, and where the bytes lie that it names.
    pub(super) bundle: String,
    pub(super) blobs: BTreeMap<Digest, PathBuf>,
}

impl Nodes {
    /// Returns what the cluster lends: these devices of its nodes.
    pub(crate) fn of(cluster: Arc<Cluster>, seats: Vec<Seat>, architectures: Option<String>) -> Self {
        Self { cluster, seats, architectures }
    }

    /// Returns how many nodes lend devices.
    pub(crate) fn count(&self) -> usize {
        self.seats.iter().map(|seat| &seat.node).collect::<BTreeSet<_>>().len()
    }

    /// Returns the ids of the nodes that are alive.
    pub(super) fn alive(&self) -> BTreeSet<String> {
        self.cluster.nodes().into_iter().map(|node| node.id).collect()
    }

    /// Has a node perform an action on one of its devices, waits for the end, and returns what came of it.
    pub(super) fn perform(&self, sent: &Sent, stopped: impl Fn() -> bool) -> Away {
        let Sent { node, bundle, blobs } = sent;
        away(self.cluster.perform(&Asked { node, gpus: 1, cpus: 0, bundle, blobs }, stopped))
    }
}

/// Returns what the end of `t2t perform run` on a node comes to.
fn away(end: End) -> Away {
    let (exit, document, said, result) = match end {
        End::Lost(reason) => return Away::Lost(reason),
        End::Ended { exit, document, said, result } => (exit, document.unwrap_or_default(), said, result),
    };
    if let Some(result) = result {
        return Away::Result(result);
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
        assert_eq!(away(end), Away::Result(file));
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
