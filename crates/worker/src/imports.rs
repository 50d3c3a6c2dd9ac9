//! What the server imports: some of it before it serves, the rest in parts while it does.
//!
//! It does not know which modules matter, nor who needs them. One that cannot be imported is no failure of the server.

use std::{collections::VecDeque, thread};

use pyo3::{
    prelude::*,
    types::{PyIterator, PyModule},
};

/// The module whose own files are read beside other imports.
const TRITON: &str = "triton";

/// Imports all of `names`, one after the other, and returns those that failed, each with why.
pub(crate) fn all(py: Python<'_>, names: &[String]) -> Vec<(String, PyErr)> {
    let mut failed = Vec::new();
    let mut reading = None;
    for name in names {
        match whole(py, name) {
            Ok(()) if name == TRITON => reading = Some(thread::spawn(read_triton)),
            Ok(()) => {}
            Err(error) => failed.push((name.clone(), error)),
        }
    }
    // It takes turns with this thread at Python's lock.
    let read = reading.map(|thread| py.detach(|| thread.join()));
    if let Some(Ok(Err(error))) = read {
        failed.push((TRITON.to_owned(), error));
    }
    failed
}

/// Has Triton read all of its files, some 400 MB, whose digest it remembers; each child would do it again.
fn read_triton() -> PyResult<()> {
    Python::attach(|py| PyModule::import(py, "triton.runtime.cache")?.call_method0("triton_key").map(drop))
}

/// Does all of one entry: imports a module, or calls a function to its end.
fn whole(py: Python<'_>, name: &str) -> PyResult<()> {
    let mut left = part(py, name, None)?;
    while left.is_some() {
        left = part(py, name, left)?;
    }
    Ok(())
}

/// Takes what is there out of the collector's sight, so that a collection in a child does not copy its pages.
pub(crate) fn freeze(py: Python<'_>) -> PyResult<()> {
    let gc = py.import("gc")?;
    gc.call_method0("collect")?;
    gc.call_method0("freeze").map(drop)
}

/// What is still to be imported, and how far that has come.
#[derive(Debug, Default)]
pub(crate) struct Later {
    /// Modules, and functions as `module:function`. The first may be under way.
    names: VecDeque<String>,
    /// What the first has left to do, where it is a function that was called.
    parts: Option<Py<PyIterator>>,
    /// How many at the end are imported only once somebody waits for one.
    asked: usize,
}

impl Later {
    /// Imports nothing yet.
    pub(crate) fn new(mut names: Vec<String>, asked: Vec<String>) -> Self {
        let count = asked.len();
        names.extend(asked);
        Self { names: names.into(), parts: None, asked: count }
    }

    /// Says whether nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.names.is_empty()
    }

    /// Says whether nothing is left to do that nobody waits for.
    pub(crate) fn is_over_unasked(&self) -> bool {
        self.names.len() <= self.asked
    }

    /// Says whether a child can be forked that needs this entry and those before it. What is no entry is needed by nobody.
    pub(crate) fn has(&self, needs: Option<&str>) -> bool {
        needs.is_none_or(|needs| !self.names.iter().any(|name| name == needs))
    }

    /// Does the next part. Returns whether that was the last one of an entry.
    pub(crate) fn advance(&mut self) -> bool {
        let Some(name) = self.names.front() else { return false };
        let parts = self.parts.take();
        // What raises has no more parts; the children meet the same exception where it matters.
        self.parts = Python::attach(|py| {
            let left = part(py, name, parts).ok().flatten();
            if left.is_none() {
                freeze(py).ok();
            }
            left
        });
        if self.parts.is_none() {
            self.names.pop_front();
        }
        self.parts.is_none()
    }
}

/// Does the next part of an entry, and returns what is left of it.
fn part(py: Python<'_>, name: &str, parts: Option<Py<PyIterator>>) -> PyResult<Option<Py<PyIterator>>> {
    match (parts, name.split_once(':')) {
        (Some(parts), _) => {
            let more = parts.bind(py).clone().next().transpose()?;
            Ok(more.map(|_| parts))
        }
        (None, Some((module, function))) => {
            let parts = PyModule::import(py, module)?.getattr(function)?.call0()?;
            Ok(Some(parts.try_iter()?.unbind()))
        }
        (None, None) => PyModule::import(py, name).map(|_| None),
    }
}
