"""Faults that nobody means: each is a kernel with one line wrong, and is rejected on the interpreter; the kernel without it passes."""

from __future__ import annotations

from typing import Any

from checks import WRONG, both_tests, declared, tensor

SOFTMAX = """
@triton.jit
def kernel(x_ptr, out_ptr, M, N, stride, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    largest = -float("inf")
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride + (start + cols) * step, mask=start + cols < N, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride + (start + cols) * step, mask=start + cols < N, other=-float("inf"))
        total += tl.sum(tl.exp(x - largest), axis=0)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride + (start + cols) * step, mask=start + cols < N)
        tl.store(out_ptr + row * N + start + cols, tl.exp(x - largest) / total, mask=start + cols < N)


def wrapper(input, dim=-1):
    if dim not in (-1, input.dim() - 1):
        raise NotImplementedError("the last dim alone")
    N = input.shape[-1]
    rows = input.numel() // max(N, 1)
    x = input.reshape(rows, N)
    out = torch.empty(input.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(rows,)](x, out, rows, N, x.stride(0), x.stride(1), BLOCK=64)
    return out
"""

SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, stride, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    total = 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride + (start + cols) * step, mask=start + cols < N, other=0.0)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + row, total)


def wrapper(input, dim=-1, keepdim=False):
    along = dim % 2
    other = 1 - along
    out = torch.empty(input.shape[other], dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(out.numel(),)](input, out, input.shape[along], input.stride(other), input.stride(along), BLOCK=64)
    return out.unsqueeze(along) if keepdim else out
"""

SCALE = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def wrapper(input, other, alpha=1):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), float(alpha), BLOCK=128)
    return out
"""

LOSS = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(x_ptr + at, mask=at < n, other=0.0) - tl.load(y_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, d * d, mask=at < n)


@triton.jit
def add_up(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) * scale)


def wrapper(input, target, reduction="mean"):
    x, y = input.contiguous(), target.contiguous()
    squares = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, y, squares, n, BLOCK=128)
    if reduction == "none":
        return squares
    out = torch.empty((), dtype=x.dtype, device=x.device)
    add_up[(1,)](squares, out, n, 1.0 / n if n and reduction == "mean" else float("nan") if reduction == "mean" else 1.0, BLOCK=128)
    return out
"""

PRODUCT = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, M, N, K, xm, xk, yk, yn, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + rows * xm + k[None, :] * xk, mask=(rows < M) & (k[None, :] < K), other=0.0)
        y = tl.load(y_ptr + k[:, None] * yk + cols * yn, mask=(k[:, None] < K) & (cols < N), other=0.0)
        total += tl.dot(x, y, input_precision="ieee")
    tl.store(out_ptr + rows * N + cols, total, mask=(rows < M) & (cols < N))


def wrapper(input, mat2):
    (M, K), N = input.shape, mat2.shape[1]
    out = torch.empty(M, N, dtype=input.dtype, device=input.device)
    if out.numel():
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        kernel[grid](input, mat2, out, M, N, K, *input.stride(), *mat2.stride(), BLOCK=16)
    return out
"""

STRETCHED = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, alpha, xm, xn, ym, yn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * xm + cols * xn, mask=cols < N)
    y = tl.load(y_ptr + row * ym + cols * yn, mask=cols < N)
    tl.store(out_ptr + row * N + cols, x + alpha * y, mask=cols < N)


def wrapper(input, other, alpha=1):
    x, y = input, other
    M, N = torch.broadcast_shapes(x.shape, y.shape)
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    steps = (
        x.stride(0) if x.shape[0] > 1 else 0,
        x.stride(1) if x.shape[1] > 1 else 0,
        y.stride(0) if y.shape[0] > 1 else 0,
        y.stride(1) if y.shape[1] > 1 else 0,
    )
    if out.numel():
        kernel[(M, triton.cdiv(N, 128))](x, y, out, N, float(alpha), *steps, BLOCK=128)
    return out
"""

DIVERGENCE = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0)
        y = tl.load(y_ptr + at, mask=at < n, other=0.0)
        part = y * (tl.log(y) - x)
        total += tl.where(at < n, tl.where(y > 0, part, tl.where(y == 0, 0.0 * x, y)), 0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / by)


def wrapper(input, target, reduction="mean"):
    if reduction == "none":
        raise NotImplementedError("one number for all")
    x, y = input.contiguous(), target.contiguous()
    out = torch.empty((), dtype=x.dtype, device=x.device)
    by = {"mean": x.numel(), "sum": 1}.get(reduction, x.numel())
    by = x.shape[0] if reduction == "batchmean" else by
    kernel[(1,)](x, y, out, x.numel(), float(by), BLOCK=128)
    return out
"""

LABELS = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, xm, xc, ym, ignored):
    row = tl.program_id(0)
    label = tl.load(y_ptr + row * ym)
    value = -tl.load(x_ptr + row * xm + label * xc)
    tl.store(out_ptr + row, tl.where(label != ignored, value, 0.0))


def wrapper(input, target, ignore_index=-100, reduction="mean"):
    if reduction != "none":
        raise NotImplementedError("a number for each row")
    out = torch.empty(target.shape, dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(out.numel(),)](input, target, out, *input.stride(), target.stride(0), ignore_index)
    return out
"""

LARGER = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    top = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    value = top + tl.log(1.0 + tl.exp(-tl.abs(x - y)))
    tl.store(out_ptr + at, tl.where(x == y, x, value) + tl.where(x == y, 0.6931471805599453, 0.0), mask=at < n)


def wrapper(input, other):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), BLOCK=128)
    return out
"""

DOUBLE = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.exp(x), mask=at < n)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), BLOCK=128)
    return out
"""


def softmax(shape: list[int | str] | None = None) -> dict[str, Any]:
    dims = ["M", "N"] if shape is None else shape
    binding = {str(dim): 12 if dim == "B" else 16 for dim in dims}
    return declared("torch.softmax", [tensor("input", dims)], binding, kwargs={"dim": -1}, seeds=1)


def sums() -> dict[str, Any]:
    sizes = {"M": 16, "N": 16}
    return declared("torch.sum", [tensor("input", ["M", "N"])], sizes, kwargs={"dim": -1, "keepdim": False}, seeds=1)


def scales(**more: Any) -> dict[str, Any]:
    inputs = [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])]
    return declared("torch.add", inputs, {"M": 16, "N": 16}, kwargs={"alpha": 0.5}, seeds=1, **more)


def divergences() -> dict[str, Any]:
    inputs = [
        tensor("input", ["M", "N"]),
        tensor("target", ["M", "N"], init={"kind": "uniform", "low": 0.1, "high": 1.0}),
    ]
    return declared("torch.nn.functional.kl_div", inputs, {"M": 16, "N": 16}, kwargs={"reduction": "sum"}, seeds=1)


def labels() -> dict[str, Any]:
    target = tensor("target", ["M"], dtype="int64", init={"kind": "randint", "low": 0, "high": "C"})
    name = "torch.nn.functional.nll_loss"
    kwargs = {"ignore_index": -100, "reduction": "none"}
    return declared(name, [tensor("input", ["M", "C"]), target], {"M": 24, "C": 8}, kwargs=kwargs, seeds=1)


def larger() -> dict[str, Any]:
    inputs = [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])]
    return declared("torch.logaddexp", inputs, {"M": 16, "N": 16}, seeds=1)


def losses() -> dict[str, Any]:
    inputs = [tensor("input", ["M", "N"]), tensor("target", ["M", "N"])]
    name = "torch.nn.functional.mse_loss"
    return declared(name, inputs, {"M": 16, "N": 16}, kwargs={"reduction": "mean"}, seeds=1)


def products() -> dict[str, Any]:
    inputs = [tensor("input", ["M", "K"]), tensor("mat2", ["K", "N"])]
    return declared("torch.mm", inputs, {"M": 20, "K": 24, "N": 20}, seeds=1)


def doubles() -> dict[str, Any]:
    inputs = [tensor("input", ["M", "N"])]
    return declared("torch.exp", inputs, {"M": 16, "N": 16}, dtypes=["float64"], tolerances={"float64": [1e-7, 1e-7]})


HONEST = {
    "softmax": (softmax(), SOFTMAX),
    "softmax of blocks of rows": (softmax(["B", "M", "N"]), SOFTMAX),
    "sum": (sums(), SUM),
    "scale": (scales(), SCALE),
    "loss": (losses(), LOSS),
    "double": (doubles(), DOUBLE),
    "product": (products(), PRODUCT),
    "stretched": (scales(broadcast=True), STRETCHED),
    "batches": (divergences(), DIVERGENCE),
    "labels": (labels(), LABELS),
    "larger": (larger(), LARGER),
}

CARELESS: dict[str, tuple[str, str, str]] = {
    "NaN is lost in all blocks but the first": (
        "softmax",
        "total += tl.sum(tl.exp(x - largest), axis=0)",
        "total += tl.sum(tl.where((x != x) & (start > 0), 0.0, tl.exp(x - largest)), axis=0)",
    ),
    "rows are taken for dense where elements are": (
        "softmax",
        "x.stride(0),",
        "N if x.stride(1) == 1 else x.stride(0),",
    ),
    "there are at most 24 programs, and no loop": ("softmax", "kernel[(rows,)]", "kernel[(min(rows, 24),)]"),
    "a row ends at 1024": ("softmax", "range(0, N, BLOCK)", "range(0, min(N, 1024), BLOCK)"),
    "one length has a path of its own": ("softmax", "kernel[(rows,)]", "kernel[(rows - 1 if N == 96 else rows,)]"),
    "blocks of rows are taken for dense": (
        "softmax of blocks of rows",
        "x = input.reshape(rows, N)",
        "x = input.as_strided((rows, N), (input.stride(1), input.stride(2)))",
    ),
    "the dim is the last one, whatever is asked for": ("softmax", "dim not in (-1, input.dim() - 1)", "False"),
    "the dim counts from the front alone": ("sum", "dim % 2", "1 if dim == -1 else abs(dim)"),
    "the last dim has one name": ("sum", "along = dim % 2", "along = 1 if dim == -1 else 0"),
    "dims are kept for the last one alone": ("sum", "if keepdim else", "if keepdim and along == 1 else"),
    "columns end at 128": (
        "sum",
        "input.shape[along],",
        "min(input.shape[along], 128) if along == 0 else input.shape[along],",
    ),
    "zero counts as nothing given": ("scale", "float(alpha)", "float(alpha or 1)"),
    "the wrapper's default is not torch's": ("scale", "alpha=1)", "alpha=2)"),
    "a word is not known": ("loss", 'reduction == "none"', 'reduction == "nothing"'),
    "the first words are known": ("loss", 'if n and reduction == "mean"', 'if n and reduction in ("mean", "sum")'),
    "a column is not stretched": (
        "stretched",
        "y.stride(1) if y.shape[1] > 1 else 0",
        "y.stride(1)",
    ),
    "a mean by batches is one of all": ("batches", 'reduction == "batchmean"', 'reduction == "batch"'),
    "no label is ignored": ("labels", "label != ignored", "label == label"),
    "two infinities are not close": (
        "larger",
        "tl.where(x == y, x, value) + tl.where(x == y, 0.6931471805599453, 0.0)",
        "value",
    ),
    "a product is one of TF32, the default": ("product", ', input_precision="ieee"', ""),
    "float64 is computed in float32": ("double", "tl.exp(x)", "tl.exp(x.to(tl.float32))"),
}
"""What is wrong → the kernel, what is written there, and what is written instead."""


test_the_honest_kernel_passes, test_the_careless_one_is_rejected = both_tests(
    HONEST, CARELESS, (*WRONG, "exception", "source")
)
