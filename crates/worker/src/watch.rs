//! The files that a child opens, by Python's audit events, reported to the server as they happen.
//!
//! It does not know which of them matter. `open` events come before the file is opened, so an absent file is reported, too. A `stat` raises no event; code that
//! relies on one reports it through `note_probe`. Files that C++ code opens are not seen.

use std::{
    collections::HashSet,
    env,
    path::{Component, Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use pyo3::{
    prelude::*,
    types::{PyCFunction, PyDict, PyTuple},
};

use crate::channel;

/// The watched folder, and the parts of it that are not watched.
#[derive(Debug)]
struct Watch {
    /// The folder as it was given, and as the system calls it.
    roots: [PathBuf; 2],
    /// The scratch folder, the interpreter and the harness may lie inside the root.
    skipped: Vec<PathBuf>,
    seen: Mutex<HashSet<String>>,
}

static WATCH: OnceLock<Watch> = OnceLock::new();

/// Watches the files of this process under `root`, except those under `skipped`.
pub(crate) fn start(py: Python<'_>, root: &Path, skipped: Vec<PathBuf>) -> PyResult<()> {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let watch = Watch { roots: [normal(root), real], skipped, seen: Mutex::default() };
    // A child starts watching once.
    WATCH.set(watch).ok();
    let hook = PyCFunction::new_closure(py, None, None, |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        heard(args);
    })?;
    py.import("sys")?.call_method1("addaudithook", (hook,))?;
    Ok(())
}

/// Looks at one audit event: `open` has a path (or a descriptor), `import` the file of an extension module.
fn heard(args: &Bound<'_, PyTuple>) {
    let Some(path) = path_of_event(args) else { return };
    note(&path);
}

fn path_of_event(args: &Bound<'_, PyTuple>) -> Option<PathBuf> {
    let event = args.get_item(0).ok()?;
    let place = match event.cast::<pyo3::types::PyString>().ok()?.to_str().ok()? {
        "open" => 0,
        "import" => 1,
        _ => return None,
    };
    let value = args.get_item(1).ok()?.cast::<PyTuple>().ok()?.get_item(place).ok()?;
    if let Ok(bytes) = value.cast::<pyo3::types::PyBytes>() {
        return Some(PathBuf::from(String::from_utf8_lossy(bytes.as_bytes()).into_owned()));
    }
    value.extract().ok()
}

/// Reports a file, once, if it is watched.
pub(crate) fn note(path: &Path) {
    let Some(watch) = WATCH.get() else { return };
    let Some(name) = watch.name(path) else { return };
    let mut seen = watch.seen.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.insert(name.clone()) {
        channel::opened(&name);
    }
}

impl Watch {
    /// Returns the path relative to the root, `None` if it lies elsewhere.
    fn name(&self, path: &Path) -> Option<String> {
        let path = source_of(normal(path));
        if self.skipped.iter().any(|folder| path.starts_with(folder)) {
            return None;
        }
        let relative = self.roots.iter().find_map(|root| path.strip_prefix(root).ok())?;
        let name = relative.to_string_lossy().into_owned();
        (!name.is_empty()).then_some(name)
    }
}

/// Makes a path absolute and takes `.` and `..` out of it, without looking at the disk.
fn normal(path: &Path) -> PathBuf {
    let mut normal = if path.is_absolute() { PathBuf::new() } else { env::current_dir().unwrap_or_default() };
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

/// Returns the source of a compiled file, `a/__pycache__/b.cpython-311.pyc` being `a/b.py`: what Python loaded depends
/// on the source, which it may not have opened.
fn source_of(path: PathBuf) -> PathBuf {
    let source = || {
        let folder = path.parent().filter(|folder| folder.ends_with("__pycache__"))?;
        let module = path.file_name()?.to_str()?.split_once('.')?.0;
        Some(folder.parent()?.join(module).with_extension("py"))
    };
    source().unwrap_or(path)
}
