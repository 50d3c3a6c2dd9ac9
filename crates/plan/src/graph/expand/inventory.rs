//! The inventory: the workspace and the machine, as far as results depend on them.
//!
//! It does not know which actions there are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use t2t_model::action::{DeviceClass, Phase, Source};
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_model::problem::Problem;
use t2t_spec::Variant;

/// The workspace and the machine, as far as results depend on them.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// Kernel files, those in CUDA C++ too, `cases.py` files and references by path, those that are missing too; and files that hold values of inputs.
    pub files: BTreeMap<String, KernelFile>,
    /// Template path → digest.
    pub templates: BTreeMap<String, Digest>,
    /// The digest of the summary's template.
    pub summary_template: Digest,
    /// The digest of the op catalogue.
    pub catalogue: Digest,
    /// The meaning of the harness files that each phase imports.
    pub harness: BTreeMap<Phase, Digest>,
    /// The meaning of those that the compile of CUDA C++ imports.
    pub harness_of_cuda: Digest,
    /// The meaning of those that the compile of CUDA C++ in a Python file imports.
    pub harness_of_inline: Digest,
    /// Versions: `torch`, `triton`, `ptxas`, `nvcc`, `cxx`, `python`, and `module.NAME` of the modules that baselines are of, where it is known.
    pub toolchain: BTreeMap<String, String>,
    /// The device lane.
    pub device: Device,
    /// Folders that kernels import from beside those that they do anyway.
    pub sources: Vec<String>,
    /// What is compiled for: id → row of the device table.
    pub targets: BTreeMap<String, Value>,
    /// The architectures that CUDA C++ is compiled for, as in `sm_90a`; those of PTX as in `compute_90`.
    pub architectures: Vec<String>,
    /// How much of autotuned kernels is compiled for it.
    pub configurations: Configurations,
    /// The kernel files that a generator writes: those that are not there, and those that are as it wrote them. They are not among the files above.
    pub generated: BTreeSet<String>,
    /// The digest of the embedded generator's files, where it writes any.
    pub generator: Option<Digest>,
    /// The digest of the template of what authors are asked.
    pub prompt: Digest,
    /// Op → the digest of the file that keeps its rounds of improvement, where there is one.
    pub rounds: BTreeMap<String, Digest>,
    /// What is published of a device, where kernels run in Triton's interpreter.
    pub elsewhere: Option<Elsewhere>,
}

/// What is published of a device that this machine lacks.
#[derive(Debug, Clone)]
pub struct Elsewhere {
    /// The device.
    pub device: Device,
    /// Op → the digest of what is published of it.
    pub ops: BTreeMap<String, Digest>,
}

/// How much of an autotuned kernel is compiled ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Configurations {
    /// Every configuration: one of them will be chosen.
    All,
    /// The first alone: there is no device to choose one, and no target was asked for.
    First,
}

/// The device lane, as far as results depend on it.
#[derive(Debug, Clone)]
pub struct Device {
    /// Interpreter, or a CUDA model.
    pub class: DeviceClass,
    /// The architecture, as in `sm_90`; `interpreter` for the interpreter.
    pub architecture: String,
    /// The driver's version, where there is one.
    pub driver: Option<String>,
}

/// A kernel file, a `cases.py` or a reference in Python, with all that it imports; or a file in CUDA C++, with all that it includes.
#[derive(Debug, Clone, Default)]
pub struct KernelFile {
    /// The file and the workspace files it imports.
    pub closure: BTreeMap<RepoPath, Source>,
    /// The module's docstring.
    pub docstring: Option<String>,
    /// Why it cannot be used.
    pub fault: Option<Problem>,
    /// What it binds; None where that is not known.
    pub binds: Option<Binds>,
    /// Whether it is in CUDA C++ and includes torch's headers: a Python file has torch build it (`load`).
    pub is_extension: bool,
}

/// The names that a Python file binds at module level.
#[derive(Debug, Clone, Default)]
pub struct Binds {
    /// Its own functions and classes.
    pub callables: Vec<String>,
    /// All others; `*` for an import of everything.
    pub names: Vec<String>,
}

impl Inventory {
    /// Returns why a file of a variant cannot be used for it. Of an installed module that is found out by importing it.
    #[must_use]
    pub fn fault(&self, variant: &Variant) -> Option<Problem> {
        let wrapper = self.files.get(&variant.file).and_then(|file| file.fault_for(variant));
        wrapper.or_else(|| self.files.get(variant.cuda.as_ref()?)?.fault.clone())
    }

    /// Returns whether the variant's Python file has torch build its CUDA C++, from texts (`load_inline`) or from files (`load`).
    #[must_use]
    pub fn is_extension(&self, variant: &Variant) -> bool {
        let file = variant.cuda.as_ref().and_then(|cuda| self.files.get(cuda));
        variant.is_inline() || file.is_some_and(|file| file.is_extension)
    }
}

impl KernelFile {
    /// Returns why the file cannot be used for a variant.
    #[must_use]
    pub fn fault_for(&self, variant: &Variant) -> Option<Problem> {
        self.fault.clone().or_else(|| lacks_entry(self.binds.as_ref()?, variant))
    }
}

fn lacks_entry(binds: &Binds, variant: &Variant) -> Option<Problem> {
    let first = variant.entry.split('.').next().unwrap_or_default();
    let there = |name: &str| binds.callables.iter().chain(&binds.names).any(|bound| bound == name);
    if there(first) || there("*") {
        return None;
    }
    let names: Vec<String> = binds.callables.iter().map(|name| format!("`{name}`")).collect();
    let has = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
    let message = format!("no callable `{first}`; the file has {has}");
    Some(Problem::of_file(&variant.file, message).with_hint("name the wrapper with `entry:` in ops.yaml"))
}
