"""Kernels that are wrong for values that no declared input has: each has one line wrong and is rejected on the interpreter; the kernel without it passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import declared, require_passed, require_rejected, tensor

ONE = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, out_ptr, n, low, high, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, {formula}, mask=at < n)


def wrapper(input, *, lambd=0.5):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), -float(lambd), float(lambd), BLOCK=128)
    return out
"""

TWO = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    y = tl.load(y_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, {formula}, mask=at < n)


def wrapper(input, other):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty(x.shape, dtype={dtype}, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), BLOCK=128)
    return out
"""

MAX = """
@triton.jit
def kernel(x_ptr, top_ptr, at_ptr, N, stride, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best, where = -float("inf"), -1
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols * step, mask=cols < N, other=-float("inf"))
        x = tl.where(x != x, float("inf"), x)
        top = tl.max(x, axis=0)
        first = tl.min(tl.where((x == top) & (cols < N), cols, N), axis=0)
        is_better = (top > best) | (where < 0)
        best = tl.where(is_better, top, best)
        where = tl.where(is_better, first, where)
    tl.store(top_ptr + row, tl.load(x_ptr + row * stride + where * step))
    tl.store(at_ptr + row, where.to(tl.int64))


def wrapper(input, dim=-1, keepdim=False):
    if dim not in (-1, 1) or keepdim:
        raise NotImplementedError("the last dim alone")
    top = torch.empty(input.shape[0], dtype=input.dtype, device=input.device)
    at = torch.empty(input.shape[0], dtype=torch.int64, device=input.device)
    if top.numel():
        kernel[(top.numel(),)](input, top, at, input.shape[1], input.stride(0), input.stride(1), BLOCK=64)
    return top, at
"""

DIMS = {"M": 8, "N": 24}


def one(name: str, **more: Any) -> dict[str, Any]:
    """Returns an op of one matrix."""
    init = more.pop("init", None)
    return declared(name, [tensor("input", ["M", "N"], **({"init": init} if init else {}))], DIMS, **more)


def two(name: str, **more: Any) -> dict[str, Any]:
    """Returns an op of two matrices of one form."""
    init = more.pop("init", None)
    given = {"init": init} if init else {}
    return declared(name, [tensor("input", ["M", "N"], **given), tensor("other", ["M", "N"], **given)], DIMS, **more)


UNIFORM = {"kind": "uniform", "low": -0.5, "high": 4.0}

SMALL = {"kind": "randint", "low": 0, "high": 10}


@pytest.mark.parametrize(
    ("name", "init", "right", "wrong"),
    [
        ("torch.log1p", UNIFORM, "libdevice.log1p(x)", "tl.log(1.0 + x)"),
        ("torch.expm1", UNIFORM, "libdevice.expm1(x)", "tl.exp(x) - 1.0"),
        ("torch.erfc", None, "libdevice.erfc(x)", "1.0 - tl.erf(x)"),
    ],
    ids=["log1p", "expm1", "erfc"],
)
def test_a_formula_without_small_digits_is_rejected(
    tmp_path: Path, name: str, init: Any, right: str, wrong: str
) -> None:
    honest = ONE.format(formula=right)
    require_passed(tmp_path / "right", one(name, init=init), honest)
    require_rejected(tmp_path / "wrong", one(name, init=init), honest, right, wrong, ("mismatch",))


def test_an_activation_is_not_asked_for_small_digits(tmp_path: Path) -> None:
    formula = "tl.where(x > 0.0, x, tl.exp(x) - 1.0)"
    kernel = ONE.format(formula=formula).replace("*, lambd=0.5", "").replace("float(lambd)", "0.5")
    require_passed(tmp_path, one("torch.nn.functional.elu"), kernel)


def test_squares_of_large_values_are_found(tmp_path: Path) -> None:
    honest = TWO.format(formula="libdevice.hypot(x, y)", dtype="x.dtype")
    require_passed(tmp_path / "right", two("torch.hypot"), honest)
    require_rejected(
        tmp_path / "wrong", two("torch.hypot"), honest, "libdevice.hypot(x, y)", "tl.sqrt(x * x + y * y)", ("nan",)
    )


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_integers_that_a_float_does_not_tell_apart_are_found(tmp_path: Path, dtype: str) -> None:
    honest = TWO.format(formula="x == y", dtype="torch.bool")
    op = two("torch.eq", init=SMALL, dtypes=[dtype])
    require_passed(tmp_path / "right", op, honest)
    require_rejected(tmp_path / "wrong", op, honest, "x == y", "x.to(tl.float32) == y.to(tl.float32)", ("mismatch",))


def test_a_decision_at_the_value_of_an_argument_is_found(tmp_path: Path) -> None:
    right = "tl.where((x >= low) & (x <= high), 0.0, x)"
    honest = ONE.format(formula=right)
    require_passed(tmp_path / "right", one("torch.nn.functional.hardshrink"), honest)
    require_rejected(
        tmp_path / "wrong", one("torch.nn.functional.hardshrink"), honest, "x <= high", "x < high", ("mismatch",)
    )


def test_ties_between_blocks_of_a_row_are_found(tmp_path: Path) -> None:
    op = one("torch.max", kwargs={"dim": -1}, edges={"special": "NaN is taken for infinity"})
    require_passed(tmp_path / "right", op, MAX)
    require_rejected(tmp_path / "wrong", op, MAX, "(top > best) | (where < 0)", "top >= best", ("mismatch",))


KEPT = """
@triton.jit
def kernel(x_ptr, share_ptr, out_ptr, n, N, sm, sn, ss, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at // N * sm + at % N * sn, mask=at < n, other=0.0)
    share = tl.load(share_ptr + at // N * ss, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.where(2.0 * share < 1.5, x, 0.0), mask=at < n)


def wrapper(x, share):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](x, share, out, out.numel(), x.shape[1], *x.stride(), *share.stride(), BLOCK=64)
    return out
"""


def test_the_ends_of_a_range_are_found(tmp_path: Path) -> None:
    text = "import torch\n\ndef kept(x, share):\n    return torch.where(2.0 * share[:, None] < 1.5, x, 0.0)\n"
    (tmp_path / "reference.py").write_text(text, encoding="utf-8")
    reference = {"file": "reference.py", "name": "kept", "init": {}, "root": str(tmp_path)}
    share = tensor("share", ["M"], init={"kind": "uniform", "low": 0.25, "high": 0.75})
    given = [tensor("x", ["M", "N"]), share]
    op = declared("", given, {"M": 6, "N": 40}, torch=None, reference=reference)
    require_passed(tmp_path / "right", op, KEPT)
    require_rejected(tmp_path / "wrong", op, KEPT, "2.0 * share < 1.5", "2.0 * share <= 1.5", ("mismatch",))
