//! t2t: a declarative build system for repositories of Torch-to-Triton kernels.
//!
//! The code map. A module uses only modules declared above it; `tests/core/layers.rs` holds it to that. What is not here is in `crates/`: pure code in `model`, `python`, `spec`,
//! `report` and `plan`; files, processes and devices in `store` and `host`.

// The only place where the pure crates and the outside meet.
pub mod session;
pub mod engine;

// The only places that print.
mod reporter;
pub mod cli;
