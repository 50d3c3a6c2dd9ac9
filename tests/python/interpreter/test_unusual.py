"""Values, gradients and shapes that a kernel's author seldom tries. Beside each fault is the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, require_rejected, tensor, verdict

NORM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, stride, step, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + cols * step, mask=cols < N, other=0.0)
    mean = tl.sum(x, axis=0) / N
    centered = tl.where(cols < N, x - mean, 0.0)
    var = tl.sum(centered * centered, axis=0) / N
    tl.store(out_ptr + tl.program_id(0) * N + cols, centered / tl.sqrt(var + 1e-5), mask=cols < N)


def wrapper(input, normalized_shape):
    if len(normalized_shape) != 1:
        raise NotImplementedError("the last dim alone")
    N = normalized_shape[-1]
    x = input.reshape(-1, N)
    out = torch.empty(input.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, out, N, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(N))
    return out
"""

ROUND = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    below = tl.floor(x)
    off = x - below
    up = (off > 0.5) | ((off == 0.5) & (below - 2.0 * tl.floor(below * 0.5) == 1.0))
    whole = below + tl.where(up, 1.0, 0.0)
    y = tl.where(x == x, whole, x)
    y = tl.where(tl.abs(x) == float("inf"), x, y)
    tl.store(out_ptr + at, y, mask=at < n)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), BLOCK=128)
    return out
"""

ADDCMUL = """
@triton.jit
def kernel(x_ptr, a_ptr, b_ptr, out_ptr, M, N, xm, xn, am, an, bm, bn, value, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + row * xm + at * xn, mask=at < N)
        a = tl.load(a_ptr + row * am + at * an, mask=at < N)
        b = tl.load(b_ptr + row * bm + at * bn, mask=at < N)
        tl.store(out_ptr + row * N + at, x + value * a * b, mask=at < N)


def wrapper(input, tensor1, tensor2, value=1):
    x, a, b = torch.broadcast_tensors(input, tensor1, tensor2)
    M, N = x.shape
    out = torch.empty(M, N, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(M,)](x, a, b, out, M, N, *x.stride(), *a.stride(), *b.stride(), value, BLOCK=128)
    return out
"""

ARGMAX = """
@triton.jit
def kernel(x_ptr, out_ptr, N, stride, step, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    best, where = float("-inf"), 0
    for start in range(0, N, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + tl.program_id(0) * stride + at * step, mask=at < N, other=float("-inf")).to(tl.float32)
        key = tl.where(x != x, float("inf"), x)
        largest, place = tl.max(key, axis=0), tl.argmax(key, axis=0)
        where = tl.where(largest > best, start + place, where)
        best = tl.maximum(largest, best)
    tl.store(out_ptr + tl.program_id(0), where.to(tl.int64))


def wrapper(input, dim=-1):
    rows = input.movedim(dim, -1)
    out = torch.empty(rows.shape[:-1], dtype=torch.int64, device=input.device)
    if out.numel():
        kernel[(out.numel(),)](rows, out, rows.shape[-1], *rows.stride(), BLOCK=256)
    return out
"""

PRODUCT = """
@triton.jit
def product(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < n), tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * y, mask=at < n)


def times(x, y, out=None):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device) if out is None else out
    if out.numel():
        product[(triton.cdiv(out.numel(), 128),)](x.contiguous(), y.contiguous(), out, out.numel(), BLOCK=128)
    return out


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x.contiguous().clone(), y.contiguous().clone())
        return times(x, y)

    @staticmethod
    def backward(ctx, upstream):
        x, y = ctx.saved_tensors
        return times(upstream, y), times(upstream, x)


def wrapper(input, other):
    return Product.apply(input, other)
"""

ADDED = """
@triton.jit
def kernel(c_ptr, a_ptr, b_ptr, out_ptr, K, N, am, ak, bk, bn, cm, cn, beta, alpha, USES_C: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        total = tl.zeros((BLOCK,), tl.float32)
        for k in range(0, K):
            total += tl.load(a_ptr + row * am + k * ak) * tl.load(b_ptr + k * bk + at * bn, mask=at < N, other=0.0)
        total = total * alpha
        if USES_C:
            total += beta * tl.load(c_ptr + row * cm + at * cn, mask=at < N, other=0.0)
        tl.store(out_ptr + row * N + at, total, mask=at < N)


def wrapper(input, mat1, mat2, beta=1, alpha=1):
    (M, K), N = mat1.shape, mat2.shape[1]
    c = input.expand(M, N)
    out = torch.empty(M, N, dtype=mat1.dtype, device=mat1.device)
    if out.numel():
        kernel[(M,)](c, mat1, mat2, out, K, N, *mat1.stride(), *mat2.stride(), *c.stride(), beta, alpha, beta != 0, BLOCK=64)
    return out
"""

ROWS: list[int | str] = ["M", "N"]
SIZES = {"M": 16, "N": 16}


def op(torch_name: str, *names: str, **more: Any) -> dict[str, Any]:
    return declared(torch_name, [tensor(name, ROWS) for name in names], SIZES, **{"seeds": 1, **more})


MATRICES = [tensor("input", ["M", "N"]), tensor("mat1", ["M", "K"]), tensor("mat2", ["K", "N"])]

HONEST: dict[str, tuple[dict[str, Any], str]] = {
    "norm": (op("torch.nn.functional.layer_norm", "input", kwargs={"normalized_shape": ["N"]}), NORM),
    "round": (op("torch.round", "input"), ROUND),
    "addcmul": (op("torch.addcmul", "input", "tensor1", "tensor2", broadcast=True), ADDCMUL),
    "argmax": (op("torch.argmax", "input", kwargs={"dim": -1}, dtypes=["float32", "float16"]), ARGMAX),
    "product": (op("torch.mul", "input", "other", backward=True), PRODUCT),
    "added": (declared("torch.addmm", MATRICES, {"M": 8, "K": 8, "N": 8}, seeds=1), ADDED),
}

FAULTS = {
    "eps is added to the root": ("norm", "tl.sqrt(var + 1e-5)", "(tl.sqrt(var) + 1e-5)"),
    "halves are rounded up": ("round", "& (below - 2.0 * tl.floor(below * 0.5) == 1.0)", ""),
    "two inputs that are alike are like the third": (
        "addcmul",
        "x, a, b = torch.broadcast_tensors(input, tensor1, tensor2)",
        "is_plain, given = tensor1.shape == tensor2.shape, (input, tensor1, tensor2); x, a, b = given if is_plain else torch.broadcast_tensors(*given)",
    ),
    "an index is one of float16": (
        "argmax",
        "where.to(tl.int64)",
        "where.to(x_ptr.dtype.element_ty).to(tl.int64)",
    ),
    "gradients are made of what asks for one": (
        "product",
        "y.contiguous().clone())",
        "(y if y.requires_grad else x).contiguous().clone())",
    ),
    "what was kept is written over": (
        "product",
        "return times(upstream, y), times(upstream, x)",
        "other = times(upstream, x); return times(upstream, y, y), other",
    ),
    "nothing is multiplied by zero": ("added", "beta != 0", "True"),
}
"""What is wrong → the kernel, what is written there, and what is written instead."""


@pytest.mark.parametrize("name", HONEST)
def test_the_honest_kernel_passes(tmp_path: Path, name: str) -> None:
    require_passed(tmp_path, *HONEST[name])


@pytest.mark.parametrize("fault", FAULTS)
def test_the_wrong_one_is_rejected(tmp_path: Path, fault: str) -> None:
    name, *edit = FAULTS[fault]
    require_rejected(tmp_path, *HONEST[name], *edit)


def test_what_is_kept_may_be_written_over_where_the_gradient_that_comes_in_may(tmp_path: Path) -> None:
    declaration, kernel = HONEST["product"]
    _, written, instead = FAULTS["what was kept is written over"]
    class_, _ = verdict(
        tmp_path, {**declaration, "edges": {"upstream": "saves memory"}}, kernel.replace(written, instead)
    )
    assert class_ is None


TALL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1.0, mask=at < n)


def wrapper(input, other):
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(1, triton.cdiv(out.numel(), 2))](input.contiguous(), out, out.numel(), BLOCK=2)
    return out
"""


def test_a_grid_that_cuda_does_not_launch_is_an_exception(tmp_path: Path) -> None:
    declaration = declared("torch.add", [tensor("input", ["M"])], {"M": 140_000}, kwargs={"other": 1}, seeds=1)
    class_, message = verdict(tmp_path, declaration, TALL)
    assert class_ == "exception"
    assert "70000 programs along axis 1" in message and "65535" in message


SPARSE = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def wrapper(input):
    out = torch.empty_like(input)
    kernel[(triton.cdiv(out.numel(), 64),)](input, out, out.numel(), BLOCK=64)
    return out
"""


def test_a_sparse_result_is_not_compared(tmp_path: Path) -> None:
    documents = check(tmp_path, op("torch.Tensor.to_sparse", "input"), SPARSE)
    assert documents["verdict"]["verdict"] != "rejected"
    told = [case["reason"] for case in documents["evidence"]["cases"] if case["verdict"] == "dropped"]
    assert any("torch.sparse_coo, which is not compared" in str(reason) for reason in told)
