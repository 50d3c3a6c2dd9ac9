//! Python's surroundings in a child: variables, streams, threads, and the watch over opened files.
//!
//! It does not know when it is called, nor what the function does.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use pyo3::{
    prelude::*,
    types::{PyDict, PyModule},
};
use t2t_protocol::Request;

use crate::{sandbox::Interpreter, watch};

/// The variables that a child keeps from the server; everything else is in the request.
const KEPT: [&str; 15] = [
    "CC",
    "CUDA_HOME",
    "CUDA_PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "OPENBLAS_NUM_THREADS",
    "PATH",
    "PYTHONHASHSEED",
    "PYTHONHOME",
    "PYTHONPATH",
    "TRITON_INTERPRET",
    "TZ",
    "VIRTUAL_ENV",
];

/// Sets up Python's environment, its streams and the watch, and finds the function to call.
pub(crate) fn prepare<'py>(
    py: Python<'py>,
    request: &Request,
    interpreter: &Interpreter,
) -> PyResult<Bound<'py, PyAny>> {
    replace(py, &request.environment, &request.scratch)?;
    set_streams(py)?;
    set_threads(py, request)?;
    if let Some(root) = &request.watch_under {
        watch::start(py, Path::new(root), unwatched(request, interpreter))?;
    }
    let (module, name) = request.function.split_once(':').unwrap_or((&request.function, "main"));
    PyModule::import(py, module)?.getattr(name)
}

/// Goes through `os.environ`, which keeps a copy beside C's `environ` and updates both.
pub(crate) fn replace(py: Python<'_>, environment: &BTreeMap<String, String>, home: &str) -> PyResult<()> {
    let mut variables: BTreeMap<&str, String> = BTreeMap::new();
    for name in KEPT {
        variables.extend(env::var(name).ok().map(|value| (name, value)));
    }
    for name in ["HOME", "TMPDIR"] {
        variables.insert(name, home.to_owned());
    }
    for (name, value) in environment {
        variables.insert(name, value.clone());
    }
    let environ = py.import("os")?.getattr("environ")?;
    environ.call_method0("clear")?;
    environ.call_method1("update", (variables,))?;
    // `tempfile` remembers the folder that it found first, which is the server's.
    py.import("tempfile")?.setattr("tempdir", py.None())
}

/// Flushes output by line, so that it reaches the server before a crash, and has a crash print its Python stack.
fn set_streams(py: Python<'_>) -> PyResult<()> {
    let options = PyDict::new(py);
    options.set_item("line_buffering", true)?;
    options.set_item("errors", "backslashreplace")?;
    let sys = py.import("sys")?;
    for name in ["stdout", "stderr"] {
        sys.getattr(name)?.call_method("reconfigure", (), Some(&options))?;
    }
    py.import("faulthandler")?.call_method0("enable").map(drop)
}

/// Sets torch's threads: OpenMP read its variable when the server loaded it, and does not read it again.
fn set_threads(py: Python<'_>, request: &Request) -> PyResult<()> {
    let wanted = request.environment.get("OMP_NUM_THREADS").and_then(|count| count.parse::<u32>().ok());
    let torch = py.import("sys")?.getattr("modules")?.call_method1("get", ("torch",))?;
    match wanted {
        Some(count) if !torch.is_none() => torch.call_method1("set_num_threads", (count.max(1),)).map(drop),
        _ => Ok(()),
    }
}

/// Lists folders that may lie under the watched folder but hold none of its sources.
fn unwatched(request: &Request, interpreter: &Interpreter) -> Vec<PathBuf> {
    let mut folders = interpreter.prefixes.clone();
    folders.extend(interpreter.harness.clone());
    folders.push(PathBuf::from(&request.scratch));
    let real: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    folders.extend(real);
    folders
}
