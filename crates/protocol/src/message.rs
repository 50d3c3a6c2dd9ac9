//! The two enums that travel.
//!
//! They do not know who reads them: a client for tests and the real one send the same.

use serde::{Deserialize, Serialize};

use crate::{ClientHello, End, Output, Request, ServerHello, Usage, WarmChild};

/// From t2t to the worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// The first message, once.
    Hello(ClientHello),
    /// Fork a child for this.
    Run(Box<Request>),
    /// Make a child ready for a request that names its key. Nothing is said of it until it is one's.
    Prepare(WarmChild),
    /// End the children that are ready for this device, or get ready for it: what they hold of it is wanted. Empty stands for those without a device.
    Dismiss {
        /// The device, as in [`crate::DEVICE`].
        device: String,
    },
    /// Nothing is asked for soon: time for what makes later forks cheap.
    Rest,
    /// Kill the child of this request; nothing happens when it has ended.
    Cancel {
        /// The request.
        id: u64,
    },
    /// Kill all children and leave.
    Shutdown,
}

/// From the worker to t2t.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The first message of a server that is ready.
    Hello(Box<ServerHello>),
    /// The first and only message of one that cannot serve.
    Unfit(Unfit),
    /// What a process says that another forked for it, before its own hello: it waits for t2t's.
    Forked {
        /// The process, which leads a group of its own.
        pid: i32,
    },
    /// A child runs.
    Started {
        /// The request.
        id: u64,
        /// The child's process, its process group and its session.
        pid: i32,
    },
    /// A child has ended and nothing of it is left, or it has replied and stays, or has replied and does nothing any more but end.
    Finished(Box<Finished>),
    /// A child that was to get ready is ready, or has died before it was.
    Prepared {
        /// What requests ask for it by.
        key: String,
    },
}

/// All there is to say about a child that has ended, has replied and stays, or has replied and ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The request.
    pub id: u64,
    /// How it ended.
    pub end: End,
    /// What it printed.
    pub stdout: Output,
    /// What it printed as errors.
    pub stderr: Output,
    /// What it used.
    pub usage: Usage,
    /// The files under [`Request::watch_under`] that were opened or probed, relative to it, sorted.
    pub opened: Vec<String>,
    /// How many processes it had left behind; they were killed.
    pub left_behind: u32,
    /// Whether the child is ready for another request.
    pub stayed: bool,
}

impl Finished {
    /// Reports an end that has nothing beside it.
    #[must_use]
    pub fn bare(id: u64, end: End) -> Self {
        let (stdout, stderr, usage) = (Output::default(), Output::default(), Usage::default());
        Self { id, end, stdout, stderr, usage, opened: Vec::new(), left_behind: 0, stayed: false }
    }
}

/// Why a Python cannot serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfit {
    /// What kind of reason it is.
    pub kind: UnfitReason,
    /// The reason, for people.
    pub reason: String,
}

/// The kinds of reasons. The first two are sent by the bootstrap text, which is older than any module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnfitReason {
    /// Python is older than 3.10.
    OldPython,
    /// `t2t_worker` cannot be imported.
    NoModule,
    /// The module speaks another version of the protocol.
    Version,
    /// Something in the server's own start failed.
    Start,
}
