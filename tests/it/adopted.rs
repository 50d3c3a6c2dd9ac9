//! Kernels that lie elsewhere, with the real interpreter: in packages of the workspace, and in what is installed, by each way of installing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::environment;
use crate::workspace::{Ran, Workspace, finished};

/// An op whose only kernel is elsewhere.
const OPS: &str = "version: 1
defaults: {variants: [own], check: {seeds: 1}}
ops:
  relu:
    torch: torch.nn.functional.relu
    inputs: {input: [M, N]}
";

const KERNEL: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        relu_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
";

fn broken() -> String {
    KERNEL.replace("0.0, x)", "0.0, x + 1)")
}

/// A workspace whose kernel file holds only this.
fn importing(text: &str) -> Workspace {
    let workspace = Workspace::with_zygote(OPS);
    workspace.write("kernels/relu/own.py", text);
    workspace
}

/// Checks the kernel, with the interpreter `python` and this on its path.
fn checked(workspace: &Workspace, python: Option<&Path>, path: Option<&Path>) -> Ran {
    let mut command = workspace.command(&["build", "--device", "cpu", "relu/own:check"]);
    if let Some(path) = path {
        let all = std::env::var_os("T2T_TEST_MODULE").map(PathBuf::from).into_iter().chain([path.to_owned()]);
        command.env("PYTHONPATH", std::env::join_paths(all).unwrap());
    }
    if let Some(python) = python {
        command.env("T2T_PYTHON", python);
    }
    finished(command)
}

/// Fails unless a build ends with this outcome of the check.
#[track_caller]
fn comes_to(workspace: &Workspace, ran: &Ran, outcome: &str) {
    assert_eq!(workspace.outcome("relu/own:check"), outcome, "{}", ran.told);
}

#[test]
fn a_package_that_is_installed_broken_and_mended_is_judged_each_time() {
    let workspace = importing("from mykernels.relu import triton_relu  # noqa: F401\n");
    let site = workspace.path("home/site");
    let check = || checked(&workspace, None, Some(&site));
    let ran = check();
    comes_to(&workspace, &ran, "exception");
    assert!(
        ran.told.contains("No module named 'mykernels'") && ran.told.contains("hint: kernels import"),
        "{}",
        ran.told
    );
    fs::create_dir_all(site.join("mykernels")).unwrap();
    fs::write(site.join("mykernels/relu.py"), KERNEL).unwrap();
    comes_to(&workspace, &check(), "passed");
    fs::write(site.join("mykernels/relu.py"), broken()).unwrap();
    comes_to(&workspace, &check(), "mismatch");
    fs::write(site.join("mykernels/relu.py"), KERNEL).unwrap();
    let kept = workspace.kept_by(|| {
        let ran = check();
        assert!(ran.told.contains("restored 1, ran 0"), "{}", ran.told);
    });
    assert_eq!(kept, ["relu/own:check"]);
    comes_to(&workspace, &check(), "passed");
}

/// Makes an environment of Python over that of the tests, and returns its interpreter.
fn environment_over(folder: &Path) -> PathBuf {
    let base = environment::python();
    let ask = |program: &str| {
        let output = Command::new(&base).args(["-c", program]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let made = Command::new(&base).args(["-m", "venv", "--without-pip"]).arg(folder).status().unwrap();
    assert!(made.success(), "python -m venv");
    let below =
        ask("import sysconfig; print(sysconfig.get_path('purelib', vars={'base': '', 'platbase': ''}).lstrip('/'))");
    let above = ask("import sysconfig; print(sysconfig.get_path('purelib'))");
    fs::write(folder.join(below).join("above.pth"), above).unwrap();
    folder.join("bin/python")
}

/// Installs what lies in `source` as it lies there.
fn install_editable(python: &Path, source: &Path) {
    let arguments = ["pip", "install", "-q", "--offline", "--no-build-isolation", "--no-deps", "-e"];
    let output = Command::new("uv").args(arguments).arg(source).arg("--python").arg(python).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn editable_installs_are_read_and_seen_to_change_whichever_way_they_are_found() {
    for layout in ["src/mykernels", "mykernels"] {
        let workspace = importing("from mykernels.relu import triton_relu  # noqa: F401\n");
        let python = environment_over(&workspace.path("home/environment"));
        let source = workspace.path("home/source");
        let module = source.join(layout).join("relu.py");
        fs::create_dir_all(module.parent().unwrap()).unwrap();
        fs::write(module.with_file_name("__init__.py"), "").unwrap();
        fs::write(&module, KERNEL).unwrap();
        let project = "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n[project]\nname = \"mykernels\"\nversion = \"0.1\"\n";
        fs::write(source.join("pyproject.toml"), project).unwrap();
        let check = || checked(&workspace, Some(&python), None);
        comes_to(&workspace, &check(), "exception");
        install_editable(&python, &source);
        comes_to(&workspace, &check(), "passed");
        fs::write(&module, broken()).unwrap();
        comes_to(&workspace, &check(), "mismatch");
    }
}

#[test]
fn packages_of_the_workspace_are_imported_and_what_is_nobody_elses_cannot_be_read() {
    let workspace = importing("from mine.deep.relu import triton_relu  # noqa: F401\n");
    workspace.write("mine/deep/relu.py", KERNEL);
    let check = || checked(&workspace, None, None);
    comes_to(&workspace, &check(), "passed");
    workspace.write("mine/deep/relu.py", broken());
    comes_to(&workspace, &check(), "mismatch");
    workspace.write("src/other.py", KERNEL);
    workspace.write("src/.env", "TOKEN=1\n");
    workspace.write("data/table.txt", "1\n");
    let reading = |file: &str| {
        format!(
            "from pathlib import Path\n\nfrom other import triton_relu  # noqa: F401\n\nTEXT = Path(__file__).parents[2].joinpath(\"{file}\").read_text()\n"
        )
    };
    for (file, hint) in [
        ("data/table.txt", "name its folder in ops.yaml, as in `sources: [data]`"),
        ("src/.env", "they read the workspace's Python, and the folders that `sources:` in ops.yaml names"),
    ] {
        workspace.write("kernels/relu/own.py", reading(file));
        let ran = check();
        comes_to(&workspace, &ran, "exception");
        let hint = format!("hint: the sandbox does not let kernels read `{file}`: {hint}");
        assert!(ran.told.contains(&hint), "{}", ran.told);
    }
    workspace.write("kernels/relu/own.py", reading("data/table.txt"));
    workspace.edit("ops.yaml", "ops:", "sources: [data]\nops:");
    comes_to(&workspace, &check(), "passed");
    assert!(checked(&workspace, None, None).told.contains("fresh 2"));
    workspace.write("data/table.txt", "2\n");
    let kept = workspace.kept_by(|| comes_to(&workspace, &check(), "passed"));
    assert_eq!(kept, ["relu/own:check"], "a file that it read changed");
}

/// The release of Liger-Kernel that is adopted.
const LIGER: &str = "liger-kernel==0.8.5";

#[test]
fn liger_kernel_is_adopted_as_it_comes() {
    let workspace = Workspace::with_zygote(&OPS.replace(
        "  relu:\n    torch: torch.nn.functional.relu\n",
        "  relu:\n    torch: torch.nn.functional.softmax\n    kwargs: {dim: -1}\n",
    ));
    workspace.write(
        "kernels/relu/own.py",
        "from liger_kernel.ops.softmax import LigerSoftmaxFunction\n\n\ndef triton_relu(input, dim=-1):\n    assert dim == -1\n    return LigerSoftmaxFunction.apply(input)\n",
    );
    let site = workspace.path("home/site");
    comes_to(&workspace, &checked(&workspace, None, Some(&site)), "exception");
    let output = Command::new("uv")
        // Copied: what is broken below must not be a file of uv's own cache.
        .args(["pip", "install", "-q", "--no-deps", "--link-mode", "copy", LIGER, "--target"])
        .arg(&site)
        .arg("--python")
        .arg(environment::python())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    comes_to(&workspace, &checked(&workspace, None, Some(&site)), "passed");
    let file = site.join("liger_kernel/ops/softmax.py");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("y = e / d"));
    fs::write(&file, text.replace("y = e / d", "y = e / d * 1.5")).unwrap();
    comes_to(&workspace, &checked(&workspace, None, Some(&site)), "mismatch");
}
