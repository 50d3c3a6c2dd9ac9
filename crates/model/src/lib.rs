//! The words of t2t: actions, their inputs, their records, and events about them. Data, and what can be computed from it alone.
//!
//! The code map. A module uses only modules declared above it; `tests/core/layers.rs` holds it to that. It does not know ops.yaml, graphs, files or processes.

pub mod digest;
pub mod path;
pub mod manifest;
pub mod action;
pub mod record;
pub mod history;
pub mod spans;
pub mod event;
pub mod foreign;
pub mod problem;
pub mod classes;
pub mod signature;
pub mod publication;
pub mod bundle;
