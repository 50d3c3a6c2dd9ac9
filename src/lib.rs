//! t2t: a declarative build system for repositories of Torch-to-Triton kernels.
//!
//! The layers. A crate uses only those below it; each arrow is named in a manifest:
//!
//! ```text
//!                      cli, reporter        commands, and all that prints
//!                            │
//!                     session, engine       the one loop: decide, perform, keep
//!          ┌─────────────────┼──────────────────┐
//!        plan              store               host        files and servers; devices and processes
//!     ┌────┴────┐            │            ┌──────┴─────┐
//!   spec      report         │          store       protocol ══ socket ══ worker, harness (Python)
//!     │         │            │
//!   python ── model ─────────┘               words, and what can be computed from them
//! ```
//!
//! Pure, without files, clocks or processes: [`t2t_model`] (words), [`t2t_python`] (what Python files mean), [`t2t_spec`] (ops.yaml), [`t2t_report`] (documents made
//! readable) and [`t2t_plan`] (what is to be done). They meet the outside here. It is in [`t2t_store`] (files, caches), [`t2t_host`] (devices, servers) and
//! [`t2t_protocol`] (what is said to the worker).
//!
//! Begin with [`session`], which reads a workspace, and [`engine`], which builds it. A module uses only modules declared above it; `tests/core/layers.rs` holds
//! it to that. `docs/architecture.md` says what each module must not know.

// The only place where the pure crates and the outside meet.
pub mod session;
pub mod engine;

// The only places that print.
mod reporter;
pub mod cli;
