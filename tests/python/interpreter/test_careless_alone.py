"""Kernels that are wrong where one thing alone differs: how the gradient lies that comes in, rows that are one row in memory, an input that is zero throughout, dims of one length, odd numbers beside values in the middle, one value that is not finite, the next seed. Each is rejected on the interpreter; the honest kernel passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, tensor

GATED = """
@triton.jit
def forward(x_ptr, out_ptr, N, step, stride, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + row * step + at * stride, mask=at < N, other=0.0)
        tl.store(out_ptr + row * N + at, x * tl.sigmoid(x), mask=at < N)


@triton.jit
def backward(x_ptr, dy_ptr, dx_ptr, N, step, stride, dstep, dstride, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + row * step + at * stride, mask=at < N, other=0.0)
        dy = tl.load(dy_ptr + row * dstep + at * dstride, mask=at < N, other=0.0)
        s = tl.sigmoid(x)
        tl.store(dx_ptr + row * N + at, dy * s * (1.0 + x * (1.0 - s)), mask=at < N)


class Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.dense = x.is_contiguous()
        x = x.contiguous()
        ctx.save_for_backward(x)
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        if out.numel():
            forward[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=64)
        return out

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dy = dy.contiguous()
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        if dx.numel():
            backward[(x.shape[0],)](x, dy, dx, x.shape[1], *x.stride(), *x.stride(), BLOCK=64)
        return dx


def wrapper(input):
    return Gated.apply(input)
"""

ROUNDED = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, out_ptr, total, scale, zero_point, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total, other=0.0)
    level = libdevice.rint(x / scale) + zero_point
    tl.store(out_ptr + at, tl.clamp(level, 0.0, 255.0), mask=at < total)


def wrapper(input, scale, zero_point):
    input = input.contiguous()
    out = torch.empty(input.shape, dtype=torch.uint8, device=input.device)
    if input.numel():
        kernel[(triton.cdiv(input.numel(), 128),)](input, out, input.numel(), scale, float(zero_point), BLOCK=128)
    return out
"""

SCALED = """
@triton.jit
def norm_of(x_ptr, out_ptr, total, BLOCK: tl.constexpr):
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, total, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < total, other=0.0)
        squares += x * x
    tl.store(out_ptr, tl.sqrt(tl.sum(squares, axis=0)))


@triton.jit
def kernel(x_ptr, g_ptr, norm_ptr, out_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    norm = tl.load(norm_ptr)
    ratio = tl.where(norm == 0.0, 1.0, norm)
    x = tl.load(x_ptr + at, mask=at < total, other=0.0)
    g = tl.load(g_ptr + at, mask=at < total, other=0.0)
    tl.store(out_ptr + at, x - 0.1 * ratio * g, mask=at < total)


def wrapper(param, grad):
    param, grad = param.contiguous(), grad.contiguous()
    out, total = torch.empty(param.shape, dtype=param.dtype, device=param.device), param.numel()
    if total:
        norm = torch.empty((1,), dtype=torch.float32, device=param.device)
        norm_of[(1,)](param, norm, total, BLOCK=128)
        kernel[(triton.cdiv(total, 128),)](param, grad, norm, out, total, BLOCK=128)
    return out
"""

LINEAR = """
@triton.jit
def kernel(x_ptr, scale_ptr, out_ptr, N, step, stride, PER_ROW: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + row * step + at * stride, mask=at < N, other=0.0)
        place = row + at * 0 if PER_ROW else at
        scale = tl.load(scale_ptr + place, mask=at < N, other=0.0)
        tl.store(out_ptr + row * N + at, x * scale, mask=at < N)


def wrapper(input, other):
    M, N = input.shape
    out, other = torch.empty(M, N, dtype=input.dtype, device=input.device), other.contiguous()
    if out.numel():
        kernel[(M,)](input, other, out, N, *input.stride(), PER_ROW=other.shape[0] != N, BLOCK=64)
    return out
"""

MASKED = """
@triton.jit
def kernel(x_ptr, out_ptr, N, step, stride, p, seed, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + row * step + at * stride, mask=at < N, other=0.0)
        keep = tl.rand(seed, row * N + at) >= p
        tl.store(out_ptr + row * N + at, tl.where(keep, x / (1.0 - p), 0.0), mask=at < N)


def wrapper(input, seed, p=0.5, training=True):
    M, N = input.shape
    out = torch.empty(M, N, dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(M,)](input, out, N, *input.stride(), p if training else 0.0, seed, BLOCK=64)
    return out
"""

FOUND = """
@triton.jit
def kernel(x_ptr, out_ptr, total, BLOCK: tl.constexpr):
    found = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, total, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < total, other=0.0)
        found |= ((x != x) | (tl.abs(x) == float("inf"))).to(tl.int32)
    tl.store(out_ptr, tl.max(found, axis=0).to(tl.float32))


def wrapper(input):
    input = input.contiguous()
    out = torch.empty((1,), dtype=torch.float32, device=input.device)
    kernel[(1,)](input, out, input.numel(), BLOCK=128)
    return out
"""

NORMAL = """
@triton.jit
def kernel(out_ptr, total, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    drawn = tl.randn(seed, at)
    tl.store(out_ptr + at, drawn, mask=at < total)


def wrapper(input, seed):
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 256),)](out, out.numel(), seed, BLOCK=256)
    return out
"""

NEXT_SEED = "tl.sqrt(-2.0 * tl.log(tl.maximum(tl.rand(seed, at), 1e-7))) * tl.cos(6.2831853 * tl.rand(seed + 1, at))"

PRODUCT = """
@triton.jit
def combine(a, b):
    return a * b


@triton.jit
def forward(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=1.0)
    tl.store(out_ptr + row, tl.reduce(x, 0, combine))


@triton.jit
def backward(x_ptr, dy_ptr, dx_ptr, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    dy = tl.load(dy_ptr + row)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=1.0)
    zeros = tl.sum((x == 0.0).to(tl.int32), axis=0)
    safe = tl.where(x == 0.0, 1.0, x)
    rest = tl.reduce(safe, 0, combine)
    alone = tl.where(zeros == 1, dy * rest, 0.0)
    dx = tl.where(x == 0.0, alone, tl.where(zeros > 0, 0.0, dy * rest / safe))
    tl.store(dx_ptr + row * N + cols, dx, mask=cols < N)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        out = torch.empty(x.shape[:1], dtype=x.dtype, device=x.device)
        if out.numel():
            forward[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(max(x.shape[1], 1)))
        return out

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx, dy = torch.empty(x.shape, dtype=x.dtype, device=x.device), dy.contiguous()
        if dx.numel():
            backward[(x.shape[0],)](x, dy, dx, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return dx


def wrapper(input, dim):
    assert dim in (-1, 1)
    return Product.apply(input)
"""

SIZES = {"M": 8, "N": 24}
ROWS: list[int | str] = ["M", "N"]

REFERENCE = """import torch


def rounded(input, scale, zero_point):
    return ((input / scale).round() + zero_point).clamp(0, 255).to(torch.uint8)


def found(input):
    return (~input.isfinite()).any().float().reshape(1)


def scaled(param, grad):
    norm = param.norm()
    return param - 0.1 * torch.where(norm == 0, torch.ones_like(norm), norm) * grad
"""


def referenced(root: Path, name: str, inputs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    reference = {"root": str(root / "workspace"), "file": "refs/own.py", "name": name, "init": {}}
    return declared("", inputs, SIZES, seeds=1, **more) | {"torch": None, "reference": reference}


def gated(root: Path) -> dict[str, Any]:
    inputs = [tensor("input", ROWS, requires_grad=True)]
    return declared("torch.nn.functional.silu", inputs, SIZES, seeds=1, backward=True)


def linear(root: Path) -> dict[str, Any]:
    return declared("torch.mul", [tensor("input", ROWS), tensor("other", ["N"])], SIZES, seeds=1)


def masked(root: Path) -> dict[str, Any]:
    told = {"random": {"kind": "dropout", "p": "p", "seed": "seed"}, "kwargs": {"p": 0.3, "training": True}}
    return declared("torch.nn.functional.dropout", [tensor("input", ROWS)], SIZES, **told)


def rounded(root: Path) -> dict[str, Any]:
    kwargs = {"scale": 0.05, "zero_point": 128}
    return referenced(root, "rounded", [tensor("input", ROWS)], kwargs=kwargs)


def scaled(root: Path) -> dict[str, Any]:
    return referenced(root, "scaled", [tensor("param", ROWS), tensor("grad", ROWS)])


def found(root: Path) -> dict[str, Any]:
    return referenced(root, "found", [tensor("input", ROWS)])


def normal(root: Path) -> dict[str, Any]:
    told = {"random": {"kind": "normal", "seed": "seed"}}
    return declared("torch.randn_like", [tensor("input", ROWS)], {"M": 64, "N": 64}, **told)


def product(root: Path) -> dict[str, Any]:
    inputs = [tensor("input", ROWS, requires_grad=True)]
    return declared("torch.prod", inputs, SIZES, seeds=1, kwargs={"dim": -1}, backward=True)


CARELESS: list[tuple[Callable[[Path], dict[str, Any]], str, str, str, str]] = [
    (gated, GATED, "dy = dy.contiguous()", "dy = dy if ctx.dense else dy.contiguous()", "edge/flow[one]"),
    (linear, LINEAR, "other.shape[0] != N", "other.shape[0] == M", "edge/shape[M=12,N=12]"),
    (masked, MASKED, "tl.rand(seed, row * N + at)", "tl.rand(seed, row * step + at * stride)", "what is drawn"),
    (
        rounded,
        ROUNDED,
        "libdevice.rint(x / scale) + zero_point",
        "libdevice.rint(x / scale + zero_point)",
        "edge/kwarg[zero_point=129,input=eighths]",
    ),
    (found, FOUND, 'tl.abs(x) == float("inf")', 'x == float("inf")', "edge/masked[input,"),
    (normal, NORMAL, "tl.randn(seed, at)", NEXT_SEED, "what is drawn is not independent"),
    (product, PRODUCT, "tl.where(zeros == 1, dy * rest, 0.0)", "0.0", "edge/zeros[input]"),
    (scaled, SCALED, "tl.where(norm == 0.0, 1.0, norm)", "norm", "edge/zero[param]"),
]


@pytest.mark.parametrize(("op", "honest", "written", "careless", "told"), CARELESS)
def test_what_differs_alone_is_told(
    tmp_path: Path, op: Callable[[Path], dict[str, Any]], honest: str, written: str, careless: str, told: str
) -> None:
    for name in ("right", "wrong"):
        refs = tmp_path / name / "workspace" / "refs"
        refs.mkdir(parents=True)
        (refs / "own.py").write_text(REFERENCE, encoding="utf-8")
    require_passed(tmp_path / "right", op(tmp_path / "right"), honest)
    assert written in honest
    documents = check(tmp_path / "wrong", op(tmp_path / "wrong"), honest.replace(written, careless))
    failure = documents["evidence"]["failure"]
    assert failure is not None, [one["name"] for one in documents["evidence"]["cases"]]
    assert told in f"{failure['case']}: {failure['message']}"
