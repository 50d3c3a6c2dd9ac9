//! Files: what a workspace holds, what the binary carries, what is kept of results, here and on servers.
//!
//! The code map. A module uses only modules declared above it; `tests/core/layers.rs` holds it to that. It does not know the graph, nor which results still stand.

pub mod fs;
mod hashing;
pub mod secrets;
pub mod kept;
pub mod assets;
pub mod fingerprint;
pub mod harness;
pub mod installed;
pub mod readable;
pub mod sources;
pub mod store;
pub mod node;
pub mod results;
pub mod git;
pub mod past;
