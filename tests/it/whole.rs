//! Corpora of kernels whose verdicts take minutes: each run of the tests judges a part of them, and the whole is judged where something changed that a verdict depends on.
//!
//! `tests/whole.json` has, for each corpus, the digest of all that was so when the whole of it passed last: the functions of the harness that judge, and the files of the corpus. A test
//! holds it to what there is now; the run of the whole writes it (`CONTRIBUTING.md`). It is a file of its own, as two of the test targets have it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use t2t_model::action::Phase;
use t2t_model::digest::Digest;
use t2t_store::harness::Harness;

/// A corpus.
#[derive(Debug, Clone, Copy)]
pub struct Corpus {
    /// Its name in `whole.json`.
    pub name: &'static str,
    /// The phases of the harness that its tests call.
    phases: &'static [Phase],
    /// Whether its tests are of all modules of the harness, whoever imports them.
    is_of_all_modules: bool,
    /// Its files, and the folders of some: below the repository's root.
    files: &'static [&'static str],
}

/// What a check on the interpreter calls.
const CHECKS: &[Phase] = &[Phase::Analyze, Phase::Check];

/// Kernels in the manner of libraries.
pub const ADOPTION: Corpus = Corpus {
    name: "adoption",
    phases: CHECKS,
    is_of_all_modules: false,
    files: &["tests/adoption", "tests/it/adoption.rs"],
};

/// Mutants of honest kernels.
pub const MUTANTS: Corpus = Corpus {
    name: "mutants",
    phases: CHECKS,
    is_of_all_modules: false,
    files: &["tests/mutants", "tests/adoption", "ops.yaml", "kernels", "tests/it/mutants.rs"],
};

/// One kernel of each template of the generator.
pub const GENERATED: Corpus = Corpus {
    name: "generated",
    phases: CHECKS,
    is_of_all_modules: false,
    files: &["crates/generate", "assets/generators", "tests/it/generated.rs"],
};

/// Kernels of each kind of `KernelBench`'s level 1.
pub const LEVEL1: Corpus =
    Corpus { name: "level1", phases: CHECKS, is_of_all_modules: false, files: &["tests/level1", "tests/it/level1.rs"] };

/// The example of kernels with gradients, of which each run builds one op.
pub const GRADIENTS: Corpus = Corpus {
    name: "gradients",
    phases: CHECKS,
    is_of_all_modules: false,
    files: &["examples/gradients", "tests/it/examples.rs"],
};

/// The suite of the harness where Triton is its interpreter, most of which is kernels.
pub const SUITE: Corpus = Corpus {
    name: "suite",
    phases: &[],
    is_of_all_modules: true,
    files: &[
        "tests/gpu_kernels/modules",
        "tests/python/interpreter",
        "tests/python/conftest.py",
        "tests/python/children.py",
        "tests/python/preloaded.py",
        "kernels",
    ],
};

/// The suite of the harness where Triton compiles.
pub const COMPILER_SUITE: Corpus = Corpus {
    name: "compiler_suite",
    phases: &[],
    is_of_all_modules: true,
    files: &[
        "tests/python/compiled",
        "tests/python/cuda_host",
        "tests/python/conftest.py",
        "tests/python/children.py",
        "tests/python/preloaded.py",
        "kernels",
        "examples/cuda",
    ],
};

/// The kernels of this repository, as they are compiled: none of it is done in each run.
pub const KERNELS: Corpus = Corpus {
    name: "kernels",
    phases: &[Phase::Compile],
    is_of_all_modules: false,
    files: &["ops.yaml", "kernels", "tests/it/kernel_names.rs"],
};

/// What takes nvcc and torch's headers most of a minute to compile, each.
pub const CUDA: Corpus = Corpus {
    name: "cuda",
    phases: &[Phase::Compile],
    is_of_all_modules: false,
    files: &[
        "python/t2t_harness/cuda",
        "python/t2t_harness/phases/compile_cuda.py",
        "python/t2t_harness/phases/compile_inline.py",
        "crates/cuda/src",
        "examples/cuda",
        "tests/it/cuda.rs",
        "tests/it/extensions.rs",
    ],
};

/// Kernels that are wrong on purpose, or try to look better than they are.
pub const HOSTILE: Corpus = Corpus {
    name: "hostile",
    phases: &[Phase::Analyze, Phase::Check, Phase::Baseline, Phase::Bench],
    is_of_all_modules: false,
    files: &["tests/hostile", "crates/worker/src", "tests/it/hostile.rs"],
};

/// What is exported, used and tested without t2t: each such process imports torch anew, and some compile.
pub const EXPORT: Corpus = Corpus {
    name: "export",
    phases: CHECKS,
    is_of_all_modules: false,
    files: &[
        "assets/export",
        "assets/generators",
        "crates/generate",
        "src/cli/export",
        "src/cli/export.rs",
        "examples/adopted",
        "examples/reference",
        "kernels/layernorm/v4_optimized.py",
        "tests/it/export.rs",
        "tests/it/export_forms.rs",
    ],
};

/// All of them.
pub const ALL: [Corpus; 11] =
    [ADOPTION, MUTANTS, GENERATED, LEVEL1, GRADIENTS, SUITE, COMPILER_SUITE, KERNELS, CUDA, HOSTILE, EXPORT];

/// Of so many kernels of a corpus, or tests of a suite, each run of the tests has one.
pub const PART: usize = 32;

impl Corpus {
    /// Returns the digest of all that its verdicts depend on, in the repository at `root`.
    pub fn digest(&self, root: &Path) -> Digest {
        let known = tempfile::tempdir().unwrap();
        let harness = Harness::open(Some(&root.join("python"))).unwrap().meanings(known.path());
        let mut bytes = Vec::new();
        for phase in self.phases {
            bytes.extend(harness.phases.get(phase).into_iter().flat_map(Digest::as_bytes));
        }
        let modules = if self.is_of_all_modules { files(&root.join("python/t2t_harness")) } else { Vec::new() };
        for file in modules.iter().filter(|file| file.extension().is_some_and(|ending| ending == "py")) {
            bytes.extend(file.strip_prefix(root).unwrap().to_string_lossy().as_bytes());
            bytes.extend(t2t_python::read_as_run(&fs::read(file).unwrap()).meaning.as_bytes());
        }
        for file in self.files.iter().flat_map(|name| files(&root.join(name))) {
            bytes.extend(file.strip_prefix(root).unwrap().to_string_lossy().as_bytes());
            bytes.extend(Digest::of(&fs::read(&file).unwrap()).as_bytes());
        }
        Digest::of(&bytes)
    }

    /// Notes that the whole of it passed as it is now.
    pub fn note(&self, root: &Path) {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _held = ONE_AT_A_TIME.lock().unwrap();
        let mut noted = noted(root);
        noted.insert(self.name.to_owned(), self.digest(root).to_string());
        fs::write(root.join(FILE), serde_json::to_string_pretty(&noted).unwrap() + "\n").unwrap();
    }
}

/// Where the digests are noted.
const FILE: &str = "tests/whole.json";

/// Returns, by corpus, the digest of what there was when the whole of it passed last.
pub fn noted(root: &Path) -> BTreeMap<String, String> {
    fs::read(root.join(FILE)).map_or_else(|_| BTreeMap::new(), |text| serde_json::from_slice(&text).unwrap())
}

/// Lists a file, or the files below a folder but for what Python makes there, in order.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut inside: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    inside.retain(|path| path.file_name().is_some_and(|name| name != "__pycache__"));
    inside.sort();
    inside.iter().flat_map(|path| files(path)).collect()
}
