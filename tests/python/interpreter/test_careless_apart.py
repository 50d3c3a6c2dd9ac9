"""Faults that show where inputs lie otherwise than each other, where an argument's code reads a middle dim in several blocks, and from one call of a class to the next. Beside each the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import both_tests, check, declared, require_passed, tensor, verdict

VECTORS = """
@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, sx, sy, sz, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i * sx, mask=i < n), tl.load(y_ptr + i * sy, mask=i < n)
    tl.store(out_ptr + i, x + y * tl.load(z_ptr + i * sz, mask=i < n), mask=i < n)

def wrapper(input, tensor1, tensor2):
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    if out.numel():
        strides = input.stride(0), tensor1.stride(0), tensor2.stride(0)
        kernel[(triton.cdiv(out.numel(), 16),)](input, tensor1, tensor2, out, out.numel(), *strides, BLOCK=16)
    return out
"""

ROWS = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, sx, sy, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + row * sx + cols, mask=cols < N), tl.load(y_ptr + row * sy + cols, mask=cols < N)
    tl.store(out_ptr + row * N + cols, x * y, mask=cols < N)

def wrapper(input, other):
    x, y = (one if one.stride(-1) == 1 else one.contiguous() for one in (input, other))
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(M,)](x, y, out, N, x.stride(0), y.stride(0), BLOCK=triton.next_power_of_2(N))
    return out
"""

CUMULATED = """
@triton.jit
def kernel(x_ptr, out_ptr, T, D, sb, st, sd, REVERSE: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    b, d = tl.program_id(0), tl.program_id(1) * BD + tl.arange(0, BD)
    carry, n = tl.zeros((BD,), tl.float32), tl.cdiv(T, BT)
    for i in range(0, n):
        j = n - 1 - i if REVERSE else i
        t = j * BT + tl.arange(0, BT)
        mask = (t[:, None] < T) & (d[None, :] < D)
        x = tl.load(x_ptr + b * sb + t[:, None] * st + d[None, :] * sd, mask=mask, other=0.0)
        tl.store(out_ptr + (b * T + t[:, None]) * D + d[None, :], tl.cumsum(x, 0, reverse=REVERSE) + carry, mask=mask)
        carry += tl.sum(x, 0)

def wrapper(x, reverse=False):
    B, T, D = x.shape
    out = torch.empty((B, T, D), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(B, triton.cdiv(D, 16))](x, out, T, D, *x.stride(), REVERSE=reverse, BT=16, BD=16)
    return out
"""

REFERENCE = """
import torch

def cumulated(x, reverse=False):
    return x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
"""

OPS = {
    "vectors": declared("torch.addcmul", [tensor(name, ["N"]) for name in ("input", "tensor1", "tensor2")], {"N": 24}),
    "rows": declared("torch.mul", [tensor(name, ["M", "N"]) for name in ("input", "other")], {"M": 6, "N": 20}),
}

test_honest_kernels_pass, test_faults_are_seen = both_tests(
    {"vectors": (OPS["vectors"], VECTORS), "rows": (OPS["rows"], ROWS)},
    {
        "strides of another vector": ("vectors", "tensor2.stride(0)\n", "tensor1.stride(0)\n"),
        "a vector taken as dense": ("vectors", "input.stride(0), ", "1, "),
        "the rows of another": ("rows", "x.stride(0), y.stride(0)", "x.stride(0), x.stride(0)"),
    },
)


def referring(folder: Path, text: str, name: str, given: dict[str, Any], binding: dict[str, int], **more: Any) -> Any:
    """Returns the op that is `name` in the reference `text`, which is written into `folder`."""
    (folder / "reference.py").write_text(text, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder), **more.pop("reference", {})}
    return declared("", [given], binding, torch=None, reference=reference, **more)


def test_a_flag_is_tried_where_several_blocks_read_a_middle_dim(tmp_path: Path) -> None:
    given = tensor("x", ["B", "T", "D"])
    op = referring(tmp_path, REFERENCE, "cumulated", given, {"B": 2, "T": 12, "D": 8}, kwargs={"reverse": False})
    require_passed(tmp_path / "right", op, CUMULATED)
    documents = check(tmp_path / "wrong", op, CUMULATED.replace("n - 1 - i if REVERSE else i", "i"))
    assert documents["evidence"]["failure"]["case"] == "edge/kwarg[reverse=True,T=67]/float32"


SCALED = """
@triton.jit
def exponential(scale_ptr, out_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(out_ptr + cols, tl.exp(tl.load(scale_ptr + cols, mask=cols < N)), mask=cols < N)

@triton.jit
def multiplied(x_ptr, s_ptr, out_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N)
    tl.store(out_ptr + row * N + cols, x * tl.load(s_ptr + cols, mask=cols < N), mask=cols < N)

@triton.jit
def of_scale(x_ptr, g_ptr, s_ptr, out_ptr, M, xm, xn, gm, gn, BLOCK: tl.constexpr):
    col, rows = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows * xm + col * xn, mask=rows < M, other=0.0)
    g = tl.load(g_ptr + rows * gm + col * gn, mask=rows < M, other=0.0)
    tl.store(out_ptr + col, tl.sum(x * g) * tl.load(s_ptr + col))

def exp(scale):
    out = torch.empty_like(scale)
    exponential[(1,)](scale, out, scale.numel(), BLOCK=triton.next_power_of_2(scale.numel()))
    return out

def times(x, s):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel():
        multiplied[(M,)](x, s, out, N, *x.stride(), BLOCK=triton.next_power_of_2(N))
    return out

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, owner):
        s = exp(scale)
        ctx.save_for_backward(x, s)
        ctx.owner, owner.x = owner, x.detach()
        return times(x, s)

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        of_s = torch.empty_like(s)
        block = triton.next_power_of_2(max(x.shape[0], 1))
        of_scale[(s.numel(),)](x, grad, s, of_s, x.shape[0], *x.stride(), *grad.stride(), BLOCK=block)
        return times(grad, s), of_s, None

class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(dim))
        self.kept = None

    def forward(self, x):
        return Scale.apply(x, self.scale, self)
"""

SCALE = """
import torch

class Scaled(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return x * self.scale.exp()
"""

CALLS = {
    "the exponential of the first weights": (
        "s = exp(scale)",
        "s = owner.kept = exp(scale) if owner.kept is None else owner.kept",
        "edge/again[weights]/float32",
    ),
    "no gradient of a weight alone": (
        "times(grad, s), of_s, None",
        "times(grad, s), of_s if ctx.needs_input_grad[0] else None, None",
        "edge/gradients[parameters]/float32",
    ),
    "the inputs of the last call": ("x, s = ctx.saved_tensors", "x, s = ctx.owner.x, ctx.saved_tensors[1]", None),
}


def scaled(folder: Path, **more: Any) -> Any:
    """Returns the op of the module that is scaled by the exponential of a weight."""
    given, init = tensor("x", ["M", "N"]), {"init": {"dim": "N"}}
    return referring(folder, SCALE, "Scaled", given, {"M": 7, "N": 6}, reference=init, **more)


def test_a_module_that_is_right_in_each_call_passes(tmp_path: Path) -> None:
    require_passed(tmp_path / "trained", scaled(tmp_path, backward=True), SCALED)


def test_weights_of_other_names_are_not_changed_between_calls(tmp_path: Path) -> None:
    # What torch's instance has under no such name cannot be given to the kernel's.
    documents = check(tmp_path / "own", scaled(tmp_path), SCALED.replace("self.scale", "self.factor"))
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    documents = check(
        tmp_path / "trained", scaled(tmp_path, backward=True), SCALED.replace("self.scale", "self.factor")
    )
    rows = {row["name"]: row for row in documents["evidence"]["cases"]}
    row = rows["edge/again[weights]/float32"]
    assert (row["verdict"], row["reason"]) == ("dropped", "the kernel's class holds other tensors than the reference")


@pytest.mark.parametrize(("written", "instead", "case"), CALLS.values(), ids=CALLS)
def test_a_module_that_is_right_in_the_first_call_alone_is_seen(
    tmp_path: Path, written: str, instead: str, case: str | None
) -> None:
    assert written in SCALED
    failure = check(tmp_path, scaled(tmp_path, backward=True), SCALED.replace(written, instead))["evidence"]["failure"]
    assert failure is not None and case in (None, failure["case"])


def test_what_is_not_trained_may_be_kept_in_another_form(tmp_path: Path) -> None:
    written, instead, _ = CALLS["the exponential of the first weights"]
    require_passed(tmp_path / "kept", scaled(tmp_path), SCALED.replace(written, instead))


TABLE = """
import torch

class Placed(torch.nn.Module):
    def forward(self, x):
        return x + torch.arange(x.shape[0], device=x.device, dtype=x.dtype)[:, None]
"""

PLACED = """
@triton.jit
def places(out_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.program_id(0).to(tl.float32))

@triton.jit
def added(x_ptr, table_ptr, out_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N)
    tl.store(out_ptr + row * N + cols, x + tl.load(table_ptr + row), mask=cols < N)

class wrapper(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        M, N = x.shape
        if self.table is None or self.table.shape[0] < M:
            self.table = torch.empty(M, dtype=x.dtype, device=x.device)
            if M:
                places[(M,)](self.table)
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if out.numel():
            added[(M,)](x, self.table, out, N, *x.stride(), BLOCK=triton.next_power_of_2(N))
        return out
"""


def test_a_table_that_the_first_call_makes_is_too_short_for_a_longer_one(tmp_path: Path) -> None:
    op = referring(tmp_path, TABLE, "Placed", tensor("x", ["M", "N"]), {"M": 7, "N": 6})
    require_passed(tmp_path / "right", op, PLACED)
    written = " or self.table.shape[0] < M"
    assert written in PLACED
    assert verdict(tmp_path / "wrong", op, PLACED.replace(written, ""))[0] in ("nan", "mismatch", "out-of-bounds")


GAIN = """
import torch

class Gained(torch.nn.Module):
    def __init__(self, dim, gain=2.0, squares=False, dropout=0.0):
        super().__init__()
        if gain <= 0:
            raise ValueError(gain)
        self.gain, self.squares = gain, squares
        self.scale = torch.nn.Parameter(torch.randn(dim))
        self.drop = torch.nn.Dropout(dropout)

    def forward(self, x):
        return self.drop((x * x if self.squares else x) * self.scale * self.gain)
"""

GAINED = """
@triton.jit
def gained(x_ptr, s_ptr, out_ptr, N, gain, sm, sn, SQUARES: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N)
    if SQUARES:
        x = x * x
    tl.store(out_ptr + row * N + cols, x * tl.load(s_ptr + cols, mask=cols < N) * gain, mask=cols < N)

class wrapper(torch.nn.Module):
    def __init__(self, dim, gain=2.0, squares=False, dropout=0.0):
        super().__init__()
        self.gain, self.squares = gain, squares
        self.scale = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        M, N = x.shape
        block = triton.next_power_of_2(N)
        gained[(M,)](x, self.scale, out, N, self.gain, *x.stride(), SQUARES=self.squares, BLOCK=block)
        return out
"""


def test_arguments_of_a_constructor_that_ops_yaml_leaves_to_their_defaults_are_tried(tmp_path: Path) -> None:
    given, init = tensor("x", ["M", "N"]), {"init": {"dim": "N"}}
    op = referring(tmp_path, GAIN, "Gained", given, {"M": 7, "N": 6}, reference=init)
    require_passed(tmp_path / "right", op, GAINED)
    rows = check(tmp_path / "names", op, GAINED)["evidence"]["cases"]
    names = [row["name"] for row in rows if "/init[" in row["name"]]
    # What the reference refuses, and what draws, is not.
    assert names and not any("dropout" in name or "gain=0" in name or "gain=-" in name for name in names), names
    for argument, used in (("gain", "N, self.gain,"), ("squares", "SQUARES=self.squares")):
        careless = GAINED.replace(used, "N, 2.0," if argument == "gain" else "SQUARES=False")
        failure = check(tmp_path / argument, op, careless)["evidence"]["failure"]
        assert failure is not None and f"/init[{argument}=" in failure["case"]
    # A constructor that does not know the argument is called without it.
    require_passed(
        tmp_path / "fewer",
        op,
        GAINED.replace(", gain=2.0, squares=False", "").replace(
            "self.gain, self.squares = gain, squares", "self.gain, self.squares = 2.0, False"
        ),
    )


ROWS = """
import torch

def weight_of(x):
    return torch.logsumexp(x, -1).mean()

def quantized(x, eps=1e-10):
    scale = x.abs().amax(-1, keepdim=True).clamp(min=eps) / 448
    return (x / scale).to(torch.float8_e4m3fn)

def halved(x, out_dtype=torch.float16):
    return (x / 2).to(out_dtype)
"""

WEIGHT = """
@triton.jit
def rows_kernel(x_ptr, found_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest, total = float("-inf"), 0.0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * sm + at * sn, mask=at < N, other=float("-inf"))
        new = tl.maximum(largest, tl.max(x, 0))
        base = tl.where(tl.abs(new) == float("inf"), 0.0, new)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(x - base), 0)
        largest = new
    base = tl.where(tl.abs(largest) == float("inf"), 0.0, largest)
    tl.store(found_ptr + row, base + tl.log(total))


@triton.jit
def mean_kernel(found_ptr, out_ptr, M, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, M, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(found_ptr + at, mask=at < M, other=0.0)
    tl.store(out_ptr, tl.sum(total, 0) / M)


def wrapper(x):
    M, N = x.shape
    found = torch.empty((M,), dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    if M:
        rows_kernel[(M,)](x, found, N, *x.stride(), BLOCK=32)
    mean_kernel[(1,)](found, out, M, BLOCK=32)
    return out
"""

HALVED = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) / 2, mask=at < n)


def wrapper(x, out_dtype=torch.float16):
    x = x.contiguous()
    out = torch.empty(x.shape, dtype=out_dtype, device=x.device)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""


def test_a_row_that_begins_with_minus_infinity_shows_where_all_rows_become_one_number(tmp_path: Path) -> None:
    op = referring(tmp_path, ROWS, "weight_of", tensor("x", ["M", "N"]), {"M": 5, "N": 40})
    require_passed(tmp_path / "right", op, WEIGHT)
    guarded = 'base = tl.where(tl.abs(new) == float("inf"), 0.0, new)'
    assert guarded in WEIGHT
    documents = check(tmp_path / "wrong", op, WEIGHT.replace(guarded, "base = new"))
    assert documents["evidence"]["failure"]["case"].startswith("edge/masked[x,N="), documents["evidence"]["failure"]


def test_another_dtype_than_the_declared_one_is_asked_for(tmp_path: Path) -> None:
    kwargs = {"out_dtype": "torch.float16"}
    op = referring(tmp_path, ROWS, "halved", tensor("x", ["M", "N"]), {"M": 5, "N": 40}, kwargs=kwargs)
    require_passed(tmp_path / "right", op, HALVED)
    documents = check(tmp_path / "wrong", op, HALVED.replace("dtype=out_dtype, ", "dtype=torch.float16, "))
    assert documents["evidence"]["failure"]["class"] == "dtype"


def test_results_of_eight_bits_are_judged_with_other_arguments(tmp_path: Path) -> None:
    # torch answers nothing of them that tells which are finite.
    op = referring(tmp_path, ROWS, "quantized", tensor("x", ["M", "N"]), {"M": 5, "N": 40}, kwargs={"eps": 1e-10})
    kernel = HALVED.replace("out_dtype=torch.float16", "eps=1e-10").replace(
        "dtype=out_dtype", "dtype=torch.float8_e4m3fn"
    )
    documents = check(tmp_path / "wrong", op, kernel)
    assert documents["verdict"]["verdict"] == "rejected", documents["evidence"]
    assert any(name.startswith("edge/kwarg[eps=") for name in documents["verdict"]["cases"])
