//! `t2t export`: what it writes is built, unpacked and used without t2t, and what it refuses.
//!
//! What is exported runs in a process that knows no workspace: only the unpacked wheel is on its path.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::environment;
use crate::real::adoption::copied;
use crate::real::export_forms;
use crate::whole;
use crate::workspace::{Ran, Workspace};

/// A softmax that takes what it needs from two files of the workspace, a layer norm with inputs that may be left out, an op of two results that has a reference, and a kernel that calls libdevice.
const OPS: &str = "\
version: 1
sources: [shared-code]
ops:
  softmax:
    torch: torch.nn.functional.softmax
    inputs: {input: [M, N]}
    kwargs: {dim: -1}
    variants:
      - {name: rows, call: \"entry(input)\"}
  layernorm:
    torch: torch.nn.functional.layer_norm
    inputs: {input: [M, N], weight: {shape: [N], optional: true}, bias: {shape: [N], optional: true}}
    kwargs: {normalized_shape: [N], eps: 1.0e-5}
    variants: [v4_optimized]
  row_stats:
    reference: kernels/row_stats/reference.py::row_stats
    inputs: {x: [M, N]}
    outputs: {mean: close, spread: close}
    variants: [one_pass]
  log1p:
    torch: torch.log1p
    inputs: {input: {shape: [M, N], init: {uniform: [0.0, 2.0]}}}
    variants: [exact]
";

const SOFTMAX: &str = "\
import torch
import triton
import triton.language as tl

import kernels.common.blocks
from lanes import maximum


@triton.jit
def softmax_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * N
    x = tl.load(x_ptr + row + at, mask=at < N, other=float('-inf')).to(tl.float32)
    e = tl.exp(x - maximum(x))
    tl.store(out_ptr + row + at, e / tl.sum(e, axis=0), mask=at < N)


def triton_softmax(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        N = x.shape[-1]
        softmax_kernel[(x.numel() // N,)](x, out, N, BLOCK=kernels.common.blocks.block(N))
    return out
";

const LOG1P: &str = "\
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def log1p_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, libdevice.log1p(x.to(tl.float32)), mask=at < n)


def triton_log1p(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        log1p_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
";

/// Calls what is exported, with arguments that no test declared, and prints what came of it.
const USE: &str = "\
import inspect, json, os, sys
import torch
import t2t_kernels as k
from torch.nn import functional as F
torch.manual_seed(5)
x, w = torch.randn(7, 33), torch.randn(33)
mean, spread = k.row_stats(x)
told = {
    'softmax': torch.allclose(k.softmax(x, -1), F.softmax(x, -1), atol=1e-6),
    'layernorm': torch.allclose(k.layernorm(x, (33,), w), F.layer_norm(x, (33,), w), atol=1e-5),
    'bare': torch.allclose(k.layernorm(x, [33]), F.layer_norm(x, [33]), atol=1e-5),
    'stats': torch.allclose(mean, x.mean(1), atol=1e-6) and torch.allclose(spread, (x - x.mean(1, True)).abs().mean(1), atol=1e-6),
    'signatures': [[name for name in inspect.signature(getattr(k, op)).parameters] for op in k.__all__],
    'home': os.path.dirname(k.__file__),
    'workspace': [name for name in sys.modules if name.split('.')[0] in ('kernels', 'lanes', 't2t_harness')],
}
try:
    k.softmax(x, 0)
except ValueError as refusal:
    told['refusal'] = str(refusal)
print(json.dumps(told))
";

pub(super) fn workspace() -> Workspace {
    let workspace = Workspace::with_zygote(OPS);
    workspace.write("kernels/softmax/rows.py", SOFTMAX);
    workspace
        .write("kernels/common/blocks.py", "import triton\n\n\ndef block(n):\n    return triton.next_power_of_2(n)\n");
    let lanes =
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef maximum(x):\n    return tl.max(x, axis=0)\n";
    workspace.write("shared-code/lanes.py", lanes);
    workspace.copy("kernels/layernorm/v4_optimized.py", "kernels/layernorm/v4_optimized.py");
    workspace.write("kernels/log1p/exact.py", LOG1P);
    for file in ["one_pass.py", "reference.py"] {
        let path = format!("kernels/row_stats/{file}");
        workspace.copy(&format!("examples/reference/{path}"), &path);
    }
    workspace
}

pub(super) fn export(workspace: &Workspace, arguments: &[&str]) -> Ran {
    workspace.run(&[&["export", "--device", "cpu"], arguments].concat())
}

/// A folder beside any workspace, with the wheel of an exported package unpacked in `site`.
pub(super) struct Installed {
    folder: TempDir,
}

impl Installed {
    /// Builds the package in `from` by its own build backend, without a network, and unpacks the wheel.
    pub(super) fn of(from: &Path) -> Self {
        let folder = environment::folder();
        let copy = folder.path().join("copy");
        crate::project::copy_folder(from, &copy);
        let backend = "import sys\nfrom setuptools import build_meta\nprint(build_meta.build_wheel(sys.argv[1]))";
        let wheels = folder.path().to_str().unwrap();
        let built = succeeded(Command::new(environment::python()).args(["-c", backend, wheels]).current_dir(&copy));
        let wheel = built.lines().next_back().unwrap().to_owned();
        assert!(wheel.ends_with("-py3-none-any.whl"), "{built}");
        let installed = Self { folder };
        let (wheel, site) = (installed.path(&wheel), installed.path("site"));
        succeeded(Command::new(environment::python()).args(["-m", "zipfile", "-e"]).args([wheel, site]));
        installed
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns Python with nothing on its path but the unpacked wheel and what is installed, to be run beside the tests.
    pub(super) fn python(&self) -> Command {
        let mut command = Command::new(environment::python());
        command
            .current_dir(self.path("copy/tests"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"));
        command.env("PYTHONPATH", self.path("site")).env("CUDA_VISIBLE_DEVICES", "").env("TRITON_INTERPRET", "1");
        command
    }

    /// Runs the generated tests, and returns the last line that pytest prints.
    pub(super) fn tested(&self) -> String {
        tested(&mut self.python())
    }
}

/// Runs tests by an interpreter that stands in their folder, which pass, and returns the last line that pytest prints.
pub(super) fn tested(python: &mut Command) -> String {
    let output = python.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).output().unwrap();
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}");
    told.trim_end().lines().next_back().unwrap().to_owned()
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
pub(super) fn succeeded(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{}{}", text(&stdout), text(&stderr));
    text(&stdout)
}

#[test]
#[ignore = "takes a minute; tests/whole.json tells whether it has to run"]
fn whole_what_is_exported_is_used_without_t2t_and_its_tests_hold_it_to_torch() {
    a_package_is_used_without_t2t_and_its_tests_hold_it_to_torch();
    export_forms::each_form_of_an_op_holds_its_values_and_gradients_to_torch();
    export_forms::an_operator_without_a_checked_gradient_has_none_and_what_cannot_be_one_is_bad_use();
    whole::EXPORT.note(&environment::root());
}

fn a_package_is_used_without_t2t_and_its_tests_hold_it_to_torch() {
    let workspace = workspace();
    assert_eq!(workspace.build(&[]).code, Some(0));
    let ran = export(&workspace, &["softmax,layernorm", "row_stats", "log1p", "--as", "package"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let alone = "log1p  exact, chosen on interpreter; it calls libdevice, so it runs on a CUDA device alone\n";
    assert!(ran.out.contains(alone), "{}", ran.out);
    assert!(
        workspace
            .read("export/package/README.md")
            .contains("which Triton's interpreter does not have: log1p. Their tests are skipped")
    );
    assert!(ran.out.starts_with("softmax  rows, chosen on interpreter\nlayernorm  v4_optimized, "), "{}", ran.out);
    let installed = Installed::of(&workspace.path("export/package"));
    let told: Value = serde_json::from_str(&succeeded(installed.python().args(["-c", USE]))).unwrap();
    for held in ["softmax", "layernorm", "bare", "stats"] {
        assert_eq!(told[held], true, "{held}: {told}");
    }
    let expected =
        serde_json::json!([["input", "dim"], ["input", "normalized_shape", "weight", "bias", "eps"], ["x"], ["input"]]);
    assert_eq!(told["signatures"], expected, "torch's names in torch's order");
    assert_eq!(told["refusal"], "the kernel of `softmax` computes `dim=-1` alone, got 0");
    assert_eq!(told["home"], installed.path("site/t2t_kernels").to_str().unwrap());
    assert_eq!(told["workspace"], serde_json::json!([]), "modules of the workspace have no names of their own");

    // 3 ops on 3 sizes with 2 seeds, and each of two inputs left out; what only a device runs is skipped, 6 tests, and one of gradients that no op has.
    assert!(installed.tested().starts_with("20 passed, 7 skipped"), "{}", installed.tested());
    // A kernel that is wrong fails them.
    let kernel = "site/t2t_kernels/_workspace/kernels/row_stats/one_pass.py";
    let held = std::fs::read_to_string(installed.path(kernel)).unwrap();
    std::fs::write(installed.path(kernel), held.replace("mean = tl.sum(x, axis=0) / N", "mean = tl.sum(x, axis=0)"))
        .unwrap();
    let output = installed.python().args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).output().unwrap();
    assert!(text(&output.stdout).contains("6 failed, 14 passed, 7 skipped"), "{}", text(&output.stdout));
}

#[test]
fn provenance_names_the_records_and_the_sources_that_were_taken() {
    let workspace = workspace();
    assert_eq!(workspace.build(&["softmax"]).code, Some(0));
    assert_eq!(export(&workspace, &["softmax", "--as", "package"]).code, Some(0));
    let told: Value = serde_json::from_str(&workspace.read("export/package/provenance.json")).unwrap();
    let op = &told["ops"]["softmax"];
    assert_eq!(
        (&op["variant"], &op["device"], &op["gradients"]),
        (&"rows".into(), &"interpreter".into(), &false.into())
    );
    let check = workspace.record("softmax/rows:check").unwrap();
    assert_eq!(op["records"]["softmax/rows:check on interpreter"], check.key.to_string());
    assert_eq!(told["t2t"], env!("CARGO_PKG_VERSION"));
    let files: Vec<&str> =
        told["sources"].as_array().unwrap().iter().map(|row| row["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["kernels/common/blocks.py", "kernels/softmax/rows.py", "shared-code/lanes.py"]);
    let digest = t2t_model::digest::Digest::of(workspace.read("kernels/common/blocks.py").as_bytes());
    assert_eq!(told["sources"][0]["blake3"], digest.to_string());
    // What was there stands in the package but for its imports.
    let home = "export/package/src/t2t_kernels/_workspace";
    let kernel = workspace.read("kernels/softmax/rows.py");
    let led = kernel
        .replace(
            "import kernels.common.blocks\n",
            "from ...kernels.common import blocks as _kernels_common_blocks; from ... import kernels as kernels\n",
        )
        .replace("from lanes import", "from ...shared_code.lanes import");
    assert_eq!(workspace.read(&format!("{home}/kernels/softmax/rows.py")), led);
    assert_eq!(workspace.read(&format!("{home}/shared_code/lanes.py")), workspace.read("shared-code/lanes.py"));
}

#[test]
fn an_op_whose_kernel_is_not_checked_was_rejected_or_was_edited_is_refused_with_what_helps() {
    let workspace = workspace();
    let ran = export(&workspace, &["softmax", "--as", "package"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert!(ran.told.starts_with("error: `softmax` cannot be exported: softmax:select is stale, "), "{}", ran.told);
    assert!(ran.told.ends_with("\nhint: run `t2t build softmax`\n"), "{}", ran.told);

    assert_eq!(workspace.build(&["softmax", "row_stats"]).code, Some(0));
    assert_eq!(export(&workspace, &["softmax", "--as", "package"]).code, Some(0));
    // What a kernel imports counts as the kernel does; a comment does not.
    workspace.write("shared-code/lanes.py", format!("# why\n{}", workspace.read("shared-code/lanes.py")));
    assert_eq!(export(&workspace, &["softmax", "--as", "package"]).code, Some(0));
    workspace.edit("shared-code/lanes.py", "tl.max(x, axis=0)", "tl.max(x, axis=0) + 0");
    let ran = export(&workspace, &["softmax", "row_stats", "--as", "package"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert!(!ran.told.contains("row_stats"), "the other op stands: {}", ran.told);

    workspace.edit("shared-code/lanes.py", "tl.max(x, axis=0) + 0", "tl.min(x, axis=0) * 2");
    workspace.edit("kernels/softmax/rows.py", "e / tl.sum(e, axis=0)", "e");
    assert_eq!(workspace.build(&["softmax"]).code, Some(1));
    let ran = export(&workspace, &["softmax", "--as", "package"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert!(ran.told.starts_with("error: `softmax` cannot be exported: no variant passed\nhint: "), "{}", ran.told);
    assert!(ran.told.contains("`t2t explain softmax`"), "{}", ran.told);
}

/// The op `add` of this repository, with its kernels and all published results.
fn published(targets: &str) -> Workspace {
    let ops = std::fs::read_to_string(environment::root().join("ops.yaml")).unwrap();
    let end = ops.find("  softmax:\n").unwrap();
    let workspace = Workspace::with_zygote(&ops[..end].replace("version: 1\n", &format!("version: 1\n{targets}")));
    for folder in ["kernels/add", "assets/results"] {
        crate::project::copy_folder(&environment::root().join(folder), &workspace.path(folder));
    }
    // An analysis read it there.
    workspace.copy("assets/ops_catalogue.json", "assets/ops_catalogue.json");
    workspace
}

#[test]
fn without_a_gpu_the_kernel_is_the_one_that_published_figures_chose() {
    let workspace = published("");
    let records: Value = serde_json::from_str(&workspace.read("assets/results/nvidia-h200/records/add.json")).unwrap();
    let of = |target: &str| {
        let mut all = records["records"].as_array().unwrap().iter();
        all.find(|entry| entry["record"]["identity"]["target"] == target).unwrap().clone()
    };
    let selection = of("add:select")["documents"]["selection"]["json"].clone();
    let chosen = selection["chosen"].as_str().unwrap();
    let expected = format!("add  {chosen}, chosen on nvidia-h200\n");
    let check = of(&format!("add/{chosen}:check"))["record"]["key"].clone();
    let exported = |arguments: &[&str]| {
        let ran = workspace.run(&[&["export", "add", "--as", "package"], arguments].concat());
        assert!(ran.code == Some(0) && ran.out.starts_with(&expected), "{ran:?}");
        let told: Value = serde_json::from_str(&workspace.read("export/package/provenance.json")).unwrap();
        assert_eq!(told["ops"]["add"]["records"][format!("add/{chosen}:check on nvidia-h200")], check);
        assert_eq!(told["ops"]["add"]["figures"]["final_ms"], selection["figures"]["final_ms"]);
    };
    exported(&["--as-device", "nvidia-h200"]);
    // On the interpreter, too, where the kernels were checked here.
    assert_eq!(workspace.build(&[]).code, Some(0));
    exported(&["--device", "cpu"]);
    let kernel = format!("kernels/add/{chosen}.py");
    workspace.write(&kernel, workspace.read(&kernel).replace("tl.store(", "tl.debug_barrier()\n    tl.store("));
    let ran = workspace.run(&["export", "add", "--as", "package", "--as-device", "nvidia-h200"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let hint = "\nhint: run `t2t build add`, then `t2t publish`, on a machine with nvidia-h200\n";
    assert!(ran.told.ends_with(hint), "{}", ran.told);
}

#[test]
fn where_a_published_device_chose_another_kernel_it_runs_that_one() {
    // The device of these results is no target, so nothing of it is shown here, and the simplest kernel is chosen.
    let workspace = published("targets: [nvidia-a100]\n");
    assert_eq!(workspace.build(&[]).code, Some(0));
    let ran = export(&workspace, &["add", "--as", "package"]);
    let told: Value = serde_json::from_str(&workspace.read("export/package/provenance.json")).unwrap();
    let there = told["ops"]["add"]["elsewhere"]["NVIDIA H200"]["variant"].as_str().unwrap();
    assert_ne!(there, "v1_baseline");
    assert_eq!(
        ran.out.lines().next().unwrap(),
        format!("add  v1_baseline, chosen on interpreter, {there} on NVIDIA H200")
    );
    let installed = Installed::of(&workspace.path("export/package"));
    // A device that is not here is one by its name.
    let script = "\
import torch
from t2t_kernels import _dispatch, _op_add
class Tensor(torch.Tensor):
    device = torch.device('cuda', 0)
torch.cuda.get_device_name = lambda index: name
for name in ['NVIDIA H200', 'NVIDIA L4']:
    _dispatch._name.cache_clear()
    print(_dispatch.choice(_op_add.ON, _op_add.CHOSEN, [torch.ones(1).as_subclass(Tensor)]))
print(_dispatch.choice(_op_add.ON, _op_add.CHOSEN, [torch.ones(1)]))
";
    let told = succeeded(installed.python().args(["-c", script]));
    assert_eq!(told, format!("{there}\nv1_baseline\nv1_baseline\n"));
}

#[test]
fn a_folder_that_export_did_not_write_or_that_was_changed_is_left_alone() {
    let workspace = workspace();
    assert_eq!(workspace.build(&["row_stats"]).code, Some(0));
    workspace.write("mine/notes.txt", "mine");
    let to = |folder: &str| export(&workspace, &["row_stats", "--as", "package", "--out", folder]);
    let ran = to("mine");
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("/mine` is there, and `t2t export` did not write it\nhint: `--out DIR`"), "{}", ran.told);
    assert_eq!(workspace.read("mine/notes.txt"), "mine");
    assert_eq!(to("mine/notes.txt").code, Some(2));

    assert_eq!(to("out").code, Some(0));
    let first = workspace.read("out/.t2t-export.json");
    // Its own is written again, the same bytes for the same results, whatever Python left there.
    workspace.write("out/tests/__pycache__/test_ops.pyc", "");
    assert_eq!(to("out").code, Some(0));
    assert_eq!(workspace.read("out/.t2t-export.json"), first);
    assert!(!workspace.path("out/tests/__pycache__").exists());
    workspace.write("out/tests/test_mine.py", "");
    assert!(to("out").told.contains("/out/tests/test_mine.py` is there, and `t2t export` did not write it"));
    std::fs::remove_file(workspace.path("out/tests/test_mine.py")).unwrap();
    workspace.write("out/README.md", "mine");
    let ran = to("out");
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("/out/README.md` was changed since `t2t export` wrote it"), "{}", ran.told);
    assert_eq!(workspace.read("out/README.md"), "mine");
    let beside: Vec<_> = std::fs::read_dir(workspace.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!beside.iter().any(|name| name.to_string_lossy().starts_with(".out.")), "{beside:?}");
}

#[test]
fn what_cannot_be_named_or_exported_is_bad_use() {
    let workspace = copied("examples/gradients");
    for (arguments, message) in [
        (&["sofmax", "--as", "package"][..], "error: ops.yaml has no op `sofmax`\nhint: did you mean `softmax`?\n"),
        (
            &["softmax", "--as", "package", "--name", "my-kernels"],
            "error: `my-kernels` is no name of a Python package\n",
        ),
        (&["softmax", "--as", "package", "--name", "class"], "error: `class` is no name of a Python package\n"),
        (
            &["softmax", "--as", "package", "--name", "torch"],
            "error: a package `torch` would hide the one that its own kernels import\n",
        ),
        (
            &["softmax", "--as", "hf-kernel", "--name", "My_kernels"],
            "error: `My_kernels` is no name of a kernel for Hugging Face's kernel-builder\n",
        ),
    ] {
        let ran = export(&workspace, arguments);
        assert_eq!(ran.code, Some(2), "{}", ran.told);
        assert!(ran.told.starts_with(message), "{}", ran.told);
    }
    assert_eq!(workspace.build(&["softmax"]).code, Some(0));
    let ran = export(&workspace, &["softmax", "--as", "package"]);
    let expected = "error: `softmax/rows` cannot be exported: its entry is an operator with methods\n";
    assert_eq!((ran.code, ran.told.starts_with(expected)), (Some(2), true), "{}", ran.told);
    assert!(!workspace.path("export").exists());
    // A pipe and a link stay.
    let (pipe, link) = (workspace.path("pipe"), workspace.path("link"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("kernels", &link).unwrap();
    for (name, told) in [("pipe", "is no folder"), ("link", "is a link")] {
        let ran = export(&workspace, &["gelu", "--as", "package", "--out", name]);
        assert_eq!((ran.code, ran.told.contains(told)), (Some(2), true), "{}", ran.told);
    }
    let ran = workspace.run(&["cache", "export", "pipe"]);
    assert_eq!((ran.code, ran.told.contains("it is no file")), (Some(2), true), "{}", ran.told);
    assert!(!pipe.is_file() && pipe.exists() && link.is_symlink());
}
