"""Faults that show where integers are as large as they may be, at lengths that a file compares something with, where a mask is added, and at the last place named from the end. Beside each the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import NORMAL, both_tests, check, declared, require_passed, require_rejected, tensor

MEAN = '''"""Means of the rows of segments."""

import torch


def segment_mean(values, offsets):
    rows = torch.arange(values.shape[0], device=values.device)
    segment = torch.searchsorted(offsets, rows, right=True)
    count = offsets.numel() + 1
    sums = values.new_zeros((count, values.shape[1])).index_add(0, segment, values)
    counts = values.new_zeros(count).index_add(0, segment, values.new_ones(rows.numel()))
    return sums[1:-1] / counts[1:-1, None].clamp(min=1)
'''

SEGMENTS = """
@triton.jit
def kernel(x_ptr, offsets_ptr, out_ptr, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    segment, cols = tl.program_id(0), tl.arange(0, BLOCK)
    start, end = tl.load(offsets_ptr + segment), tl.load(offsets_ptr + segment + 1)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(start, end, ROWS):
        rows = first + tl.arange(0, ROWS)
        total += tl.sum(tl.load(x_ptr + rows[:, None] * D + cols, mask=(rows[:, None] < end) & (cols < D), other=0.0), 0)
    tl.store(out_ptr + segment * D + cols, total / tl.maximum(end - start, 1).to(tl.float32), mask=cols < D)


def wrapper(values, offsets):
    values, offsets = values.contiguous(), offsets.contiguous()
    D = values.shape[1]
    out = torch.empty(offsets.numel() - 1, D, dtype=values.dtype, device=values.device)
    if out.numel():
        kernel[(out.shape[0],)](values, offsets, out, D, ROWS=256, BLOCK=triton.next_power_of_2(D))
    return out
"""


def of_segments(folder: Path) -> dict[str, Any]:
    """Returns the op of the reference, which is written into `folder`."""
    (folder / "reference.py").write_text(MEAN, encoding="utf-8")
    reference = {"file": "reference.py", "name": "segment_mean", "init": {}, "root": str(folder)}
    drawn = {"kind": "sorted", "of": {"kind": "randint", "low": 0, "high": "T + 1"}}
    inputs = [tensor("values", ["T", "D"]), tensor("offsets", ["R + 1"], dtype="int64", init=drawn)]
    return declared("", inputs, {"T": 16, "D": 8, "R": 3}, torch=None, reference=reference)


def test_segments_of_all_rows_are_asked_for(tmp_path: Path) -> None:
    require_passed(tmp_path, of_segments(tmp_path), SEGMENTS)


def test_a_kernel_of_one_block_a_segment_is_rejected(tmp_path: Path) -> None:
    once = "range(start, tl.minimum(end, start + 1), ROWS)"
    require_rejected(tmp_path, of_segments(tmp_path), SEGMENTS, "range(start, end, ROWS)", once)


LINEAR = """
@triton.jit
def kernel(x_ptr, w_ptr, part_ptr, M, N, K, each, BLOCK: tl.constexpr):
    row, col, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    start = split * each
    end = tl.minimum(start + each, K)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(start, end, BLOCK):
        at = first + tl.arange(0, BLOCK)
        is_in = at < end
        total += tl.load(x_ptr + row * K + at, mask=is_in, other=0.0) * tl.load(w_ptr + col * K + at, mask=is_in, other=0.0)
    tl.store(part_ptr + (split * M + row) * N + col, tl.sum(total, 0))


@triton.jit
def sums(part_ptr, out_ptr, count, SPLITS: tl.constexpr):
    at = tl.program_id(0)
    total = 0.0
    for split in tl.static_range(SPLITS):
        total += tl.load(part_ptr + split * count + at)
    tl.store(out_ptr + at, total)


def wrapper(input, weight):
    x, w = input.contiguous(), weight.contiguous()
    (M, K), N = x.shape, w.shape[0]
    out = torch.zeros(M, N, dtype=x.dtype, device=x.device)
    if out.numel() and K:
        splits = 4 if K >= 2048 and M <= 64 else 1
        part = torch.empty(splits, M, N, dtype=x.dtype, device=x.device)
        kernel[(M, N, splits)](x, w, part, M, N, K, triton.cdiv(K, splits), BLOCK=64)
        sums[(M * N,)](part, out, M * N, SPLITS=splits)
    return out
"""

EMBEDDING = """
@triton.jit
def rows(index_ptr, w_ptr, out_ptr, D, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(w_ptr + tl.load(index_ptr + row) * D + cols, mask=cols < D)
    tl.store(out_ptr + row * D + cols, values, mask=cols < D)


@triton.jit
def back(index_ptr, g_ptr, out_ptr, D, padding, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    index = tl.load(index_ptr + row)
    g = tl.load(g_ptr + row * D + cols, mask=cols < D, other=0.0)
    tl.atomic_add(out_ptr + index * D + cols, g, mask=(cols < D) & (index != padding))


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, padding):
        index, weight = input.contiguous(), weight.contiguous()
        D = weight.shape[1]
        out = torch.empty(*index.shape, D, dtype=weight.dtype, device=weight.device)
        if out.numel():
            rows[(index.numel(),)](index, weight, out, D, BLOCK=triton.next_power_of_2(D))
        ctx.save_for_backward(index)
        ctx.shape, ctx.padding = weight.shape, padding
        return out

    @staticmethod
    def backward(ctx, grad):
        (index,), grad = ctx.saved_tensors, grad.contiguous()
        out = torch.zeros(ctx.shape, dtype=grad.dtype, device=grad.device)
        if grad.numel():
            D = ctx.shape[1]
            back[(index.numel(),)](index, grad, out, D, ctx.padding, BLOCK=triton.next_power_of_2(D))
        return None, out, None


def wrapper(input, weight, padding_idx=None):
    padding = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return Rows.apply(input, weight, padding)
"""

ATTENTION = """
@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, mask_ptr, out_ptr, S, D, scale, KIND: tl.constexpr, N: tl.constexpr, W: tl.constexpr):
    plane, row = tl.program_id(0), tl.program_id(1)
    at, cols = tl.arange(0, N), tl.arange(0, W)
    inside = (at[:, None] < S) & (cols < D)
    place = plane * S * D
    q = tl.load(q_ptr + place + row * D + cols, mask=cols < D, other=0.0)
    k = tl.load(k_ptr + place + at[:, None] * D + cols, mask=inside, other=0.0)
    v = tl.load(v_ptr + place + at[:, None] * D + cols, mask=inside, other=0.0)
    score = tl.sum(k * q, 1) * scale
    if KIND == 1:
        score = tl.where(tl.load(mask_ptr + row * S + at, mask=at < S, other=0) != 0, score, float("-inf"))
    if KIND == 2:
        score += tl.load(mask_ptr + row * S + at, mask=at < S, other=0.0)
    score = tl.where(at < S, score, float("-inf"))
    top = tl.max(score, 0)
    weight = tl.exp(score - tl.where(top == float("-inf"), 0.0, top))
    total = tl.sum(weight, 0)
    out = tl.sum(weight[:, None] * v, 0) / tl.where(total == 0.0, 1.0, total)
    tl.store(out_ptr + place + row * D + cols, out, mask=cols < D)


def wrapper(query, key, value, attn_mask=None):
    q, k, v = query.contiguous(), key.contiguous(), value.contiguous()
    B, H, S, D = q.shape
    out = torch.empty_like(q)
    kind = 0 if attn_mask is None else 1 if attn_mask.dtype == torch.bool else 2
    mask = q if attn_mask is None else attn_mask.contiguous()
    mask = mask.to(torch.int32) if kind == 1 else mask
    if out.numel():
        N, W = triton.next_power_of_2(S), triton.next_power_of_2(D)
        kernel[(B * H, S)](q, k, v, mask, out, S, D, D**-0.5, KIND=kind, N=N, W=W)
    return out
"""

MASK = tensor("attn_mask", ["S", "S"], dtype="bool", init={"kind": "mask", "p": 0.5}, optional=True)
HEADS = ["B", "H", "S", "D"]
ATTENDING = declared(
    "torch.nn.functional.scaled_dot_product_attention",
    [tensor("query", HEADS), tensor("key", HEADS), tensor("value", HEADS), MASK],
    {"B": 1, "H": 2, "S": 9, "D": 8},
)

TOKENS = tensor("input", ["B", "S"], dtype="int64", init={"kind": "randint", "low": 0, "high": "V"})
ROWS = declared(
    "torch.nn.functional.embedding",
    [TOKENS, tensor("weight", ["V", "D"])],
    {"B": 2, "S": 5, "V": 11, "D": 8},
    backward=True,
    deterministic=False,
)
PRODUCT = declared(
    "torch.nn.functional.linear",
    [tensor("input", ["M", "K"]), tensor("weight", ["N", "K"])],
    {"M": 8, "K": 24, "N": 12},
)

HONEST = {"product": (PRODUCT, LINEAR), "rows": (ROWS, EMBEDDING), "attention": (ATTENDING, ATTENTION)}

FAULTS = {
    "a part of a long sum goes on into the next": ("product", "is_in = at < end", "is_in = at < K"),
    "the last place is named from the end": ("rows", "padding_idx % weight.shape[0]", "padding_idx"),
    "an added mask is for another base": (
        "attention",
        "score += tl.load(mask_ptr + row * S + at, mask=at < S, other=0.0)",
        "score += 0.6931 * tl.load(mask_ptr + row * S + at, mask=at < S, other=0.0)",
    ),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)


QUANTIZED = '''"""Rows as integers."""

import torch


def quantized(x):
    return (x * 16).round().clamp(-128, 127).to(torch.int8)
'''

QUANTIZE = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n) * 16
    whole = tl.floor(x)
    rest = x - whole
    whole = tl.where((rest > 0.5) | ((rest == 0.5) & (whole % 2 != 0)), whole + 1, whole)
    whole = tl.where(x != x, -128.0, whole)
    tl.store(out_ptr + at, tl.minimum(tl.maximum(whole, -128.0), 127.0).to(tl.int8), mask=at < n)


def wrapper(x):
    x = x.contiguous()
    out = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""


def test_what_no_integer_holds_is_asked_of_none(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(QUANTIZED, encoding="utf-8")
    reference = {"file": "reference.py", "name": "quantized", "init": {}, "root": str(tmp_path)}
    op = declared("", [tensor("x", ["M", "N"], init=NORMAL)], {"M": 4, "N": 24}, torch=None, reference=reference)
    evidence = check(tmp_path, op, QUANTIZE)["evidence"]
    assert evidence["failure"] is None
    dropped = [row["name"] for row in evidence["cases"] if "what none holds" in (row["reason"] or "")]
    assert "edge/special/float32" in dropped
    # Infinities are within what `clamp` leaves, and rounding is asked of all others.
    assert "edge/large/float32" not in dropped


@pytest.mark.parametrize("rounding", ["(rest > 0.5)", "(rest >= 0.5)"])
def test_another_rounding_is_seen_all_the_same(tmp_path: Path, rounding: str) -> None:
    (tmp_path / "reference.py").write_text(QUANTIZED, encoding="utf-8")
    reference = {"file": "reference.py", "name": "quantized", "init": {}, "root": str(tmp_path)}
    op = declared("", [tensor("x", ["M", "N"], init=NORMAL)], {"M": 4, "N": 24}, torch=None, reference=reference)
    require_rejected(tmp_path, op, QUANTIZE, "(rest > 0.5) | ((rest == 0.5) & (whole % 2 != 0))", rounding)


FIRST_NAN = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best, place, is_found = float("-inf"), 0, 0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + at, mask=at < N, other=float("-inf"))
        first = tl.min(tl.where((x != x) & (at < N), at, N), axis=0)
        if (first < N) & (is_found == 0):
            place, is_found = first, 1
        if is_found == 0:
            largest = tl.max(x, axis=0)
            if (largest > best) | (start == 0):
                best, place = largest, tl.min(tl.where((x == largest) & (at < N), at, N), axis=0)
    tl.store(out_ptr + row, place)


def wrapper(input, dim):
    x = input.movedim(dim, -1).contiguous()
    out = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
    if out.numel():
        kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=128)
    return out
"""


def test_of_nan_in_two_blocks_the_first_one_counts(tmp_path: Path) -> None:
    inputs = [tensor("input", ["M", "N"])]
    op = declared("torch.argmax", inputs, {"M": 4, "N": 24}, kwargs={"dim": -1}, seeds=1)
    require_passed(tmp_path / "honest", op, FIRST_NAN)
    assert "(first < N) & (is_found == 0)" in FIRST_NAN
    careless = FIRST_NAN.replace("(first < N) & (is_found == 0)", "first < N")
    failure = check(tmp_path / "careless", op, careless)["evidence"]["failure"]
    assert failure is not None and failure["case"].startswith("edge/special-late"), failure
