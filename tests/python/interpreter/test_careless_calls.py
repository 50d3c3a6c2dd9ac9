"""Kernels that are wrong only in the way in which they are called: which gradients are wanted, what becomes of the output, how many programs there are, and which seeds follow each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, require_rejected, tensor, verdict

from children import ask
from t2t_harness.cases import programs

SIZES = {"small": {"M": 4, "N": 6}, "large": {"M": 8, "N": 12}}


def op(torch_name: str, names: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """Returns an op of inputs of one shape, of few cases."""
    given = [tensor(name, ["M", "N"], requires_grad=True) for name in names]
    return declared(torch_name, given, SIZES["small"], **{"seeds": 1, "sizes": SIZES, **more})


PRODUCT = """
@triton.jit
def product_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, factor, shift, SUM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = factor * tl.load(x_ptr + offsets, mask=mask) * (tl.load(y_ptr + offsets, mask=mask) + shift)
    if SUM:
        value += tl.load(z_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, value, mask=mask)


def product(x, y, z=None, factor=1.0, shift=0.0, out=None):
    out = torch.empty_like(x) if out is None else out
    if x.numel():
        product_kernel[(triton.cdiv(x.numel(), 64),)](
            x, y, z, out, x.numel(), factor, shift, SUM=z is not None, BLOCK=64
        )
    return out


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, tensor1, tensor2, value):
        x, y, z = (one.contiguous() for one in (tensor1, tensor2, input))
        ctx.save_for_backward(x, y)
        ctx.value = value
        return product(x, y, z, value, out=None)

    @staticmethod
    def backward(ctx, upstream):
        x, y = ctx.saved_tensors
        upstream = upstream.contiguous()
        of_x = of_y = None
        if ctx.needs_input_grad[1]:
            of_x = product(upstream, y, None, ctx.value)
        if ctx.needs_input_grad[2]:
            of_y = product(upstream, x, None, ctx.value)
        return upstream.clone() if ctx.needs_input_grad[0] else None, of_x, of_y, None


def wrapper(input, tensor1, tensor2, value=1.0):
    return Product.apply(input, tensor1, tensor2, value)
"""

SUMMED = op("torch.addcmul", ("input", "tensor1", "tensor2"), backward=True, kwargs={"value": 1.5})

OF_ONE = {
    "over an input": ("z, value, out=None)", "z, value, out=None if any(ctx.needs_input_grad) else z)"),
    "where another one is wanted": (
        "if ctx.needs_input_grad[1]:",
        "if ctx.needs_input_grad[1] and ctx.needs_input_grad[2]:",
    ),
}


def test_a_kernel_for_each_gradient_that_is_wanted_passes(tmp_path: Path) -> None:
    require_passed(tmp_path, SUMMED, PRODUCT)


@pytest.mark.parametrize("fault", OF_ONE)
def test_a_kernel_that_relies_on_which_gradients_are_wanted_is_rejected(tmp_path: Path, fault: str) -> None:
    require_rejected(tmp_path, SUMMED, PRODUCT, *OF_ONE[fault], ("mutated-input", "mismatch"))


EXPM1 = """
@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, KEPT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    x = x if KEPT else 2.0 * x
    tl.store(out_ptr + offsets, x * tl.load(y_ptr + offsets, mask=mask), mask=mask)


def launched(kernel, like, *given, **more):
    out = torch.empty_like(like)
    if like.numel():
        kernel[(triton.cdiv(like.numel(), 64),)](*given, out, like.numel(), BLOCK=64, **more)
    return out


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        x = input.contiguous()
        out = launched(product_kernel, x, x, x, KEPT=True)
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return launched(product_kernel, x, x, upstream.contiguous(), KEPT=False)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        x = input.contiguous()
        out = launched(exp_kernel, x, x)
        KEEP
        return out

    @staticmethod
    def backward(ctx, upstream):
        out = KEPT
        return launched(product_kernel, out, out, upstream.contiguous(), KEPT=True)


def wrapper(input):
    return Exp.apply(input)
"""

EXP_REFERENCE = '''"""What is right."""


def exp(input):
    """Returns the exponential, whose gradient its result does not decide."""
    return input.exp().clone()
'''


@pytest.mark.parametrize(
    ("keep", "kept", "class_"),
    [
        ("ctx.save_for_backward(out)", "ctx.saved_tensors[0]", None),
        ("ctx.save_for_backward(x)", "launched(exp_kernel, ctx.saved_tensors[0], ctx.saved_tensors[0])", None),
        ("ctx.out = out.detach()", "ctx.out", "mismatch"),
    ],
    ids=["autograd watches it", "made again", "nobody watches it"],
)
def test_an_output_that_is_changed_before_the_backward_pass(
    tmp_path: Path, keep: str, kept: str, class_: str | None
) -> None:
    file = tmp_path / "workspace/references/exp.py"
    file.parent.mkdir(parents=True)
    file.write_text(EXP_REFERENCE, encoding="utf-8")
    reference = {"file": "references/exp.py", "name": "exp", "init": {}, "root": str(tmp_path / "workspace")}
    declaration = {**op("", ("input",), backward=True), "reference": reference, "torch": None}
    kernel = EXPM1.replace("KEEP\n", f"{keep}\n").replace("out = KEPT\n", f"out = {kept}\n")
    documents = check(tmp_path, declaration, kernel)
    assert documents["verdict"]["class"] == class_, documents["evidence"]["failure"]
    (row,) = [row for row in documents["evidence"]["cases"] if row["name"] == "edge/gradients-changed/float32"]
    wanted = {"mismatch": "rejected", None: "dropped" if "save_for_backward(out)" in keep else "passed"}
    assert row["verdict"] == wanted[class_], row
    ended = repeated(tmp_path, declaration, row["name"])
    assert (ended.returncode == 0) == (row["verdict"] == "passed"), ended
    assert ("differs from torch's" in ended.stdout) == (row["verdict"] == "rejected"), ended


def repeated(tmp_path: Path, declaration: dict[str, Any], case: str) -> subprocess.CompletedProcess[str]:
    """Runs the case outside of t2t, of the kernel that was checked."""
    scratch = tmp_path / "repro"
    scratch.mkdir()
    request = {
        "op": declaration,
        "root": str(tmp_path / "workspace"),
        "scratch": str(scratch),
        "lane": "interpreter",
        "prepared": None,
        "variant": {"name": "v1", "file": "kernels/op/v1.py", "entry": "wrapper"},
        "case": case,
        "constants": {},
        "reached": [],
        "bindings": {},
    }
    assert ask("repro.write", request, interpreter=True)["documents"]["repro"]["case"] == case
    return subprocess.run([sys.executable, scratch / "repro.py"], capture_output=True, text=True, check=False)


MEAN = """
@triton.jit
def part_kernel(x_ptr, part_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(x, axis=0))


@triton.jit
def whole_kernel(part_ptr, out_ptr, parts, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.load(part_ptr + offsets, mask=offsets < parts, other=0.0)
    for start in range(BLOCK, parts, BLOCK):
        total += tl.load(part_ptr + start + offsets, mask=start + offsets < parts, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def wrapper(input):
    x = input.contiguous()
    parts = triton.cdiv(x.numel(), 32)
    part = torch.empty(max(parts, 1), dtype=torch.float32)
    out = torch.empty((), dtype=x.dtype)
    if x.numel():
        part_kernel[(parts,)](x, part, x.numel(), BLOCK=32)
    whole_kernel[(1,)](part, out, parts, float(x.numel()), BLOCK=256)
    return out
"""

MEAN_OF = op("torch.mean", ("input",), measured={"large": {"M": 512, "N": 512}})

ADDS_A_FEW = ("for start in range(BLOCK, parts, BLOCK):", "for start in range(BLOCK, 0, BLOCK):")


def test_partial_sums_of_more_programs_than_a_block_are_tried(tmp_path: Path) -> None:
    documents = check(tmp_path / "honest", MEAN_OF, MEAN)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    names = [row["name"] for row in documents["evidence"]["cases"]]
    assert any(name.startswith("edge/programs[") for name in names), names
    class_, said = verdict(tmp_path / "wrong", MEAN_OF, MEAN.replace(*ADDS_A_FEW))
    assert class_ == "mismatch", said


def test_programs_are_counted_where_several_kernels_are_launched() -> None:
    def launched(case: Any) -> list[tuple[str, int]]:
        return [("part", -(-case.binding["M"] * case.binding["N"] // 32)), ("whole", 1)]

    sizes = {"large": {"M": 512, "N": 512}}
    found = programs.explored(MEAN_OF, sizes, {"part": 12, "whole": 1}, [32, 256], launched)
    assert found.lengths == [{"M": 65, "N": 512}] and found.missed == []
    assert programs.explored(MEAN_OF, sizes, {"part": 8192, "whole": 1}, [], launched).lengths == []
    alone = programs.explored(MEAN_OF, sizes, {}, [], lambda case: launched(case)[:1])
    assert (alone.lengths, alone.missed) == ([], [])
    whole = programs.explored(
        MEAN_OF, sizes, {}, [], lambda case: [("part", 300 if case.binding == sizes["large"] else 1)] * 2
    )
    assert [one[:2] for one in whole.missed] == [("large", "part")] and whole.lengths == []


DROPOUT = """
@triton.jit
def dropout_kernel(x_ptr, out_ptr, seed, N, p, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask)
    keep = tl.rand(seed, row * N + cols) >= p
    tl.store(out_ptr + row * N + cols, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def wrapper(input, p, training, seed):
    assert training and 0 <= p < 1
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        dropout_kernel[(x.shape[0],)](x, out, seed, x.shape[1], p, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""


def test_the_mask_of_a_seed_is_not_that_of_the_next_seed_shifted_by_a_row(tmp_path: Path) -> None:
    random = {"kind": "dropout", "p": "p", "seed": "seed"}
    told = {"kwargs": {"p": 0.5, "training": True}, "random": random}
    declaration = declared("torch.nn.functional.dropout", [tensor("input", ["M", "N"])], {"M": 16, "N": 24}, **told)
    require_passed(tmp_path / "honest", declaration, DROPOUT)
    wrong = DROPOUT.replace("tl.rand(seed, row * N + cols)", "tl.rand(seed + row, cols)")
    class_, said = verdict(tmp_path / "wrong", declaration, wrong)
    assert class_ == "mismatch" and "one seed and the next" in said, said


FLIP = """
@triton.jit
def repeat_kernel(x_ptr, out_ptr, n, N, TIMES: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets // (N * TIMES) * N + offsets % (N * TIMES) // TIMES, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


def wrapper(input, repeats, dim):
    if repeats != 3 or dim != 1:
        raise NotImplementedError("three times, along the rows")
    x = COPY
    out = torch.empty((x.shape[0], x.shape[1] * 3), dtype=x.dtype)
    if x.numel():
        repeat_kernel[(triton.cdiv(out.numel(), 64),)](x, out, out.numel(), x.shape[1], TIMES=3, BLOCK=64)
    return out
"""


@pytest.mark.parametrize(
    ("copy", "class_"), [("input.contiguous()", None), ("input.t().clone().t().contiguous()", "torch-fallback")]
)
def test_a_dense_copy_of_an_input_is_allowed_where_the_op_consists_of_copies(
    tmp_path: Path, copy: str, class_: str | None
) -> None:
    declaration = op("torch.repeat_interleave", ("input",), kwargs={"repeats": 3, "dim": 1})
    assert verdict(tmp_path, declaration, FLIP.replace("COPY", copy))[0] == class_
