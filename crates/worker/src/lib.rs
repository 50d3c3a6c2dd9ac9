//! The fork server of t2t: an extension module that the user's own Python hosts.
//!
//! It does not know ops, kernels, torch or Triton: it imports the modules that its hello names, forks a child for each request, calls a function there, and
//! reports how the child ended. The server never runs a tensor operation and has one thread.
//!
//! Code map; a module uses only those above it. Plain: `kin` (processes, by /proc and wait) · `capture` (bounded output) · `channel` (a child's reports to its
//! server) · `control` (the socket to t2t) · `convert` (JSON and Python) · `pipes` (between a child and its server) · `ready` (one warm child) · `quiet` (tells
//! a measurement that nothing disturbs it) · `files` (a folder's size) · `launches` (kernels, by CUPTI) · `running_child` (one child, seen from outside). In
//! the child: `watch` (the files it opens) · `powers` (capabilities) · `calls` (system calls) · `apart` (namespaces) · `sandbox` · `environment` (what Python
//! finds) · `orders` (where requests come from) · `child`. In the server: `pages` (large ones) · `imports` (before it serves, and after) · `warm_pool`
//! (children ready before their request) · `leaving` (children that have replied) · `server` (the loop) ·
//! `spare` (a second server from the same imports) · `start` (hello and the first imports).

mod kin;
mod capture;
mod channel;
mod control;
mod convert;
mod pipes;
mod ready;
mod quiet;
mod files;
mod launches;
mod running_child;
mod watch;
mod powers;
mod calls;
mod apart;
mod sandbox;
mod environment;
mod orders;
mod child;
mod pages;
mod imports;
mod warm_pool;
mod leaving;
mod server;
mod spare;
mod start;

use std::{convert::Infallible, path::PathBuf};

use pyo3::prelude::*;

/// Serves t2t over the socket on standard input. It ends the process and never returns.
#[pyfunction]
fn serve(py: Python<'_>) -> PyResult<()> {
    let never: Infallible = start::serve(py)?;
    match never {}
}

/// Reports a file that was looked for, whether or not it exists; for finders, whose `stat` raises no audit event.
///
/// Outside a watched child it does nothing.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 makes the argument")]
fn note_probe(path: PathBuf) {
    watch::note(&path);
}

/// Takes from this process the power to signal others. For a child that forks, so that kernel code in a fork cannot end the child.
#[pyfunction]
fn keep_signals_in() {
    sandbox::keep_signals_in();
}

/// Tells a child that gets ready before its request whether the request is there: what it could leave out is in the way from then on.
///
/// In any other process it is False.
#[pyfunction]
fn is_awaited() -> bool {
    child::is_awaited()
}

/// Begins to count the kernels that this process launches; returns whether it does, which needs CUPTI to be loaded.
#[pyfunction]
fn count_launches() -> bool {
    launches::begin()
}

/// Ends counting; returns the names of all kernels that were launched, and of those outside of any work that is accounted for.
#[pyfunction]
fn counted_launches() -> (Vec<String>, Vec<String>) {
    launches::end()
}

/// Says that this thread begins work whose launches are accounted for.
#[pyfunction]
fn enter_work() {
    launches::enter();
}

/// Says that this thread has ended the work that it began last; returns the names of the kernels that it launched.
#[pyfunction]
fn leave_work() -> Vec<String> {
    launches::leave()
}

#[pymodule]
fn t2t_worker(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PROTOCOL", t2t_protocol::VERSION)?;
    module.add_function(wrap_pyfunction!(serve, module)?)?;
    module.add_function(wrap_pyfunction!(note_probe, module)?)?;
    module.add_function(wrap_pyfunction!(keep_signals_in, module)?)?;
    module.add_function(wrap_pyfunction!(count_launches, module)?)?;
    module.add_function(wrap_pyfunction!(counted_launches, module)?)?;
    module.add_function(wrap_pyfunction!(enter_work, module)?)?;
    module.add_function(wrap_pyfunction!(leave_work, module)?)?;
    module.add_function(wrap_pyfunction!(is_awaited, module)?)
}
