//! The machine: its cores, devices and interpreters, the processes that t2t starts on it, what tells t2t to stop or to look again.
//!
//! The code map. A module uses only modules declared above it; `tests/core/layers.rs` holds it to that. It does not know actions, the graph, or what is kept of results.

pub mod worker;
pub mod cores;
pub mod device;
pub mod facts;
pub mod toolchain;
pub mod author;
pub mod cluster;
pub mod interrupt;
pub mod watch;
pub mod pool;
