"""Faults that show only at what ops.yaml does not say: arguments left at none, pairs, ties, layouts, other types, gradients that come in. Beside each the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import WRONG, both_tests, check, declared, tensor, verdict

POOL = """
@triton.jit
def kernel(x_ptr, out_ptr, H, W, OH, OW, kh, kw, sh, sw, divisor, x0, xh, xw):
    plane, place = tl.program_id(0), tl.program_id(1)
    row, col = place // OW, place % OW
    total, inside = 0.0, 0.0
    for i in range(0, kh):
        for j in range(0, kw):
            y, x = row * sh + i, col * sw + j
            is_in = (y < H) & (x < W)
            total += tl.load(x_ptr + plane * x0 + y * xh + x * xw, mask=is_in, other=0.0)
            inside += tl.where(is_in, 1.0, 0.0)
    tl.store(out_ptr + (plane * OH + row) * OW + col, total / tl.where(divisor > 0, divisor, inside))


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def length(size, window, step, ceil_mode):
    return (size - window + (step - 1 if ceil_mode else 0)) // step + 1


def wrapper(input, kernel_size, stride=None, ceil_mode=False, divisor_override=None):
    (kh, kw), (sh, sw) = pair(kernel_size), pair(stride or kernel_size)
    x = input.reshape(-1, *input.shape[-2:])
    planes, H, W = x.shape
    OH, OW = length(H, kh, sh, ceil_mode), length(W, kw, sw, ceil_mode)
    out = torch.empty(planes, OH, OW, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(planes, OH * OW)](x, out, H, W, OH, OW, kh, kw, sh, sw, float(divisor_override or 0), *x.stride())
    return out.reshape(*input.shape[:-2], OH, OW)
"""

CLAMP = """
@triton.jit
def kernel(x_ptr, out_ptr, n, low, high, HAS_LOW: tl.constexpr, HAS_HIGH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    if HAS_LOW:
        x = tl.where(x < low, low, x)
    if HAS_HIGH:
        x = tl.where(x > high, high, x)
    tl.store(out_ptr + at, x, mask=at < n)


def wrapper(input, min=None, max=None):
    x = input.contiguous()
    out = torch.empty_like(x)
    low, high = 0.0 if min is None else float(min), 0.0 if max is None else float(max)
    if out.numel():
        grid = (triton.cdiv(out.numel(), 128),)
        kernel[grid](x, out, out.numel(), low, high, min is not None, max is not None, BLOCK=128)
    return out
"""

GREATER = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x >= y, mask=at < n)


def wrapper(input, other):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty(x.shape, dtype=torch.bool, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), BLOCK=128)
    return out
"""

SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, stride, step, BLOCK: tl.constexpr, TYPE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((), TYPE)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride + (start + cols) * step, mask=start + cols < N, other=0)
        total += tl.sum(x.to(TYPE), axis=0)
    tl.store(out_ptr + row, total.to(out_ptr.dtype.element_ty))


def wrapper(input, dim=-1):
    assert dim in (-1, 1)
    is_whole = not input.dtype.is_floating_point
    out = torch.empty(input.shape[0], dtype=torch.int64 if is_whole else input.dtype, device=input.device)
    if out.numel():
        kernel[(out.numel(),)](input, out, input.shape[1], *input.stride(), BLOCK=2, TYPE=tl.int64 if is_whole else tl.float32)
    return out
"""

HEADS = """
@triton.jit
def kernel(x_ptr, out_ptr, H, S, D, xb, xh, xs, xd, BLOCK: tl.constexpr):
    b, h, s = tl.program_id(0) // H, tl.program_id(0) % H, tl.program_id(1)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + b * xb + h * xh + s * xs + at * xd, mask=at < D)
    tl.store(out_ptr + (tl.program_id(0) * S + s) * D + at, tl.exp(x), mask=at < D)


def wrapper(input):
    B, H, S, D = input.shape
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(B * H, S)](input, out, H, S, D, *input.stride(), BLOCK=triton.next_power_of_2(D))
    return out
"""

NUMBERS = """
@triton.jit
def kernel(x_ptr, out_ptr, n, top, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    x = tl.where(x != x, 0.0, x)
    tl.store(out_ptr + at, tl.where(x > top, top, tl.where(x < -top, -top, x)).to(out_ptr.dtype.element_ty), mask=at < n)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), torch.finfo(x.dtype).max, BLOCK=128)
    return out
"""

TUNED = """
@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    tl.store(out_ptr + at, tl.exp(x), mask=mask)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](x, out, out.numel())
    return out
"""

BACKWARD = """
@triton.jit
def kernel(x_ptr, up_ptr, out_ptr, n, xs, us, IS_BACK: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    value = x * x
    if IS_BACK:
        value = 2.0 * x * tl.load(up_ptr + at, mask=mask)
    tl.store(out_ptr + at, value, mask=mask)


def launched(x, upstream, out):
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](x, upstream, out, out.numel(), 1, 1, upstream is not x, BLOCK=64)
    return out


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        x = input.contiguous()
        ctx.save_for_backward(x)
        return launched(x, x, torch.empty_like(x))

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        upstream = upstream.contiguous()
        return launched(x, upstream, torch.empty_like(upstream))


def wrapper(input):
    return Square.apply(input)
"""

ATTENTION = """
@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, HQ, HK, S, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    head, row = tl.program_id(0), tl.program_id(1)
    other = head // HQ * HK + head % HQ // (HQ // HK)
    d, s = tl.arange(0, D), tl.arange(0, BLOCK)
    q = tl.load(q_ptr + (head * S + row) * D + d)
    at = (other * S + s[:, None]) * D + d[None, :]
    k = tl.load(k_ptr + at, mask=s[:, None] < S, other=0.0)
    v = tl.load(v_ptr + at, mask=s[:, None] < S, other=0.0)
    scores = tl.where(s < S, tl.sum(q[None, :] * k, axis=1) * scale, -float("inf"))
    weights = tl.exp(scores - tl.max(scores, axis=0))
    mixed = tl.sum(tl.where(s[:, None] < S, weights[:, None] * v, 0.0), axis=0)
    tl.store(out_ptr + (head * S + row) * D + d, mixed / tl.sum(weights, axis=0))


def wrapper(query, key, value, enable_gqa=False):
    q, k, v = query.contiguous(), key.contiguous(), value.contiguous()
    B, HQ, S, D = q.shape
    if not enable_gqa:
        assert k.shape[1] == HQ
    out = torch.empty_like(q)
    if out.numel():
        kernel[(B * HQ, S)](q, k, v, out, HQ, k.shape[1], S, D**-0.5, D, BLOCK=triton.next_power_of_2(S))
    return out
"""


def one(name: str, shape: list[int | str], sizes: dict[str, int], **more: Any) -> dict[str, Any]:
    """Returns an op of one input."""
    return declared(name, [tensor("input", shape)], sizes, **{"seeds": 1, **more})


def pool() -> dict[str, Any]:
    kwargs = {"kernel_size": 3, "stride": 2, "ceil_mode": False}
    return one("torch.nn.functional.avg_pool2d", ["B", "C", "H", "W"], {"B": 2, "C": 2, "H": 9, "W": 9}, kwargs=kwargs)


def attention() -> dict[str, Any]:
    query = tensor("query", ["B", "2*H", "S", 16])
    others = [tensor(name, ["B", "H", "S", 16]) for name in ("key", "value")]
    name = "torch.nn.functional.scaled_dot_product_attention"
    sizes = {"B": 1, "H": 2, "S": 24}
    return declared(name, [query, *others], sizes, kwargs={"enable_gqa": True}, seeds=1)


def whole(dtype: str = "int32") -> dict[str, Any]:
    given = tensor("input", ["M", "N"], dtype=dtype, init={"kind": "randint", "low": -9, "high": 9})
    return declared("torch.sum", [given], {"M": 8, "N": 16}, kwargs={"dim": -1}, dtypes=[dtype], seeds=1)


SIZES = {"M": 16, "N": 16}
PLAIN: list[int | str] = ["M", "N"]
BOTH = [tensor("input", PLAIN), tensor("other", PLAIN)]

HONEST = {
    "pool": (pool(), POOL),
    "clamp": (one("torch.clamp", PLAIN, SIZES, kwargs={"min": -0.5}), CLAMP),
    "greater": (declared("torch.ge", BOTH, SIZES, seeds=1), GREATER),
    "sum": (one("torch.sum", PLAIN, SIZES, kwargs={"dim": -1}, dtypes=["float32", "float16"]), SUM),
    "whole": (whole(), SUM),
    "heads": (one("torch.exp", ["B", "H", "S", "D"], {"B": 3, "H": 3, "S": 4, "D": 8}), HEADS),
    "numbers": (one("torch.nan_to_num", PLAIN, SIZES, dtypes=["float16"]), NUMBERS),
    "tuned": (one("torch.exp", ["M"], {"M": 256}), TUNED),
    "backward": (one("torch.square", PLAIN, SIZES, backward=True), BACKWARD),
    "attention": (attention(), ATTENTION),
}

FAULTS = {
    "windows are square, whatever is asked for": ("pool", "planes, H, W = x.shape", "planes, H, W = x.shape; kw = kh"),
    "steps are those of the other dim": (
        "pool",
        "(sh, sw) = pair(kernel_size), pair(",
        "(sw, sh) = pair(kernel_size), pair(",
    ),
    "the divisor is taken and forgotten": ("pool", "float(divisor_override or 0)", "0.0"),
    "a length is rounded down in any case": ("pool", "step - 1 if ceil_mode else 0", "0"),
    "a limit that is not declared is forgotten": ("clamp", "if HAS_HIGH", "if HAS_HIGH and HAS_LOW and (high < 0)"),
    "a limit of zero is none": ("clamp", "max is not None, BLOCK", "bool(max), BLOCK"),
    "equal values are not greater": ("greater", "x >= y", "x > y"),
    "sums of halves are halves": (
        "sum",
        "TYPE=tl.int64 if is_whole else tl.float32",
        "TYPE=tl.float16 if input.dtype == torch.float16 else tl.float32",
    ),
    "whole numbers are added up in 32 bits": ("whole", "TYPE=tl.int64 if", "TYPE=tl.int32 if"),
    "batches lie as heads do": ("heads", "b * xb + h * xh", "tl.program_id(0) * xh"),
    "infinity stays": ("numbers", "x > top, top,", "x > 1e38, float('inf'),"),
    "one configuration forgets the mask": ("tuned", "mask = at < n", "mask = (at < n) | (BLOCK == 32)"),
    "the gradient that comes in is written over": ("backward", "torch.empty_like(upstream))", "upstream)"),
}
"""What is wrong → the kernel, what is written there, and what is written instead."""


test_the_honest_kernel_passes, test_the_wrong_one_is_rejected = both_tests(HONEST, FAULTS, (*WRONG, "mutated-input"))


def test_a_gradient_that_may_be_written_over_is_not_asked_for(tmp_path: Path) -> None:
    op, kernel = HONEST["backward"]
    op = {**op, "edges": {"upstream": "saves memory"}}
    class_, _ = verdict(tmp_path, op, kernel.replace("torch.empty_like(upstream))", "upstream)"))
    assert class_ is None


def test_a_forward_pass_may_not_keep_its_sums_where_the_next_one_writes(tmp_path: Path) -> None:
    op, kernel = HONEST["backward"]
    kept = kernel.replace("ctx.save_for_backward(x)", "KEPT[:] = [x]").replace(
        "(x,) = ctx.saved_tensors", "(x,) = KEPT"
    )
    assert kept != kernel
    class_, _ = verdict(tmp_path, op, kept.replace("class Square", "KEPT = []\n\n\nclass Square"))
    assert class_ == "mismatch"


SWISH = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * tl.minimum(tl.maximum(x + 3.0, 0.0, tl.PropagateNan.ALL), 6.0, tl.PropagateNan.ALL) / 6.0, mask=at < n)


def wrapper(input, inplace=False):
    x = input.contiguous()
    out = x if inplace else torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](x, out, out.numel(), BLOCK=64)
    return input.copy_(out) if inplace else out
"""


def test_a_flag_by_which_a_wrapper_writes_to_its_input_is_left_alone(tmp_path: Path) -> None:
    op = one("torch.nn.functional.hardswish", PLAIN, SIZES)
    documents = check(tmp_path, op, SWISH)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    assert not any("inplace" in case["name"] for case in documents["evidence"]["cases"])


ROWS = """
@triton.jit
def short(x_ptr, out_ptr, N, xm, xn, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * xm + cols * xn, mask=cols < N, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, axis=0) / N)


@triton.jit
def long(x_ptr, out_ptr, N, xm, xn, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + tl.program_id(0) * xm + cols * xn, mask=cols < N, other=0.0)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + tl.program_id(0), total / N)


def wrapper(input, dim=-1):
    rows, along = input.movedim(dim, -1), input.shape[dim]
    out = torch.empty(rows.shape[0], dtype=input.dtype, device=input.device)
    if out.numel():
        if along <= 256:
            short[(out.numel(),)](rows, out, along, *rows.stride(), BLOCK=256)
        else:
            long[(out.numel(),)](rows, out, along, *rows.stride(), BLOCK=256)
    return out
"""


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (
            "long[(out.numel(),)](rows, out, along, *rows.stride(), BLOCK",
            "long[(out.numel(),)](rows, out, along, along, 1, BLOCK",
        ),
        (
            "else:\n            long",
            "else:\n            rows = input if dim == -1 else input.contiguous()\n            long",
        ),
    ],
)
def test_a_kernel_of_long_rows_has_the_layouts_and_arguments_of_the_short_one(
    tmp_path: Path, written: str, instead: str
) -> None:
    sizes = {"M": 16, "N": 16}
    measured = {"small": sizes, "large": {"M": 600, "N": 600}}
    op = {**one("torch.mean", PLAIN, sizes, kwargs={"dim": -1}), "sizes": measured}
    assert verdict(tmp_path / "honest", op, ROWS)[0] is None
    assert written in ROWS
    class_, _ = verdict(tmp_path / "wrong", op, ROWS.replace(written, instead))
    assert class_ in ("mismatch", "nan", "exception", "out-of-bounds")
