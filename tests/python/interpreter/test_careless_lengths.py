"""Kernels that are wrong where a grid has stopped growing, in rows that are longer than a case has otherwise, and on tensors that changed since the last call."""

from __future__ import annotations

from pathlib import Path

from checks import check, declared, require_passed, require_rejected, tensor

DIMS = {"M": 8, "N": 24}

CAPPED = """
@triton.jit
def kernel(x_ptr, part_ptr, n, chunk, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    total = 0.0
    for turn in range(chunk):
        at = (part * chunk + turn) * BLOCK + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0)
    tl.store(part_ptr + part, total)


@triton.jit
def last(part_ptr, out_ptr, parts, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(part_ptr + at, mask=at < parts, other=0.0), axis=0))


def wrapper(input):
    x = input.contiguous()
    blocks = triton.cdiv(x.numel(), 512)
    parts = min(blocks, 64)
    out, part = torch.empty((), device=x.device), torch.empty(parts, device=x.device)
    if parts:
        kernel[(parts,)](x, part, x.numel(), triton.cdiv(blocks, parts), BLOCK=512)
    last[(1,)](part, out, parts, BLOCK=64)
    return out
"""
"""A sum in at most 64 parts."""

LONG = """
LONG = 16 * 1024


@triton.jit
def kernel(x_ptr, out_ptr, N, stride, step, part, BLOCK: tl.constexpr):
    row, first = tl.program_id(0), tl.program_id(1) * part
    total = 0.0
    for start in range(first, first + part, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + row * stride + at * step, mask=at < N, other=0.0), axis=0)
    tl.store(out_ptr + row * tl.num_programs(1) + tl.program_id(1), total)


def wrapper(input, dim=-1):
    if dim not in (-1, 1):
        raise NotImplementedError("the last dim alone")
    M, N = input.shape
    part = 2048 if N > LONG else N
    parts = triton.cdiv(N, part) if N else 1
    if M == 0:
        return torch.empty(M, device=input.device)
    halves = torch.empty((M, parts), device=input.device)
    kernel[(M, parts)](input, halves, N, input.stride(0), input.stride(1), part, BLOCK=1024)
    if parts == 1:
        return halves.view(M)
    out = torch.empty(M, device=input.device)
    kernel[(M, 1)](halves, out, parts, parts, 1, parts, BLOCK=64)
    return out
"""
"""Sums of rows, of which long ones are split."""

KEPT = """
from torch.utils.weak import WeakTensorKeyDictionary

KNOWN = WeakTensorKeyDictionary()


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * tl.load(y_ptr + at, mask=at < n), mask=at < n)


def dense(other):
    version = other._version
    if other not in KNOWN or KNOWN[other][0] != version:
        KNOWN[other] = version, other.clone(memory_format=torch.contiguous_format)
    return KNOWN[other][1]


def wrapper(input, other):
    x, y = input.contiguous(), dense(other)
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), BLOCK=128)
    return out
"""
"""A product whose second factor is kept dense from call to call."""


def test_what_a_grid_leaves_out_that_has_stopped_growing_is_found(tmp_path: Path) -> None:
    op = declared("torch.sum", [tensor("input", ["M", "N"])], DIMS)
    require_passed(tmp_path / "right", op, CAPPED)
    require_rejected(
        tmp_path / "wrong", op, CAPPED, "triton.cdiv(blocks, parts), BLOCK", "blocks // parts, BLOCK", ("mismatch",)
    )


def test_a_row_one_longer_than_what_it_is_compared_with_is_tried(tmp_path: Path) -> None:
    op = declared("torch.sum", [tensor("input", ["M", "N"])], DIMS, kwargs={"dim": -1})
    require_passed(tmp_path / "right", op, LONG)
    require_rejected(tmp_path / "wrong", op, LONG, "parts = triton.cdiv(N, part)", "parts = N // part", ("mismatch",))


def test_a_row_that_is_too_long_to_be_tried_is_named(tmp_path: Path) -> None:
    op = declared("torch.sum", [tensor("input", ["M", "N"])], DIMS, kwargs={"dim": -1})
    documents = check(tmp_path, op, LONG.replace("16 * 1024", "256 * 1024"))
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    (missed,) = documents["verdict"]["missed"]
    assert missed["size"] == "N=262145", missed
    assert "compares something with 262144" in missed["reason"], missed


def test_what_is_kept_of_a_tensor_is_not_what_it_holds_later(tmp_path: Path) -> None:
    op = declared("torch.mul", [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])], DIMS)
    require_passed(tmp_path / "right", op, KEPT)
    require_rejected(tmp_path / "wrong", op, KEPT, "version = other._version", "version = 0", ("mismatch",))
