//! `t2t export` as operators of torch, and as a project for Hugging Face's kernel-builder: used and tested without t2t, and what breaks is found.

use std::path::Path;

use serde_json::{Value, json};

use super::adoption::copied;
use super::export::{Installed, export, succeeded, tested, text};
use crate::environment;
use crate::workspace::Workspace;

/// Changes a file of what is installed, runs those of its tests that are called `tests`, and returns the lines of those that fail, and the last.
fn broken(installed: &Installed, tests: &str, (file, from, to): (&str, &str, &str)) -> String {
    let path = installed.path(&format!("site/t2t_kernels/{file}"));
    let held = std::fs::read_to_string(&path).unwrap();
    assert!(held.contains(from), "{held}");
    std::fs::write(&path, held.replace(from, to)).unwrap();
    let output =
        installed.python().args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", tests]).output().unwrap();
    std::fs::write(&path, held).unwrap();
    let told = text(&output.stdout);
    let is_told = |line: &&str| line.starts_with("FAILED") || line.contains(" deselected");
    told.lines().filter(is_told).collect::<Vec<_>>().join("\n")
}

/// Each form of silu, whose gradient is checked: built once.
pub fn each_form_of_an_op_holds_its_values_and_gradients_to_torch() {
    let workspace = copied("examples/adopted");
    assert_eq!(workspace.build(&["silu"]).code, Some(0));
    for form in ["package", "torch-library", "hf-kernel"] {
        let ran = export(&workspace, &["silu", "--as", form]);
        assert_eq!(ran.code, Some(0), "{}", ran.told);
        let told: Value = serde_json::from_str(&workspace.read(&format!("export/{form}/provenance.json"))).unwrap();
        assert_eq!(told["written_by"], format!("t2t export --as {form}"));
        assert_eq!(told["ops"]["silu"]["variant"], "fused");
    }
    let gradient = ("_workspace/lib/activations.py", "x * s * (1.0 - s)", "x * s");

    let installed = Installed::of(&workspace.path("export/package"));
    assert!(installed.tested().starts_with("9 passed"), "{}", installed.tested());
    let told = broken(&installed, "test_ops and gradients", gradient);
    assert!(told.contains("3 failed"), "{told}");

    // The same, opcheck, and compiled values and gradients.
    let installed = Installed::of(&workspace.path("export/torch-library"));
    assert!(installed.tested().starts_with("12 passed"), "{}", installed.tested());
    let told = broken(&installed, "test_ops and gradients", gradient);
    assert!(told.contains("3 failed"), "{told}");
    for change in [
        // A fake kernel of another shape.
        ("_op_silu.py", "\"nn.functional.silu\"", "\"sum\""),
        // A result that does not lie as the fake kernel says.
        ("_operators.py", "one.detach().contiguous()", "one.detach().t().contiguous().t()"),
    ] {
        let told = broken(&installed, "no_fault", change);
        assert!(told.contains("1 failed") && told.contains("finds_no_fault_with_the_operator"), "{change:?}: {told}");
    }
    is_a_kernel_of_the_hub(&workspace);
}

/// The folder that kernel-builder takes: what it needs is there, and the package is used under any name, with nothing on Python's path.
fn is_a_kernel_of_the_hub(workspace: &Workspace) {
    let config = workspace.read("export/hf-kernel/build.toml");
    for line in ["name = \"t2t-kernels\"", "edition = 5", "backends = [\"cuda\"]", "[torch-noarch]"] {
        assert!(config.lines().any(|one| one == line), "{config}");
    }
    assert!(workspace.read("export/hf-kernel/flake.nix").contains("genKernelFlakeOutputs"));
    let home = workspace.path("export/hf-kernel");
    let python = |folder: &Path| {
        let mut command = std::process::Command::new(environment::python());
        command.current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env("CUDA_VISIBLE_DEVICES", "");
        command.env("TRITON_INTERPRET", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let mut suite = python(&home.join("tests"));
    let told = tested(suite.env("PYTHONPATH", home.join("torch-ext")));
    assert!(told.starts_with("9 passed"), "{told}");
    // As the package `kernels` loads one: under a name of its own, from a folder that holds nothing else.
    let apart = environment::folder();
    crate::project::copy_folder(&home.join("torch-ext/t2t_kernels"), &apart.path().join("torch-cuda"));
    let load = "\
import importlib.util, json, sys
import torch
spec = importlib.util.spec_from_file_location('_silu_cuda_1234567', 'torch-cuda/__init__.py')
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
x = torch.randn(3, 5, requires_grad=True)
module.silu(x).sum().backward()
y = x.detach().clone().requires_grad_()
torch.nn.functional.silu(y).sum().backward()
print(json.dumps([torch.allclose(x.grad, y.grad, atol=1e-6), [name for name in sys.modules if 't2t' in name]]))
";
    let told: Value = serde_json::from_str(&succeeded(python(apart.path()).args(["-c", load]))).unwrap();
    assert_eq!(told, json!([true, []]));
}

/// An op of two results whose reference is a function, one whose reference is a class, and one that takes a list and has gradients of its members.
const OPS: &str = "\
version: 1
ops:
  row_stats:
    reference: kernels/row_stats/reference.py::row_stats
    inputs: {x: [M, N]}
    outputs: {mean: close, spread: close}
    variants: [one_pass]
  cat:
    torch: torch.cat
    inputs: {tensors: {list: [[M, N], [M, K]]}}
    kwargs: {dim: 1}
    backward: true
    bench: {sizes: {small: {M: 8, N: 8, K: 4}}}
    check: {sizes: {small: {M: 3, N: 8, K: 5}}}
    profiles: {cpu: {bench: {sizes: {small: {M: 8, N: 8, K: 4}}}}}
    variants: [v1_baseline]
    generator: template
  max:
    torch: torch.max
    inputs: {input: [M, N]}
    outputs: {values: close, indices: {compare: indices, of: input, dim: -1}}
    kwargs: {dim: -1}
    bench: {sizes: {small: {M: 8, N: 8}}}
    check: {sizes: {small: {M: 3, N: 8}}}
    profiles: {cpu: {bench: {sizes: {small: {M: 8, N: 8}}}}}
    variants: [v1_baseline]
    generator: template
  doubled:
    reference: {file: kernels/doubled/reference.py, name: Doubled}
    inputs: {x: [M, N]}
    variants: [plain]
";

const DOUBLED: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


def triton_doubled(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
";

/// Uses an operator without a gradient, compiled, at a size that is no constant of the graph.
const USE: &str = "\
import json
import torch
import t2t_kernels as k
def scaled(x):
    mean, spread = k.row_stats(x * 2)
    return mean + spread
compiled = torch.compile(scaled, fullgraph=True, backend='aot_eager', dynamic=True)
told = {'compiled': [torch.equal(compiled(x), scaled(x)) for x in (torch.randn(3, 7), torch.randn(5, 9))]}
told['schemas'] = [str(getattr(torch.ops.t2t_kernels, op).default._schema) for op in k.__all__]
try:
    k.row_stats(torch.randn(3, 7, requires_grad=True))[0].sum().backward()
except RuntimeError as refusal:
    told['refusal'] = str(refusal)
print(json.dumps(told))
";

/// And the others use theirs.
pub fn an_operator_without_a_checked_gradient_has_none_and_what_cannot_be_one_is_bad_use() {
    let workspace = Workspace::with_zygote(OPS);
    for file in ["one_pass.py", "reference.py"] {
        let path = format!("kernels/row_stats/{file}");
        workspace.copy(&format!("examples/reference/{path}"), &path);
    }
    workspace.write("kernels/doubled/plain.py", DOUBLED);
    let reference =
        "import torch\n\n\nclass Doubled(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n";
    workspace.write("kernels/doubled/reference.py", reference);
    let built = workspace.build(&[]);
    assert_eq!(built.code, Some(0), "{}", built.told);
    let ran = export(&workspace, &["row_stats", "doubled,cat", "--as", "torch-library"]);
    let expected = "error: `doubled` cannot be an operator of torch: its reference is a class, and the fake kernel needs a function\nhint: `--as package` exports it\n";
    assert_eq!((ran.code, ran.told.as_str()), (Some(2), expected));
    assert!(!workspace.path("export").exists());

    assert_eq!(export(&workspace, &["row_stats,cat,max", "--as", "torch-library"]).code, Some(0));
    let installed = Installed::of(&workspace.path("export/torch-library"));
    let told: Value = serde_json::from_str(&succeeded(installed.python().args(["-c", USE]))).unwrap();
    assert_eq!(told["compiled"], json!([true, true]), "{told}");
    let schemas = [
        "t2t_kernels::row_stats(Tensor x) -> (Tensor, Tensor)",
        "t2t_kernels::cat(Tensor[] tensors, int dim) -> Tensor",
        "t2t_kernels::max(Tensor input, int dim, bool keepdim) -> (Tensor, Tensor)",
    ];
    assert_eq!(told["schemas"], json!(schemas));
    assert!(told["refusal"].as_str().unwrap().contains("no autograd formula was registered"), "{told}");
    // Of row_stats 6 calls, opcheck and compiled values; of cat 2 calls, a gradient, opcheck, compiled values and gradients; of max 2 calls, opcheck and compiled values.
    assert!(installed.tested().starts_with("18 passed"), "{}", installed.tested());
}
