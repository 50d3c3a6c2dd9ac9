//! `t2t adopt`: an op is declared for a kernel that is already there, and what its check found is told.

use std::fs::{self, File};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use crate::workspace::{Ran, Workspace};

const KERNEL: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=-float('inf'))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * columns + offsets, x / tl.sum(x, axis=0), mask=offsets < columns)


def fused_softmax(x: torch.Tensor, axis: int = -1):
    assert x.is_contiguous(), 'dense rows are wanted'
    out = torch.empty_like(x)
    if x.numel():
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
";

const ENTRY: &str = "  softmax:
    torch: torch.nn.functional.softmax
    inputs: {input: [M, N]}
    kwargs: {dim: -1}
    variants:
      - {name: fused, path: lib/fused.py, entry: fused_softmax, call: \"entry(input, dim)\"}
";

fn workspace() -> Workspace {
    let workspace = Workspace::with_zygote("");
    fs::remove_file(workspace.path("ops.yaml")).unwrap();
    workspace.write("lib/fused.py", KERNEL);
    workspace
}

fn adopt(workspace: &Workspace, arguments: &[&str]) -> Ran {
    workspace.run(&[&["adopt", "--device", "cpu"], arguments].concat())
}

#[test]
fn a_kernel_is_declared_checked_and_told_of() {
    let workspace = workspace();
    workspace.write("ops.yaml", "version: 1\nops: {}\n");
    let ran = adopt(&workspace, &["lib/fused.py", "--as", "softmax"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert_eq!(workspace.read("ops.yaml"), format!("version: 1\nops:\n{ENTRY}"));
    for said in [
        "ops.yaml: `softmax` is torch.nn.functional.softmax, and `fused_softmax` of lib/fused.py its kernel\n  `x` of the kernel is `input`\n  `axis` of the kernel is `dim`\n  `dim` of the op is -1\n",
        "\nedges fail: `kwargs`, `strided`, `transposed`. Where the kernel need not take them, write so under the op, with the reason:\n    check: {edges: {kwargs: {off: why}, strided: {off: why}, transposed: {off: why}}}\n",
    ] {
        assert!(ran.told.contains(said), "no `{said}` in\n{}", ran.told);
    }
    let off = "    check: {edges: {kwargs: {off: the last dim}, strided: {off: dense rows}, transposed: {off: dense rows}}}\n";
    workspace.write("ops.yaml", workspace.read("ops.yaml") + off);
    let ran = workspace.build(&["softmax:check"]);
    assert_eq!((ran.code, workspace.outcome("softmax/fused:check").as_str()), (Some(0), "passed"), "{}", ran.told);
}

#[test]
fn an_op_that_is_written_while_a_wrapper_is_read_stays() {
    let workspace = workspace();
    workspace.write("ops.yaml", "version: 1\nops:\n  relu: {torch: relu, inputs: {input: [M, N]}}\n");
    let folder = Flock::lock(File::open(workspace.path("")).unwrap(), FlockArg::LockExclusive).unwrap();
    thread::scope(|scope| {
        let adopted = scope.spawn(|| adopt(&workspace, &["lib/fused.py", "--as", "softmax"]));
        thread::sleep(Duration::from_millis(300));
        workspace.write("ops.yaml", workspace.read("ops.yaml") + "  exp: {torch: exp, inputs: {input: [M, N]}}\n");
        drop(folder);
        adopted.join().unwrap();
    });
    let declared = workspace.read("ops.yaml");
    for name in ["relu", "exp", "softmax"] {
        assert!(declared.contains(&format!("\n  {name}:")), "no `{name}` in\n{declared}");
    }
}

#[test]
fn what_ops_yaml_says_already_stays_as_it_is() {
    let workspace = workspace();
    let before = "# mine\nversion: 1\nops:\n    relu: {torch: relu, inputs: {input: [M, N]}}  # later\n\nprofiles: {cpu: {bench: {runs: 1}}}\n";
    workspace.write("ops.yaml", before);
    let ran = adopt(&workspace, &["lib/fused.py::fused_softmax", "--as", "relu"]);
    let message = "error: ops.yaml declares `relu` already\nhint: choose another name with `--as`\n";
    assert_eq!((ran.code, ran.told.as_str()), (Some(2), message));
    let ran = adopt(&workspace, &["lib/fused.py::gone", "--as", "softmax"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.told.contains("error: lib/fused.py has no wrapper `gone`; it has `fused_softmax`\n"), "{}", ran.told);
    assert_eq!(workspace.read("ops.yaml"), before);
    adopt(&workspace, &["lib/fused.py", "--as", "softmax"]);
    let indented = ENTRY.lines().map(|line| format!("  {line}\n")).collect::<Vec<_>>().concat();
    assert_eq!(workspace.read("ops.yaml"), before.replace("# later\n", &format!("# later\n{indented}")));
}

#[test]
fn an_entry_with_which_nothing_can_be_built_is_not_written() {
    let workspace = workspace();
    let reference = "\n\ndef plain(x, axis=-1):\n    return torch.softmax(x, axis)\n";
    workspace.write("lib/fused.py", [KERNEL, reference].concat());
    workspace.write("lib/plain.py", ["import torch\n\nimport lib.fused  # noqa: F401", reference].concat());
    let adopted = |reference: &str| {
        adopt(&workspace, &["lib/fused.py::fused_softmax", "--as", "softmax", "--reference", reference])
    };
    let message = "error: the kernel and its reference `plain` lie in one file, lib/fused.py, where each can use the other\n\
        hint: move `plain` to a file of its own that does not import lib/fused.py, and name it: `--reference FILE.py::plain`\n";
    let ran = adopted("lib/fused.py::plain");
    assert_eq!((ran.code, ran.told.as_str()), (Some(2), message));
    assert!(!workspace.path("ops.yaml").exists());
    let message = "error: ops.yaml: the reference of `softmax`, `lib/plain.py`, imports its variant `fused`\n\
        hint: let the reference compute with torch alone\n";
    let ran = adopted("lib/plain.py::plain");
    assert_eq!((ran.code, ran.told.as_str()), (Some(2), message));
    assert!(!workspace.path("ops.yaml").exists());
    let before = "# mine\nversion: 1\nops:\n  relu: {torch: relu, inputs: {input: [M, N]}}\n";
    workspace.write("ops.yaml", before);
    assert_eq!(adopted("lib/plain.py::plain").told, message);
    assert_eq!(workspace.read("ops.yaml"), before);
}

const SCALE: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, w_ptr, o_ptr, n, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    w = tl.load(w_ptr + offsets % columns, mask=mask)
    tl.store(o_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * w, mask=mask)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        x, weight = x.contiguous(), weight.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            scale_kernel[(triton.cdiv(x.numel(), 64),)](x, weight, out, x.numel(), x.shape[-1], BLOCK=64)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, None


def _scaled(x, weight, bias=None, out=None):
    return Scale.apply(x, weight)


scale = Scale.apply
";

const SCALED: &str = "\
def scaled(x, weight, bias=None, shift: float = 0.0):
    y = x * weight + shift
    return y if bias is None else y + bias


class Scaled:
    def __init__(self, features):
        self.features = features

    def forward(self, x, cu_seqlens):
        return x
";

#[test]
fn what_the_check_leaves_open_is_told_with_what_to_write() {
    let workspace = workspace();
    workspace.write("lib/scale.py", SCALE);
    workspace.write("lib/plain.py", SCALED);
    let ran = adopt(&workspace, &["lib/scale.py::_scaled", "--as", "scaled", "--reference", "lib/plain.py::scaled"]);
    let inputs = "    inputs: {x: [M, N], weight: [N], bias: {shape: [N], optional: true}}\n";
    assert!(workspace.read("ops.yaml").contains(inputs), "{}", ran.told);
    // The kernel takes a bias and leaves it out.
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    for said in [
        "\nno case gives `shift`, `out`, which the entry leaves at their defaults; `shift` under `kwargs`, with another value; to try `out`, which only the kernel takes, name a reference that takes it, too\n",
        "\ngradients are not compared, and `Scale` has a backward pass: `backward: true` under the op compares them\n",
    ] {
        assert!(ran.told.contains(said), "no `{said}` in\n{}", ran.told);
    }
    let ran = adopt(&workspace, &["lib/scale.py::scale", "--as", "product", "--torch", "mul"]);
    let declared = workspace.read("ops.yaml");
    assert!(declared.contains("path: lib/scale.py, entry: Scale.apply, call:"), "{declared}");
    for said in [
        "declared cases fail: the kernel is wrong, or `call` in ops.yaml is, or the shapes of its `inputs` are not those that the kernel is for\n",
        "\ngradients are not compared, and `Scale` has a backward pass: `backward: true` under the op compares them\n",
    ] {
        assert!(ran.told.contains(said), "no `{said}` in\n{}", ran.told);
    }
}

/// Writes rows of a cache, as what an attention keeps of its keys.
const APPEND: &str = "\
import triton
import triton.language as tl


@triton.jit
def append_kernel(cache, new, slots, columns, cr, cc, nr, nc, sr, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    slot = tl.load(slots + row * sr)
    values = tl.load(new + row * nr + column * nc, mask=column < columns)
    tl.store(cache + slot * cr + column * cc, values, mask=column < columns)


def append(cache, new, slots):
    rows, columns = new.shape
    if new.numel():
        strides = (*cache.stride(), *new.stride(), slots.stride(0))
        append_kernel[(rows,)](cache, new, slots, columns, *strides, BLOCK=triton.next_power_of_2(columns))
";

const APPENDED: &str = "  append:
    reference: lib/plain.py::append
    inputs: {cache: [K, columns], new: [rows, columns], slots: {shape: [rows], dtype: int64, init: {unique: [0, K]}}}
    mutates: [cache]
";

#[test]
fn a_kernel_that_writes_in_place_is_declared_with_what_it_changes() {
    let workspace = workspace();
    workspace.write("lib/append.py", APPEND);
    workspace.write("lib/plain.py", "def append(cache, new, slots):\n    cache[slots] = new\n");
    let arguments = ["lib/append.py", "--as", "append", "--reference", "lib/plain.py::append"];
    let ran = adopt(&workspace, &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    assert!(workspace.read("ops.yaml").contains(APPENDED), "{}", workspace.read("ops.yaml"));
    let said = "\n  `cache` is changed in place: what it holds afterwards is judged\n";
    assert!(ran.told.contains(said), "{}", ran.told);
    workspace.write(
        "lib/append.py",
        APPEND
            .replace("row * nr", "(row + 1) % rows * nr")
            .replace("columns, cr", "columns, rows, cr")
            .replace("columns, *strides", "columns, rows, *strides"),
    );
    let ran = workspace.build(&["append:check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
}

#[test]
fn where_no_shapes_are_found_the_hint_has_what_the_reference_shows() {
    let workspace = workspace();
    workspace.write("lib/scale.py", SCALE);
    workspace.write("lib/plain.py", SCALED);
    fs::remove_dir_all(workspace.path("cache")).unwrap();
    let ran = adopt(&workspace, &["lib/scale.py::scale", "--as", "scaled", "--reference", "lib/plain.py::Scaled"]);
    let hint = "; by its names it may need `reference: {file: lib/plain.py, name: Scaled, init: {features: …}}`, \
        `cu_seqlens: {shape: [B+1], dtype: int32, init: {offsets: M}}`\n";
    assert_eq!(ran.code, Some(2));
    assert!(ran.told.contains(hint), "{}", ran.told);
    // A folder that is no workspace is left as it was.
    for name in ["ops.yaml", "cache", ".gitignore"] {
        assert!(!workspace.path(name).exists(), "{name}");
    }
}

#[test]
fn a_folder_that_is_called_as_the_store_is_and_was_there_stays() {
    let workspace = workspace();
    workspace.write("cache/mine.txt", "mine");
    let ran = adopt(&workspace, &["lib/fused.py::nothing", "--as", "softmax"]);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert_eq!(workspace.read("cache/mine.txt"), "mine");
}

#[test]
fn an_entry_with_which_nothing_was_checked_is_said_to_be_there() {
    let workspace = workspace();
    // What small tensors do not show is found when the op is analyzed.
    workspace.write("lib/plain.py", "def doubled(x):\n    if len(x) > 15:\n        x.mul_(2)\n    return x + 0\n");
    let kernel = KERNEL.replace("def fused_softmax(x: torch.Tensor, axis: int = -1)", "def doubled(x: torch.Tensor)");
    workspace.write("lib/double.py", &kernel);
    let ran = adopt(&workspace, &["lib/double.py::doubled", "--as", "doubled", "--reference", "lib/plain.py::doubled"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    for said in ["which `mutates` does not name", "ops.yaml has the entry of `doubled`, and nothing was checked"] {
        assert!(ran.told.contains(said), "no {said} in\n{}", ran.told);
    }
    assert!(workspace.read("ops.yaml").contains("  doubled:\n"));
}
