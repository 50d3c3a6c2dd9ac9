//! Who is there: the first message of each side.
//!
//! It does not know how a Python is found or started.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// The modules that a server of actions imports before it forks, in this order; the harness's own come after them. Triton, which does not import torch, reads its own files
/// while torch is imported.
pub const PRELOAD: [&str; 4] = ["numpy", "triton", "torch", "triton.experimental.gluon"];

/// What all kinds of servers import, whatever they do with Triton: nearly all of the time that a server takes to start. Where a second server is forked after
/// it ([`ClientHello::fork_after`]), these come first.
pub const SHARED: [&str; 2] = ["numpy", "torch"];

/// The descriptors that a process has for the one that it forks after [`ClientHello::fork_after`]: its socket to t2t, and what it prints to.
pub const SPARE: [i32; 2] = [3, 4];

/// The variable that tells a server, and what compiles beside it, where bytecode of installed packages is kept.
pub const BYTECODE: &str = "T2T_BYTECODE";

/// What a server was started for. Triton reads `TRITON_INTERPRET` when it is imported, so one process cannot be
/// the first and another; what the others import beside takes seconds, and is imported at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerKind {
    /// Kernels run in Triton's interpreter.
    Interpreter,
    /// Kernels are compiled, and run nowhere.
    Compiled,
    /// Compiled kernels run on a CUDA device.
    Device,
}

impl ServerKind {
    /// Returns the value of `TRITON_INTERPRET` for this kind.
    #[must_use]
    pub fn triton_interpret(self) -> &'static str {
        match self {
            Self::Interpreter => "1",
            Self::Compiled | Self::Device => "0",
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interpreter => "interpreter",
            Self::Compiled => "compiled",
            Self::Device => "device",
        })
    }
}

/// What t2t says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    /// [`crate::VERSION`] of t2t.
    pub version: u32,
    /// What the server is for.
    pub kind: ServerKind,
    /// The folder that holds the harness package; it comes first on `sys.path`. Absolute.
    pub harness: Option<String>,
    /// The modules to import before serving, in order. One that fails is listed in [`ServerHello::missing`].
    pub preload: Vec<String>,
    /// What to import once it serves, in order, while nothing is asked for: modules, and functions as `module:function`, which do a part of their work
    /// for each value that they yield. Requests say what of it they need; what fails is left to their children.
    pub later: Vec<String>,
    /// More of the same, after it, that is imported only once something that is asked for needs it.
    pub asked: Vec<String>,
    /// The entry of `preload` after which the process forks another, for a server of another kind: that one says [`crate::FromWorker::Forked`] on a
    /// socket of its own and waits there for a hello. Both have [`SPARE`] then. Nothing is forked without it.
    pub fork_after: Option<String>,
}

/// What the worker answers once it can fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerHello {
    /// [`crate::VERSION`] of the worker.
    pub version: u32,
    /// The kind that the server was started as.
    pub kind: ServerKind,
    /// The version of the `t2t_worker` module.
    pub worker: String,
    /// The server's process.
    pub pid: i32,
    /// The version of Python, as `3.11.7`.
    pub python: String,
    /// `sys.executable`.
    pub executable: String,
    /// `sys.path` as the children see it.
    pub path: Vec<String>,
    /// `__version__` of each top-level package among the preloaded modules.
    pub packages: BTreeMap<String, String>,
    /// The modules that could not be imported.
    pub missing: Vec<Missing>,
    /// What the kernel offers to a sandbox.
    pub landlock: Landlock,
    /// Whether children get namespaces of their own, of users, mounts and System V objects.
    pub namespaces: bool,
}

/// A module that could not be imported, and the error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The module's full name.
    pub module: String,
    /// The exception, as `ImportError: libcudart.so.13: …`.
    pub reason: String,
}

/// The Landlock ABI of the running kernel; 0 where it has none and sandboxed children get only the system-call filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Landlock(pub u32);

impl fmt::Display for Landlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("none"),
            abi => write!(f, "landlock {abi}"),
        }
    }
}
