//! The server's imports: some before it serves, the rest in parts while it serves.
//!
//! It does not know which modules matter, nor who needs them. A module that cannot be imported is no failure of the server.

use std::{collections::VecDeque, thread};

use pyo3::{
    prelude::*,
    types::{PyIterator, PyModule},
};

/// The module whose own files are read beside other imports.
const TRITON: &str = "triton";

/// Imports all of `names`, one after the other, and returns those that failed, each with why. `reads_triton` says whether children will ask for the digest of Triton's own files.
pub(crate) fn all(py: Python<'_>, names: &[String], reads_triton: bool) -> Vec<(String, PyErr)> {
    let mut failed = Vec::new();
    let mut reading = None;
    for name in names {
        match whole(py, name) {
            // Reading 400 MB takes long, so it goes on beside the imports that follow.
            Ok(()) if reads_triton && name == TRITON => reading = Some(thread::spawn(read_triton)),
            Ok(()) => {}
            Err(error) => failed.push((name.clone(), error)),
        }
    }
    // The reader needs Python's lock in turns, so this thread releases it while it waits.
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

/// Does one entry whole: imports a module, or runs a function to its end.
fn whole(py: Python<'_>, name: &str) -> PyResult<()> {
    let mut left = part(py, name, None)?;
    while left.is_some() {
        left = part(py, name, left)?;
    }
    Ok(())
}

/// Turns the garbage collector off. Imports make hundreds of thousands of objects that stay, and collections, which look through them again and again, take an eighth of the imports' time.
pub(crate) fn stop_collecting(py: Python<'_>) -> PyResult<()> {
    py.import("gc")?.call_method0("disable").map(drop)
}

/// Turns the garbage collector on again, in a child.
pub(crate) fn collect_again(py: Python<'_>) -> PyResult<()> {
    py.import("gc")?.call_method0("enable").map(drop)
}

/// Freezes the garbage collector on all present objects. Otherwise a collection in a child would write to their headers, and so copy the server's pages.
///
/// What imports left as garbage stays: it is little, and to look for it takes as long as a tenth of the imports.
pub(crate) fn freeze(py: Python<'_>) -> PyResult<()> {
    py.import("gc")?.call_method0("freeze").map(drop)
}

/// The imports that are left, and the progress of the first one.
#[derive(Debug, Default)]
pub(crate) struct Later {
    /// Modules, and functions as `module:function`. The first may be under way.
    names: VecDeque<String>,
    /// The rest of the first entry, if it is a function that was called.
    parts: Option<Py<PyIterator>>,
    /// How many entries at the end are imported only once somebody waits for one.
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

    /// Says whether all entries are done but those that need somebody to wait for them.
    pub(crate) fn is_over_unasked(&self) -> bool {
        self.names.len() <= self.asked
    }

    /// Says whether this entry and those before it are done, so that a child that needs them can be forked. True for a name that is no entry.
    pub(crate) fn has(&self, needs: Option<&str>) -> bool {
        needs.is_none_or(|needs| !self.names.iter().any(|name| name == needs))
    }

    /// Does the next part. Returns whether it finished an entry.
    pub(crate) fn advance(&mut self) -> bool {
        let Some(name) = self.names.front() else { return false };
        let parts = self.parts.take();
        // An entry that raises is over; children that need it meet the same exception.
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
