"""The compile phase on small kernels, with no GPU: what is compiled, what is found again, and what is refused, and where."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from children import ask
from t2t_harness.triton import warm

HEAD = '''"""A kernel."""
import torch, triton
import triton.language as tl
'''

SCALE = (
    HEAD
    + '''

@triton.jit
def scale_kernel(x_ptr, o_ptr, M, N, stride_m, stride_n, SMS: tl.constexpr, BLOCK: tl.constexpr):
    """Doubles."""
    row = tl.program_id(0)
    while row < M:
        for start in range(0, N, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=cols < N)
            tl.store(o_ptr + row * N + cols, x * 2.0, mask=cols < N)
        row += SMS


def triton_op(input):
    assert input.is_cuda
    x = input[:, 1:]
    out = torch.empty(x.shape, device="cuda", dtype=x.dtype)
    sms = torch.cuda.get_device_properties(x.device).multi_processor_count
    if out.numel():
        scale_kernel[(min(x.shape[0], sms),)](x, out, *x.shape, *x.stride(), SMS=sms, BLOCK=64)
    return out
'''
)

TUNED = (
    HEAD
    + """

def configs():
    return [triton.Config({"BLOCK": 128}, num_warps=w) for w in (1, 2)] + [triton.Config({"BLOCK": 256}, num_warps=4)]


@triton.autotune(configs=configs(), key=["n"])
@triton.jit
def add_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) + 1.0, mask=offsets < n)


def triton_op(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        add_kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](x, out, out.numel())
    return out
"""
)

DOT = (
    HEAD
    + """

@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_stages=s) for b, s in ((64, 4), (32, 2))], key=["n"])
@triton.jit
def dot_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None] * n
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + rows + start + tl.arange(0, BLOCK)[None, :])
        total += tl.dot(x, x, input_precision="tf32")
    tl.store(o_ptr + rows + tl.arange(0, BLOCK)[None, :], total)


def triton_op(input):
    out = torch.empty_like(input)
    dot_kernel[(1,)](input, out, 128)
    return out
"""
)


# Notes in scratch, its working folder, which process compiled what.
COUNTED = TUNED.replace(
    "def configs",
    """import hashlib, os
from triton.backends.nvidia.compiler import CUDABackend

make_cubin = CUDABackend.make_cubin


def noted(self, src, *rest):
    with open("compiled.txt", "a") as file:
        file.write(f"{os.getpid()} {hashlib.sha256(src.encode()).hexdigest()}\\n")
    return make_cubin(self, src, *rest)


if make_cubin.__name__ != "noted":  # The module may be loaded again in one process.
    CUDABackend.make_cubin = noted


def configs""",
    1,
)


def declaration(dtypes: tuple[str, ...] = ("float32",), layout: str = "contiguous") -> dict[str, Any]:
    given = {
        "name": "input",
        "shape": ["M", "N"],
        "dtype": None,
        "init": {"kind": "normal", "mean": 0.0, "std": 1.0},
        "requires_grad": False,
        "layout": layout,
    }
    return {
        "name": "op",
        "torch": "torch.relu",
        "inputs": [given],
        "kwargs": {},
        "dtypes": list(dtypes),
        "sizes": {"small": {"M": 16, "N": 32}, "large": {"M": 128, "N": 128}},
        "check_sizes": {"small": {"M": 16, "N": 32}},
        "seeds": 2,
        "tolerances": {"float32": [1e-5, 1e-5]},
        "precision": "ieee",
        "mutates": [],
        "overwrites": [],
        "backward": False,
        "broadcast": False,
        "deterministic": True,
        "cases": None,
    }


def targets(*names: str, **changes: Any) -> list[dict[str, Any]]:
    table = json.loads((ROOT / "assets" / "devices.json").read_text())
    return [{"id": name, **table[name], **changes} for name in names or ("nvidia-h200",)]


class Workspace:
    """A workspace with one kernel, and a scratch folder for each compile of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.count = 0

    def compile(
        self, source: str, patience: float = 0.0, endless: float = 60.0, **changes: Any
    ) -> tuple[dict[str, Any], Path]:
        """Returns the reply for a kernel file of the text `source`, and its scratch folder. Several processes are taken after `patience` seconds; a call is not waited for after `endless` seconds."""
        file = self.root / "kernels" / "op" / "v1.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        self.count += 1
        scratch = self.root / f"scratch{self.count}"
        scratch.mkdir()
        variant = {"name": "v1", "file": "kernels/op/v1.py", "entry": "triton_op", "lanes": ["cuda"]}
        request = {
            "op": declaration(),
            "variant": variant,
            "root": str(self.root),
            "scratch": str(scratch),
            "lane": "compile",
            "targets": targets(),
            **changes,
        }
        constants = {"triton.ahead.PATIENCE_S": patience, "triton.returning.PATIENCE_S": endless}
        return ask("compile.compile_variant", request, constants=constants), scratch

    def failure(self, source: str, **changes: Any) -> dict[str, Any]:
        """Returns the failure record of a kernel that must be rejected."""
        reply, _ = self.compile(source, **changes)
        assert reply["outcome"] == "rejected"
        assert reply["class"] == reply["documents"]["failure"]["class"]
        record: dict[str, Any] = reply["documents"]["failure"]
        return record


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def launches(reply: dict[str, Any]) -> dict[str, Any]:
    assert reply["outcome"] == "passed", reply["documents"]
    document: dict[str, Any] = reply["documents"]["launches"]
    return document


@pytest.mark.parametrize(
    ("source", "op"),
    [
        (SCALE, declaration(layout="transposed")),
        (SCALE, declaration(("float32", "float16"), layout="strided")),
        (TUNED, declaration()),
    ],
    ids=["transposed and offset", "strided and offset", "autotuned"],
)
def test_edited_comments_and_another_folder_miss_nothing(workspace: Workspace, source: str, op: dict[str, Any]) -> None:
    first, scratch = workspace.compile(source, op=op)
    edited = source.replace('"""A kernel."""', '"""A kernel,\nsaid in two lines."""').replace(
        "    offsets =", "    # Here.\n    offsets  =  "
    )
    edited = edited.replace('    """Doubles."""\n', "    # Doubles,\n\n    # as it said.\n")
    second, again = workspace.compile(edited, op=op, warm=[str(scratch / "triton.tar.gz")])
    assert edited != source
    assert first["documents"]["triton_cache"]["misses"] != []
    assert second["documents"]["triton_cache"]["misses"] == []
    made, found = (reply["documents"]["triton_cache"]["launchers"] for reply in (first, second))
    assert (len(made["misses"]), made["hits"]) == (found["hits"], len(found["misses"]))
    assert found["hits"] > 0
    assert launches(second) == launches(first)
    assert second["documents"]["resources"] == first["documents"]["resources"]
    assert (again / "triton.tar.gz").read_bytes() == (scratch / "triton.tar.gz").read_bytes()


def test_an_edit_of_the_code_is_compiled(workspace: Workspace) -> None:
    _, scratch = workspace.compile(TUNED)
    reply, _ = workspace.compile(TUNED.replace("+ 1.0", "+ 2.0"), warm=[str(scratch / "triton.tar.gz")])
    assert set(reply["documents"]["triton_cache"]["misses"]) == {"add_kernel"}


def test_the_first_configuration_alone_is_compiled_where_no_other_is_asked_for(workspace: Workspace) -> None:
    document = launches(workspace.compile(TUNED, is_every=False)[0])
    assert document["configurations"] == "first" and document["autotuned"]
    assert {(one["config"]["BLOCK"], one["config"]["num_warps"]) for one in document["launches"]} == {(128, 1)}


def test_a_kernel_that_takes_a_tuple_of_tensors_is_compiled(workspace: Workspace) -> None:
    source = (
        HEAD
        + """

@triton.jit
def sum_kernel(parts, o_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, second = tl.load(parts[0] + offsets, mask=offsets < n), tl.load(parts[1] + offsets, mask=offsets < n)
    tl.store(o_ptr + offsets, first + second, mask=offsets < n)


def triton_op(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        sum_kernel[(triton.cdiv(out.numel(), 64),)]((x, x), out, out.numel(), BLOCK=64)
    return out
"""
    )
    document = launches(workspace.compile(source)[0])
    assert document["coverage"] == "full" and document["launches"]


def test_every_configuration_is_compiled_at_declared_sizes_and_the_first_at_edges(workspace: Workspace) -> None:
    document = launches(workspace.compile(TUNED)[0])
    assert document["coverage"] == "full"
    assert document["autotuned"]
    configs = {(one["config"]["BLOCK"], one["config"]["num_warps"]) for one in document["launches"]}
    assert configs == {(128, 1), (128, 2), (256, 4)}
    by_case = {
        case: sum(one["case"] == case for one in document["launches"])
        for case in {one["case"] for one in document["launches"]}
    }
    assert by_case["small/float32/0"] == 3
    assert by_case["large/float32"] == 3
    edges = {case: count for case, count in by_case.items() if case.startswith("edge/")}
    assert set(edges.values()) == {1}
    assert any("-block[" in case for case in edges)
    large = [one for one in document["launches"] if one["case"] == "large/float32"]
    assert [one["grid"] for one in large] == [[128], [128], [64]]


DIFFERENTIATED = (
    HEAD
    + """

@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=offsets < n), 0.0), mask=offsets < n)


@triton.jit
def relu_back_kernel(g_ptr, o_ptr, d_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    out = tl.load(o_ptr + offsets, mask=offsets < n)
    tl.store(d_ptr + offsets, tl.where(out > 0, tl.load(g_ptr + offsets, mask=offsets < n), 0.0), mask=offsets < n)


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        assert x.device.type == "cuda"
        x = x.contiguous()
        out = torch.empty_like(x)
        if out.numel():
            relu_kernel[(triton.cdiv(out.numel(), 64),)](x, out, out.numel(), BLOCK=64)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        grad = grad.contiguous()
        back = torch.empty_like(grad)
        if back.numel():
            relu_back_kernel[(triton.cdiv(back.numel(), 64),)](grad, out, back, back.numel(), BLOCK=64)
        return back


def triton_op(input):
    return Relu.apply(input)
"""
)


def test_a_backward_pass_of_an_autograd_function_is_compiled(workspace: Workspace) -> None:
    document = launches(workspace.compile(DIFFERENTIATED, op={**declaration(), "backward": True})[0])
    assert (document["coverage"], document["reasons"]) == ("full", [])
    assert {one["kernel"] for one in document["launches"]} == {"relu_kernel", "relu_back_kernel"}


ROWS = (
    HEAD
    + """

@triton.jit
def row_kernel(x_ptr, o_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N) + 1.0, mask=offsets < N)


def triton_op(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    block = min(triton.next_power_of_2(max(x.shape[-1], 1)), 4096)
    if x.shape[-1] > 30000:
        block = BEYOND
    if out.numel():
        row_kernel[(triton.cdiv(out.numel(), block),)](x, out, out.numel(), BLOCK=block)
    return out
"""
)


@pytest.mark.parametrize(("beyond", "is_compiled"), [(64, True), (32768, False)])
def test_lengths_far_beyond_are_compiled_with_the_blocks_of_others_alone(
    workspace: Workspace, beyond: int, is_compiled: bool
) -> None:
    document = launches(workspace.compile(ROWS.replace("BEYOND", str(beyond)), patience=9)[0])
    far = {one["constants"]["BLOCK"] for one in document["launches"] if "N=30001" in one["case"]}
    assert document["coverage"] == "full"
    assert far == ({beyond} if is_compiled else set())


def test_resources_name_stages_that_the_archive_holds(workspace: Workspace) -> None:
    reply, scratch = workspace.compile(SCALE)
    with tarfile.open(scratch / "triton.tar.gz") as tar:
        members = tar.getnames()
    kernels = reply["documents"]["resources"]["kernels"]
    assert {one["compiled"] for one in launches(reply)["launches"]} == {one["compiled"] for one in kernels}
    for kernel in kernels:
        assert list(kernel["stages"]) == ["ttir", "ttgir", "llir", "ptx", "cubin"]
        assert set(kernel["stages"].values()) < set(members)
        assert kernel["registers"] > 0
        assert kernel["spills"] == 0
        assert kernel["num_warps"] == 4
    assert not [name for name in members if "__grp__" in name]


GLUON = """import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def add_kernel(x_ptr, out_ptr, N, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out_ptr + offsets, gl.load(x_ptr + offsets, mask=offsets < N) + 1.0, mask=offsets < N)


def triton_op(x):
    out = torch.empty_like(x)
    if x.numel():
        add_kernel[(x.numel() // 128 + 1,)](x, out, x.numel(), BLOCK=128, num_warps=4)
    return out
"""


def test_kernels_in_gluon_travel_though_they_have_no_first_stage(workspace: Workspace) -> None:
    first, scratch = workspace.compile(GLUON)
    assert {tuple(one["stages"]) for one in first["documents"]["resources"]["kernels"]} == {
        ("ttgir", "llir", "ptx", "cubin")
    }
    second, _ = workspace.compile(GLUON, warm=[str(scratch / "triton.tar.gz")])
    assert first["documents"]["triton_cache"]["misses"] != []
    assert second["documents"]["triton_cache"]["misses"] == []


def test_two_compiles_write_the_same_archive(workspace: Workspace) -> None:
    first, second = (workspace.compile(TUNED)[1] / "triton.tar.gz" for _ in range(2))
    assert first.read_bytes() == second.read_bytes()
    assert str(workspace.root).encode() not in first.read_bytes()


def test_each_target_has_its_own_properties(workspace: Workspace) -> None:
    document = launches(workspace.compile(SCALE, targets=targets("nvidia-h200", "nvidia-h100-pcie", "nvidia-a100"))[0])
    sms = {one["target"]: one["constants"]["SMS"] for one in document["launches"]}
    assert sms == {"nvidia-h200": 132, "nvidia-h100-pcie": 114, "nvidia-a100": 108}
    compiled = {one["target"]: one["compiled"] for one in document["launches"] if one["case"] == "large/float32"}
    assert len(set(compiled.values())) == 3


def test_properties_asked_for_at_import_are_those_of_each_target(workspace: Workspace) -> None:
    source = SCALE.replace(
        "import triton.language as tl\n",
        "import triton.language as tl\nSM_COUNT = torch.cuda.get_device_properties(0).multi_processor_count\n",
    ).replace("SMS=sms", "SMS=SM_COUNT")
    document = launches(workspace.compile(source, targets=targets("nvidia-h200", "nvidia-a100"))[0])
    assert {(one["target"], one["constants"]["SMS"]) for one in document["launches"]} == {
        ("nvidia-h200", 132),
        ("nvidia-a100", 108),
    }


def test_a_compile_error_names_the_users_own_line_and_column(workspace: Workspace) -> None:
    source = TUNED.replace(
        "    tl.store(", '    """Adds."""\n    # A comment.\n    y   =   undefined_name\n    tl.store('
    )
    record = workspace.failure(source)
    line = source.splitlines().index("    y   =   undefined_name") + 1
    assert record["class"] == "compile-error"
    assert record["place"] == {"file": "kernels/op/v1.py", "line": line, "column": 13}
    assert record["excerpt"] == "y   =   undefined_name"
    assert "undefined_name is not defined" in record["message"]
    assert record["traceback"][-1] == f"kernels/op/v1.py:{line} in add_kernel"


def test_a_compile_error_in_a_called_function_names_its_line(workspace: Workspace) -> None:
    source = TUNED.replace("def configs", "@triton.jit\ndef plus(x):\n    return x + tl.nothing(x)\n\n\ndef configs")
    record = workspace.failure(source.replace(" + 1.0", " + plus(1.0)"))
    assert record["excerpt"] == "return x + tl.nothing(x)"


def test_a_grid_that_cuda_does_not_launch_is_a_compile_error(workspace: Workspace) -> None:
    source = SCALE.replace("(min(x.shape[0], sms),)", "(min(x.shape[0], sms), 70000)")
    record = workspace.failure(source)
    assert record["class"] == "compile-error"
    assert "70000 programs along axis 1" in record["message"] and "65535" in record["message"]
    assert record["place"]["file"] == "kernels/op/v1.py", "the line that launches"
    assert record["excerpt"].startswith("scale_kernel[(min(")


def test_what_ptxas_refuses_is_a_compile_error(workspace: Workspace) -> None:
    text = 'tl.inline_asm_elementwise("bogus $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)'
    record = workspace.failure(SCALE.replace("x * 2.0", text))
    assert record["class"] == "compile-error"
    assert "bogus" in record["message"]
    assert record["place"]["file"] == "kernels/op/v1.py"


def test_a_configuration_beyond_the_shared_memory_is_dropped(workspace: Workspace) -> None:
    document = launches(workspace.compile(DOT, targets=targets("nvidia-h200", shared_memory=20000))[0])
    assert {one["config"]["BLOCK"] for one in document["launches"]} == {32}
    [dropped] = document["dropped"]
    assert dropped["target"] == "nvidia-h200"
    assert dropped["kernel"] == "dot_kernel"
    assert dropped["config"]["BLOCK"] == 64
    assert dropped["reason"].endswith("bytes of shared memory, has 20000")


def test_a_dropped_configuration_is_in_the_archive_all_the_same(workspace: Workspace) -> None:
    # A GPU compiles it before it finds that it does not fit.
    reply, scratch = workspace.compile(DOT, targets=targets("nvidia-h200", shared_memory=20000))
    with tarfile.open(scratch / "triton.tar.gz") as tar:
        folders = {name.split("/")[0] for name in tar.getnames()}
    kept = {one["compiled"] for one in reply["documents"]["resources"]["kernels"]}
    assert kept < folders


def test_a_variant_with_no_configuration_left_is_rejected(workspace: Workspace) -> None:
    record = workspace.failure(DOT, targets=targets("nvidia-h200", shared_memory=1000))
    assert record["class"] == "compile-error"
    assert record["message"].endswith("bytes of shared memory, has 1000")


def test_a_configuration_that_asserts_is_dropped(workspace: Workspace) -> None:
    source = TUNED.replace("    offsets =", '    tl.static_assert(BLOCK == 128, "no")\n    offsets =')
    document = launches(workspace.compile(source)[0])
    assert {one["config"]["BLOCK"] for one in document["dropped"]} == {256}


ERRING = TUNED.replace("+ 1.0", "+ (undefined_name if BLOCK == 256 else 1.0)")


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        (TUNED, {"targets": targets("nvidia-h200", "nvidia-h100")}),
        (SCALE, {"op": declaration(("float32", "float16"))}),
        (DOT, {"targets": targets("nvidia-h200", shared_memory=20000)}),
        (DOT, {"targets": targets("nvidia-h200", shared_memory=1000)}),
        (TUNED.replace("    offsets =", '    tl.static_assert(BLOCK == 128, "no")\n    offsets ='), {}),
        (ERRING, {}),
        (TUNED + "\ndef broken(:\n", {}),
    ],
    ids=["two targets", "two dtypes", "dropped", "none fits", "asserts", "erring", "broken"],
)
@pytest.mark.parametrize("patience", [0.0, 0.05, 60.0])
def test_several_processes_tell_what_one_tells(
    workspace: Workspace, source: str, changes: dict[str, Any], patience: float
) -> None:
    alone, one = workspace.compile(source, **changes)
    together, three = workspace.compile(source, patience, processes=3, **changes)
    assert together == alone
    if alone["outcome"] == "passed":
        assert (one / "triton.tar.gz").read_bytes() == (three / "triton.tar.gz").read_bytes()


def test_each_kernel_is_compiled_by_one_process_and_found_by_the_one_that_tells(workspace: Workspace) -> None:
    reply, scratch = workspace.compile(COUNTED, processes=3)
    assert reply["outcome"] == "passed"
    compiled = reply["documents"]["triton_cache"]["misses"]
    told = [line.split() for line in (scratch / "compiled.txt").read_text().splitlines()]
    assert len({text for _, text in told}) == len(told) == len(compiled) > 3
    assert len({process for process, _ in told}) > 1
    alone, folder = workspace.compile(COUNTED)
    told_alone = [line.split() for line in (folder / "compiled.txt").read_text().splitlines()]
    assert {text for _, text in told_alone} == {text for _, text in told}
    assert len({process for process, _ in told_alone}) == 1
    assert alone["documents"]["triton_cache"] == reply["documents"]["triton_cache"]


def test_few_kernels_are_compiled_by_one_process(workspace: Workspace) -> None:
    _, scratch = workspace.compile(COUNTED, 60.0, processes=3)
    told = [line.split() for line in (scratch / "compiled.txt").read_text().splitlines()]
    assert len({process for process, _ in told}) == 1 < len(told)


def test_what_is_compiled_before_a_process_begins_anew_is_not_compiled_again(workspace: Workspace) -> None:
    # A compile of the first configuration outlasts the patience, and so does all that comes after.
    slow = COUNTED.replace("def noted", "import time\n\n\ndef noted").replace(
        "    return make_cubin", "    time.sleep(0.3)\n    return make_cubin"
    )
    reply, scratch = workspace.compile(slow, 0.2, processes=3)
    told = [line.split() for line in (scratch / "compiled.txt").read_text().splitlines()]
    assert len({text for _, text in told}) == len(told) == len(reply["documents"]["triton_cache"]["misses"])


def test_a_constant_that_json_has_no_form_for_hinders_no_process(workspace: Workspace) -> None:
    source = COUNTED.replace("BLOCK: tl.constexpr):", "BLOCK: tl.constexpr, more: tl.constexpr):").replace(
        "+ 1.0, mask", "+ more(1.0), mask"
    )
    source = source.replace("@triton.autotune", "@triton.jit\ndef twice(x):\n    return x * 2\n\n\n@triton.autotune", 1)
    source = source.replace("(x, out, out.numel())", "(x, out, out.numel(), more=twice)")
    reply, scratch = workspace.compile(source, processes=3)
    assert launches(reply)["coverage"] == "full"
    told = [line.split() for line in (scratch / "compiled.txt").read_text().splitlines()]
    assert len({process for process, _ in told}) > 1


def test_what_ends_a_fork_ends_no_compile(workspace: Workspace) -> None:
    source = TUNED.replace("import torch, triton\n", "import os, torch, triton\n").replace(
        "    out = torch", '    if os.environ.get("FIRST") != str(os.getpid()): os._exit(3)\n    out = torch'
    )
    source = source.replace("def configs", 'os.environ.setdefault("FIRST", str(os.getpid()))\n\n\ndef configs', 1)
    assert launches(workspace.compile(source, processes=2)[0])["coverage"] == "full"


def test_a_launch_that_depends_on_data_leaves_the_coverage_partial(workspace: Workspace) -> None:
    source = TUNED.replace(
        "    out = torch", "    if x.numel() > 1000 and x.sum().item() > 0:\n        x = -x\n    out = torch"
    )
    document = launches(workspace.compile(source)[0])
    assert document["coverage"] == "partial"
    assert document["reasons"][0].startswith("large/float32: DataDependentOutputException")
    assert "small/float32/0" in {one["case"] for one in document["launches"]}


def test_an_exception_of_the_wrapper_is_left_to_the_check(workspace: Workspace) -> None:
    source = TUNED.replace("    out = torch", "    assert x.shape[1] % 2 == 0, 'even'\n    out = torch")
    document = launches(workspace.compile(source)[0])
    assert document["coverage"] == "partial"
    assert all(reason.startswith("edge/") and "AssertionError: even" in reason for reason in document["reasons"])


def test_a_module_that_cannot_be_imported_is_rejected_with_its_line(workspace: Workspace) -> None:
    record = workspace.failure(
        TUNED.replace("import triton.language as tl\n", "import triton.language as tl\nimport nope\n")
    )
    assert (record["class"], record["excerpt"]) == ("exception", "import nope")
    record = workspace.failure(TUNED + "\ndef broken(:\n")
    assert (record["class"], record["excerpt"]) == ("exception", "def broken(:")


def test_leaving_the_process_is_not_swallowed(workspace: Workspace) -> None:
    with pytest.raises(ChildProcessError, match="ended with 3"):
        workspace.compile(TUNED.replace("    out = torch", "    raise SystemExit(3)\n    out = torch"))


def test_an_archive_with_a_member_outside_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as tar:
        tar.add(__file__, "../outside.json")
    with pytest.raises(ValueError, match="outside"):
        warm.unpack(tmp_path / "bad.tar.gz", tmp_path / "cache")
    assert not (tmp_path / "outside.json").exists()


def test_a_kernel_is_unpacked_when_triton_looks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.cache import FileCacheManager

    for name in ("ONE", "OTHER"):
        (tmp_path / "made" / name).mkdir(parents=True)
        for stage in ("json", "cubin"):
            (tmp_path / "made" / name / f"kernel.{stage}").write_text(f"{name} {stage}")
    warm.pack(tmp_path / "made", ["ONE", "OTHER"], [], tmp_path / "archive")
    cache = tmp_path / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    monkeypatch.setattr(FileCacheManager, "__init__", FileCacheManager.__init__)
    warm.unpack_as_asked({"warm": [str(tmp_path / "archive")]})
    found = FileCacheManager("ONE").get_group("kernel.json")
    assert found is not None
    assert {name: Path(place).read_text() for name, place in found.items()} == {
        "kernel.json": "ONE json",
        "kernel.cubin": "ONE cubin",
    }
    assert [folder.name for folder in cache.iterdir()] == ["ONE"]
    assert FileCacheManager("NEITHER").get_group("kernel.json") is None
    # What Triton made meanwhile is not overwritten.
    (cache / "ONE" / "kernel.cubin").write_text("newer")
    FileCacheManager("ONE")
    assert (cache / "ONE" / "kernel.cubin").read_text() == "newer"


ENDLESS = {
    "a loop of launches": (
        "    return out",
        "    while True:\n        scale_kernel[(1,)](x, out, *x.shape, *x.stride(), SMS=sms, BLOCK=64)",
        "a case",
    ),
    "what catches all": (
        "    return out",
        "    while True:\n        try:\n            sum(range(1000))\n        except Exception:\n            pass",
        "a case",
    ),
    "an import": ("def triton_op", "while True:\n    sum(range(1000))\n\n\ndef triton_op", "import"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_call_that_does_not_return_leaves_the_rest_to_the_check(name: str, workspace: Workspace) -> None:
    written, instead, place = ENDLESS[name]
    assert written in SCALE
    reply, _ = workspace.compile(SCALE.replace(written, instead), endless=0.3)
    document = launches(reply)
    assert document["coverage"] == "partial"
    [reason] = document["reasons"]
    assert reason.endswith(": not over after 0.3 s in which nothing was compiled"), reason
    assert (place == "import") == reason.startswith("import: ")
    assert len(document["launches"]) <= 2 and bool(document["launches"]) == (place != "import")
