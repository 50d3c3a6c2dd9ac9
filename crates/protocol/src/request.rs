//! What t2t asks of one child: a function, its arguments, and the walls around it.
//!
//! It does not know phases, ops or lanes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One action's child: a function of the harness, called once, in a fresh process or in one that stayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Names the request in every message about it. Not reused while the server lives.
    pub id: u64,
    /// The function, as `module:function`. It gets the arguments as its only parameter.
    pub function: String,
    /// A JSON value; the function sees dicts, lists, strings, numbers, booleans and None.
    pub arguments: Value,
    /// An existing folder: the child's working directory, `TMPDIR` and `HOME`. Absolute.
    pub scratch: String,
    /// The child's environment, over the few variables that every child gets.
    pub environment: BTreeMap<String, String>,
    /// What the child may use.
    pub limits: Limits,
    /// What the child may reach; `None` runs it without a sandbox.
    pub sandbox: Option<Sandbox>,
    /// The folder whose files are reported when they are opened or probed. Absolute.
    pub watch_under: Option<String>,
    /// The key of a [`WarmChild`] that may serve it. Where there is none, a child is forked as for any other.
    pub reserve: Option<String>,
    /// Whether a child that was made ready waits for another request with the same key once it has replied, instead of ending. Its walls stay as the first
    /// request has them. Only for functions that run no kernel code.
    pub stays: bool,
    /// Whether it measures, which a child that gets ready or ends would disturb. Once none does, or one takes unduly long, the file [`QUIET`] is put into its
    /// scratch folder, for which the function is to wait before it measures; from then on no child begins to get ready for the same device.
    pub undisturbed: bool,
    /// The last entry of [`crate::ClientHello::later`] that is to be imported before the child is forked, with all before it. `None`, or what is no
    /// entry, waits for nothing. A child that is ready serves it whatever that one waited for.
    pub needs: Option<String>,
}

/// A child that is made ready before there is a request for it: it has called a function that takes time, as the start of a device does, and waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmChild {
    /// What requests ask for it by.
    pub key: String,
    /// The function, as `module:function`. What it returns is dropped.
    pub function: String,
    /// Its only parameter; it gets none where this is null.
    pub arguments: Value,
    /// An existing folder of its own: its working directory, `TMPDIR` and `HOME` until there is a request. Absolute. A child that has one is forked at once, and
    /// leaves the device alone until the file [`GO`] is put there, which is when an action that measures nothing has the device, or until its request is there.
    pub scratch: Option<String>,
    /// Its environment, over the few variables that every child gets. That of the request replaces it.
    pub environment: BTreeMap<String, String>,
    /// The cores that it gets ready on, as in [`Limits::cores`].
    pub cores: Option<Vec<usize>>,
    /// What is to be imported before it is forked, as in [`Request::needs`].
    pub needs: Option<String>,
}

/// The variable that names the device of a child, or none where it is empty.
pub const DEVICE: &str = "CUDA_VISIBLE_DEVICES";

/// The file that tells a request that is [`Request::undisturbed`] to measure. It holds how many other children have started the device and do nothing there.
pub const QUIET: &str = "quiet";

/// The file that tells a child which gets ready with a folder of its own that it may use the device.
pub const GO: &str = "go";

/// What a child may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Milliseconds from the fork until everything of the action is killed.
    pub wall_ms: u64,
    /// Milliseconds of CPU time, all threads together.
    pub cpu_ms: Option<u64>,
    /// Bytes of memory that the action may hold over what it inherits from the server.
    pub memory_bytes: Option<u64>,
    /// Bytes that its scratch folder may hold, on the disk.
    pub scratch_bytes: Option<u64>,
    /// Bytes that the action may print on both streams. Without it output is unlimited, and cut.
    pub output_bytes: Option<u64>,
    /// Bytes of the reply, encoded.
    pub reply_bytes: u64,
    /// The cores that it runs on, as the kernel numbers them; `None` leaves it those of the server. Cores that the server may not use do
    /// not count, and where none is left the child keeps the server's.
    pub cores: Option<Vec<usize>>,
    /// How much it gives way to others, 0 to 19; `None` leaves it the server's niceness.
    pub nice: Option<i32>,
}

impl Limits {
    /// Limits the time alone; a reply may have 16 MiB.
    #[must_use]
    pub fn wall(milliseconds: u64) -> Self {
        Self {
            wall_ms: milliseconds,
            cpu_ms: None,
            memory_bytes: None,
            scratch_bytes: None,
            output_bytes: None,
            reply_bytes: 16 << 20,
            cores: None,
            nice: None,
        }
    }
}

/// What a sandboxed child may reach beside its scratch, the interpreter and the system's libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Files and folders to read. One that does not exist is skipped.
    pub read: Vec<String>,
    /// Files and folders to write, too.
    pub write: Vec<String>,
    /// Grants what CUDA needs: its devices and `/proc/self/task`.
    pub device: bool,
}
