//! t2t: a declarative build system for repositories of Torch-to-Triton kernels.
//!
//! The code map. A module uses only modules declared above it; `tests/it/layers.rs` holds it to that.

// Words: data only.

// Core: pure. No file, clock, environment, process or thread.
pub mod imports;

// Outside: each file owns one thing.
pub mod worker;
pub mod cores;
pub mod device;
pub mod toolchain;
pub mod interrupt;
pub mod watch;
pub mod pool;

// Engine: the only place where the core and the outside meet.
pub mod session;
pub mod engine;

// Views and the command line: the only places that print.
pub mod reporter;
pub mod cli;
