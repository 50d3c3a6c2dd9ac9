//! What differs between the forms in which kernels are exported: where the Python lies, and what is beside it.
//!
//! It does not know the ops.

use super::super::ExportForm;
use super::super::error::CliError;
use super::text::VERSION;

/// How functions find their kernels.
const DISPATCH: &str = include_str!("../../../assets/export/dispatch.py");

/// How they become operators of torch.
const OPERATORS: &str = include_str!("../../../assets/export/operators.py");

/// What holds them to torch's rules for operators.
const OPERATOR_TESTS: &str = include_str!("../../../assets/export/operator_tests.py");

/// The flake of every project of kernel-builder.
const FLAKE: &str = include_str!("../../../assets/export/flake.nix");

/// What an exported package and its tests import, and what torch and Triton cannot do without.
const SHADOWED: [&str; 28] = [
    "ast",
    "collections",
    "contextlib",
    "ctypes",
    "functools",
    "importlib",
    "inspect",
    "json",
    "logging",
    "math",
    "numpy",
    "os",
    "pathlib",
    "pickle",
    "pytest",
    "re",
    "subprocess",
    "sys",
    "test_operators",
    "test_ops",
    "tests",
    "threading",
    "torch",
    "triton",
    "types",
    "typing",
    "warnings",
    "zlib",
];

/// Fails, as bad use, where a package of this form cannot have the name.
pub(super) fn may_be_named(form: ExportForm, package: &str) -> Result<(), CliError> {
    if SHADOWED.contains(&package) {
        let message = format!("a package `{package}` would hide the one that its own kernels import");
        return Err(CliError::misuse(message, "write `--name my_kernels`"));
    }
    let is_of_hub = package.starts_with(|letter: char| letter.is_ascii_lowercase())
        && !package.ends_with('_')
        && package.len() > 1
        && package.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if form == ExportForm::HfKernel && !is_of_hub {
        let message = format!("`{package}` is no name of a kernel for Hugging Face's kernel-builder");
        return Err(CliError::misuse(message, "use small letters, digits and `_` between them: `--name my_kernels`"));
    }
    Ok(())
}

/// Returns the folder of the Python package.
pub(super) fn home(form: ExportForm, package: &str) -> String {
    match form {
        ExportForm::Package | ExportForm::TorchLibrary => format!("src/{package}"),
        ExportForm::HfKernel => format!("torch-ext/{package}"),
    }
}

/// Returns the files that do not depend on the ops: path → text.
pub(super) fn files(form: ExportForm, package: &str) -> Vec<(String, String)> {
    let home = home(form, package);
    let mut found = vec![(format!("{home}/_dispatch.py"), DISPATCH.to_owned())];
    match form {
        ExportForm::Package => found.push(("pyproject.toml".to_owned(), project(package, "torch"))),
        ExportForm::TorchLibrary => found.extend([
            ("pyproject.toml".to_owned(), project(package, "torch>=2.4")),
            (format!("{home}/_operators.py"), OPERATORS.to_owned()),
            ("tests/test_operators.py".to_owned(), OPERATOR_TESTS.to_owned()),
        ]),
        ExportForm::HfKernel => {
            found.extend([("build.toml".to_owned(), build(package)), ("flake.nix".to_owned(), FLAKE.to_owned())]);
        }
    }
    found
}

/// Returns how it is used, for `README.md`.
pub(super) fn usage(form: ExportForm, package: &str) -> String {
    let installed =
        format!("    pip install .\n    pip install pytest && pytest tests\n\n```python\nimport {package}\n```\n");
    match form {
        ExportForm::Package => installed,
        ExportForm::TorchLibrary => format!(
            "{installed}\nEach function is an operator of torch, `torch.ops.{package}`: `torch.compile` takes it as it is, also with `fullgraph=True`. \
             An operator cannot keep what its kernel computed, so the gradient runs the kernel again before its own backward. Results are contiguous.\n"
        ),
        ExportForm::HfKernel => "It is a project for Hugging Face's [kernel-builder](https://huggingface.co/docs/kernels). Write the license of your kernels in `build.toml`, where it says `unknown`.\n\n    \
             kernel-builder build-and-copy\n    pip install pytest && PYTHONPATH=torch-ext pytest tests\n"
            .to_owned(),
    }
}

fn project(name: &str, torch: &str) -> String {
    format!(
        "# Written by `t2t export`.\n\
         [build-system]\nrequires = [\"setuptools>=77\"]\nbuild-backend = \"setuptools.build_meta\"\n\n\
         [project]\nname = {distribution:?}\nversion = {VERSION:?}\n\
         description = \"Operations of torch by kernels in Triton\"\nreadme = \"README.md\"\n\
         requires-python = \">=3.10\"\ndependencies = [{torch:?}, \"triton\"]\n\n\
         [project.optional-dependencies]\ntest = [\"pytest\"]\n\n\
         [tool.setuptools.packages.find]\nwhere = [\"src\"]\n\n\
         [tool.setuptools.package-data]\n\"*\" = [\"*.json\"]\n",
        distribution = name.replace('_', "-"),
    )
}

fn build(name: &str) -> String {
    format!(
        "# Written by `t2t export`.\n[general]\nname = {:?}\nversion = 1\nedition = 5\n\
         # Write that of your kernels.\nlicense = \"unknown\"\nbackends = [\"cuda\"]\n\n\
         # Python and Triton alone: nothing is compiled before it runs.\n[torch-noarch]\npyext = [\"py\", \"json\"]\n",
        name.replace('_', "-"),
    )
}
