//! The toolchain: which Python runs the worker, and which torch and Triton are in it.
//!
//! Python is started once for an environment. What it said is kept under the state of the environment's files, so a build in which nothing is stale never
//! starts it. It does not know what the versions are used for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;
use t2t_spec::{Signatures, TorchNames};
use t2t_store::fingerprint::{Fingerprint, Observed};
use t2t_store::fs;
use t2t_store::installed::Places as Modules;
use t2t_store::kept;

/// The format of what is kept; another number is read as nothing. 1: first. 2: behind a digest. 3: names of aten with `_`. 4: where modules
/// are found, and what torch's functions take. 5: nvcc. 6: g++.
const VERSION: u32 = 6;

/// Where nvcc may come to lie without a trace in the environment, and the machine's C++ compiler.
const OF_MACHINE: [&str; 2] = ["/usr/local/cuda/bin/nvcc", "/usr/bin/g++"];

/// An interpreter, and why it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// The executable.
    pub path: PathBuf,
    /// Where t2t found it.
    pub found: Found,
}

/// Where an interpreter was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// `--python`.
    Option,
    /// `$T2T_PYTHON`.
    Variable,
    /// `$VIRTUAL_ENV`.
    Environment,
    /// `.venv` in the workspace.
    Workspace,
    /// The folder of the t2t binary.
    Beside,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Option => "--python",
            Self::Variable => "$T2T_PYTHON",
            Self::Environment => "$VIRTUAL_ENV",
            Self::Workspace => "the workspace's .venv",
            Self::Beside => "beside t2t",
        })
    }
}

/// Where to look, in the order of the fields.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `--python`.
    pub option: Option<PathBuf>,
    /// `$T2T_PYTHON`.
    pub variable: Option<PathBuf>,
    /// `$VIRTUAL_ENV`.
    pub environment: Option<PathBuf>,
    /// The workspace.
    pub workspace: PathBuf,
    /// The folder of the t2t binary.
    pub beside: Option<PathBuf>,
}

/// Returns the interpreter to use. The first place that is named decides, even if nothing is there; None where no place is named.
#[must_use]
pub fn find(places: &Places) -> Option<Interpreter> {
    let named = |path: &Option<PathBuf>, found| path.clone().map(|path| Interpreter { path, found });
    let environment = places.environment.as_ref().map(|folder| folder.join("bin/python"));
    let workspace = places.workspace.join(".venv/bin/python");
    let beside = places.beside.as_ref().map(|folder| folder.join("python"));
    named(&places.option, Found::Option)
        .or_else(|| named(&places.variable, Found::Variable))
        .or_else(|| named(&environment, Found::Environment).filter(|python| python.path.exists()))
        .or_else(|| workspace.exists().then_some(Interpreter { path: workspace, found: Found::Workspace }))
        .or_else(|| named(&beside, Found::Beside).filter(|python| python.path.exists()))
}

/// What a probe of an interpreter said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolchain {
    /// The environment's state at the probe.
    state: Digest,
    /// Where modules are found. The times of the folders of `sys.path` are part of the state.
    pub modules: Modules,
    /// Versions by name: `python`, `torch`, `triton`, `numpy`, `ptxas`, `nvcc`, `cxx`, and others.
    pub versions: BTreeMap<String, String>,
    /// Where nvcc is.
    pub nvcc: Option<PathBuf>,
    /// The functions that torch has.
    names: Vec<String>,
    /// What they take, where torch says so for certain.
    signatures: Signatures,
    /// Both, for who asks often.
    #[serde(skip)]
    known: Known,
}

/// The functions of a torch, put in order once. It is made of what else a toolchain has, so it tells no two apart.
#[derive(Debug, Clone, Default)]
struct Known(OnceLock<TorchNames>);

impl PartialEq for Known {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Known {}

impl Toolchain {
    /// Returns what a probe of `python` said, with the present state of its environment. `search` is what else says where things are found.
    #[must_use]
    pub fn new(
        python: &Path,
        search: Option<&OsStr>,
        modules: Modules,
        (versions, nvcc): (BTreeMap<String, String>, Option<PathBuf>),
        names: Vec<String>,
        signatures: Signatures,
    ) -> Self {
        Self {
            state: state(python, search, &modules.path, nvcc.as_deref()),
            modules,
            versions,
            nvcc,
            names,
            signatures,
            known: Known::default(),
        }
    }

    /// Returns what an earlier probe of `python` said, if it is kept under `cache` and the environment has not changed since.
    #[must_use]
    pub fn kept(cache: &Path, python: &Path, search: Option<&OsStr>) -> Option<Self> {
        let kept: Self = kept::read(&file(cache, python), VERSION)?;
        kept.stands(python, search).then_some(kept)
    }

    /// Returns whether the environment of `python` is as it was when this was told.
    #[must_use]
    pub fn stands(&self, python: &Path, search: Option<&OsStr>) -> bool {
        self.state == state(python, search, &self.modules.path, self.nvcc.as_deref())
    }

    /// Keeps what the probe said. A store that cannot be written costs the next build a probe, nothing else.
    pub fn keep(&self, cache: &Path, python: &Path) {
        let _ = kept::write(&file(cache, python), VERSION, self);
    }

    /// Returns fingerprints of what the versions depend on: the interpreter at `python`, its `pyvenv.cfg`, the folders of `sys.path`, nvcc. None if they have
    /// changed since the probe, or have a name that is not UTF-8.
    #[must_use]
    pub fn fingerprints(&self, python: &Path, search: Option<&OsStr>) -> Option<Vec<Fingerprint<'static>>> {
        let named = |path: &Path| Some(Cow::Owned(path.to_str()?.to_owned()));
        let state = |path: PathBuf| Some(Fingerprint { path: named(&path)?, was: Observed::State(fs::stat(&path)) });
        let time = |folder: &String| {
            Some(Fingerprint {
                path: Cow::Owned(folder.clone()),
                was: Observed::Time(fs::folder_time(Path::new(folder))),
            })
        };
        let own = [Some(python.to_owned()), settings(python)].into_iter().flatten();
        let files = own.chain(compilers(self.nvcc.as_deref())).map(state);
        let all: Option<Vec<_>> = files.chain(self.modules.path.iter().map(time)).collect();
        all.filter(|_| self.stands(python, search))
    }

    /// Returns the functions that torch has, or None where there is no torch.
    #[must_use]
    pub fn names(&self) -> Option<&TorchNames> {
        let ordered = || self.names.iter().cloned().collect::<TorchNames>().with(self.signatures.clone());
        (!self.names.is_empty()).then(|| self.known.0.get_or_init(ordered))
    }
}

fn file(cache: &Path, python: &Path) -> PathBuf {
    let name = Digest::of(python.to_string_lossy().as_bytes()).short();
    cache.join("toolchain").join(format!("{name}.json"))
}

/// Returns a digest of what changes when a package is installed: the interpreter's file, `pyvenv.cfg`, the folders of `sys.path`, variables, nvcc.
fn state(python: &Path, search: Option<&OsStr>, path: &[String], nvcc: Option<&Path>) -> Digest {
    let real = python.canonicalize().unwrap_or_else(|_| python.to_owned());
    let mut text = format!("{}\n{:?}\n", real.display(), fs::stat(&real));
    text += &format!("{:?}\n", settings(python).and_then(|file| fs::stat(&file)));
    text += &format!("{search:?}\n");
    for folder in path {
        text += &format!("{folder} {:?}\n", fs::folder_time(Path::new(folder)));
    }
    for nvcc in compilers(nvcc) {
        text += &format!("{} {:?}\n", nvcc.display(), fs::stat(&nvcc));
    }
    Digest::of(text.as_bytes())
}

/// Returns the places of compilers: nvcc as the probe found it, and where it looks last, and g++.
fn compilers(found: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    found.map(Path::to_owned).into_iter().chain(OF_MACHINE.map(PathBuf::from))
}

/// Returns the `pyvenv.cfg` of the environment of `python`.
fn settings(python: &Path) -> Option<PathBuf> {
    python.parent().and_then(Path::parent).map(|folder| folder.join("pyvenv.cfg"))
}
