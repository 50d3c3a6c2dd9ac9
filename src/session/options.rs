//! What a session is opened with.
//!
//! It does not know the environment and the command line, from which it is made.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use t2t_host::pool::Pool;
use t2t_host::toolchain::{Interpreter, Toolchain};
use t2t_plan::graph::expand::Configurations;
use t2t_spec::Spec;
use t2t_spec::executor::Executor;

use super::generated::Overwrite;

/// What a session is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interpreter, where one was found.
    pub python: Option<Interpreter>,
    /// `--device`.
    pub device: DeviceChoice,
    /// `--as-device`: the model of a device that this machine need not have.
    pub as_device: Option<String>,
    /// `--on`, or `$T2T_EXECUTOR`, which ops.yaml says otherwise; empty for this machine.
    pub executor: Option<String>,
    /// The store, where it is not the workspace's own.
    pub cache: Option<PathBuf>,
    /// `$CUDA_VISIBLE_DEVICES`.
    pub visible: Option<String>,
    /// The variables that say where an interpreter and nvcc are looked for, which are part of an interpreter's environment.
    pub search: Option<OsString>,
    /// `$TORCH_CUDA_ARCH_LIST`.
    pub architectures: Option<String>,
    /// `$T2T_HARNESS`.
    pub harness: Option<PathBuf>,
    /// `$T2T_DRIVER`: the folder in which NVIDIA's driver describes itself, where it is not the usual one.
    pub driver: Option<PathBuf>,
    /// The folder for bytecode of what interpreters have installed without any. None where none is to be kept.
    pub bytecode: Option<PathBuf>,
    /// Whether of what is published only that counts which somebody signed whom ops.yaml trusts.
    pub require_signed: bool,
    /// Whether the interpreter may be started, and for what.
    pub probing: Probing,
    /// How much of autotuned kernels is compiled where nobody says for which device.
    pub configurations: Configurations,
    /// Whether a generator may replace kernel files that persons wrote.
    pub overwrite: Overwrite,
    /// The generator that is asked in the place of the declared one, where one is named.
    pub generator: Option<Chosen>,
    /// Whether every kernel file counts as a person's: no generator makes any.
    pub takes_kernels_as_they_are: bool,
    /// The servers of an earlier session with the same interpreter, harness and devices, to be used further.
    pub pool: Option<Arc<Pool>>,
    /// What an earlier session was told of its interpreter, which is asked again only where that has changed.
    pub toolchain: Option<Arc<Toolchain>>,
}

impl Options {
    /// Returns the address of the cluster whose nodes perform what depends on a device, as it is written. None where none is named, by these or by `spec`.
    #[must_use]
    pub(crate) fn cluster<'a>(&'a self, spec: &'a Spec) -> Option<&'a str> {
        // One that cannot be read stops a build later.
        Executor::address(self.executor.as_deref(), spec.executor.as_ref()).ok().flatten()
    }
}

/// A generator that is asked in the place of the declared one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub generator: String,
    /// For which variants, as targets are written: `softmax`, `softmax/v1_baseline`. With wildcards.
    pub targets: Vec<String>,
}

/// Whether the interpreter may be started, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probing {
    /// For children, and to learn versions that are not known.
    Allowed,
    /// For children. There is no session where versions are not known.
    Known,
    /// For children and versions, but where nothing can be written unknown versions stay unknown.
    WhereItCan,
    /// For nothing: unknown versions stay unknown, and no child can be called.
    Never,
}

/// Which device lane was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CUDA devices where there are any, else the interpreter.
    Auto,
    /// The CUDA devices.
    Cuda,
    /// One CUDA device.
    CudaNumber(usize),
    /// The interpreter.
    Cpu,
}
