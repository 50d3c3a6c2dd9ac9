//! How a build is run: the caller's settings.

use std::path::PathBuf;
use std::sync::Arc;

use t2t_host::cores::Shares;
use t2t_store::store::remote::Remote;

use super::nodes::Nodes;

/// How a build is run.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// How many slots the CPU lane has.
    pub(crate) jobs: usize,
    /// How the machine's cores are shared.
    pub(crate) shares: Shares,
    /// Whether an op may be measured on several devices.
    pub(crate) any_device: bool,
    /// What happens after a rejection.
    pub(crate) after_rejection: AfterRejection,
    /// What may be run in children.
    pub(crate) children: Children,
    /// The folder of the device locks.
    pub(crate) locks: PathBuf,
    /// What was drawn for this build: values of inputs depend on it. It is in no key, and in the evidence of each check.
    pub(crate) salt: String,
    /// The cache that is shared with other machines, if there is one.
    pub(crate) remote: Option<Arc<Remote>>,
    /// The nodes that perform what depends on a device, if there are some.
    pub(crate) nodes: Option<Arc<Nodes>>,
}

/// What a build does after a kernel was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterRejection {
    /// Everything that does not need it goes on.
    GoOn,
    /// Nothing new is started.
    Stop,
}

/// Which actions may run in children. The others are missing where no result of theirs stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// All.
    All,
    /// Those whose results depend on no device.
    WithoutDevice,
    /// None.
    None,
}
