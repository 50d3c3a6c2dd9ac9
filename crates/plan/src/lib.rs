//! What is to be done: the graph of all actions, which of them have a result that stands, which may be decided now, and why; what runs next, and where.
//!
//! The code map. A module uses only modules declared above it; `tests/core/layers.rs` holds it to that. It does not know how anything is performed or kept.

pub mod graph;
pub mod decide;
pub mod schedule;
pub mod attempts;
pub mod explain;
pub mod affected;
pub mod dot;
pub mod functions;
pub mod imports;
pub mod dispatcher;
