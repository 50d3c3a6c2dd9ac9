//! The words that t2t and its Python worker exchange, and the frames that carry them.
//!
//! It does not know sockets, processes, Python or torch: two programs that were built apart agree on it, so it is
//! data, and the few pure rules that both sides must read alike.
//!
//! Code map, in order of dependency: `frame` (bytes on the wire) · `hello` (who is there) · `request` (what t2t asks) ·
//! `end` (how a child ended, and whose fault that is) · `message` (the two enums that travel). Then what a request's arguments and a reply hold, which the
//! worker passes on unread: `read` (text as a type, and what does not fit) · `init` (how values are drawn) · `declaration` (ops and variants) · `failure` (why something was rejected) · `reply` (what a function returns) · `asked` (what
//! each function is told) · `analyzed`, `compiled`, `checked`, `figures` (times), `telemetry` (of a device), `measured`, `calibrated`, `swept`, `screened`, `profiled` (documents) · `told` (what is no action's) · `documents` (which there are) · `schema` (all of these as a schema, and as Python).

mod frame;
mod hello;
mod request;
mod end;
mod message;
pub mod read;
mod init;
mod declaration;
mod failure;
mod reply;
mod asked;
mod analyzed;
mod compiled;
mod checked;
mod figures;
mod telemetry;
mod measured;
mod calibrated;
mod swept;
mod screened;
mod profiled;
mod told;
mod documents;
#[cfg(feature = "schema")]
pub mod schema;

pub use analyzed::*;
pub use asked::*;
pub use calibrated::*;
pub use checked::*;
pub use compiled::*;
pub use declaration::*;
pub use documents::*;
pub use end::{End, Fault, FaultClass, Output, Usage};
pub use failure::*;
pub use figures::*;
pub use frame::{FrameError, FrameReader, MAX_FRAME, encode};
pub use hello::{BYTECODE, ClientHello, Landlock, Missing, PRELOAD, SHARED, SPARE, ServerHello, ServerKind};
pub use init::*;
pub use measured::*;
pub use message::{Finished, FromWorker, ToWorker, Unfit, UnfitReason};
pub use profiled::*;
pub use reply::*;
pub use request::{DEVICE, GO, Limits, QUIET, Request, Sandbox, WarmChild};
pub use screened::*;
pub use swept::*;
pub use telemetry::*;
pub use told::*;

/// The version of the protocol. Both sides refuse another one.
///
/// History:
/// - 1: hello, run, cancel, shutdown; started, finished, unfit.
/// - 2: limits name the cores of a child and its niceness.
/// - 3: children that are made ready before their request.
/// - 4: a server is told that it may rest.
/// - 5: children that stay for more than one request, and say when they are ready; requests that wait for that; a server serves before it has imported everything, and requests say
///   what they need of the rest.
/// - 6: servers of the children on CUDA devices; a server tells when it has imported everything.
/// - 7: children get ready with arguments and a folder of their own, and the server tells when they are; what measures is told when nothing disturbs it; what is imported only once it is
///   asked for, of which nothing is told any more; children that are ready can be dismissed; a child that has replied is done, though its process takes time to end.
/// - 8: a server tells whether its children get namespaces of their own; limits say what a scratch folder may hold.
/// - 10: a process may fork a second server from the same imports.
pub const VERSION: u32 = 10;
