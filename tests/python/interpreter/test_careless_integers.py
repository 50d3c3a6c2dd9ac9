"""Kernels of integers that are right for the few small ones of their author: rounded on the way, mistaken for padding, or counted up to a declared length; and rows in which all is NaN."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks import both_tests, declared, require_passed, require_rejected, tensor

FEW = {"kind": "randint", "low": 0, "high": 50}

FOUND = """
@triton.jit
def kernel(x_ptr, set_ptr, out_ptr, n, K, BLOCK: tl.constexpr, SET: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    found = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, K, SET):
        places = start + tl.arange(0, SET)
        one = tl.load(set_ptr + places, mask=places < K, other=-1)
        hit = (x[:, None] == one[None, :]) & (places < K)[None, :]
        found = tl.maximum(found, tl.max(hit.to(tl.int32), axis=1))
    tl.store(out_ptr + at, found != 0, mask=at < n)


def wrapper(elements, test_elements):
    x, known = elements.contiguous(), test_elements.contiguous()
    out = torch.empty(x.shape, dtype=torch.bool, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(x.numel(), 32),)](x, known, out, x.numel(), known.numel(), BLOCK=32, SET=16)
    return out
"""

PLACES = """
@triton.jit
def kernel(x_ptr, bounds_ptr, out_ptr, n, K, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    before = tl.zeros((BLOCK,), tl.int64)
    for place in range(K):
        bound = tl.load(bounds_ptr + place)
        before += ((bound <= x) if RIGHT else (bound < x)).to(tl.int64)
    tl.store(out_ptr + at, before, mask=at < n)


def wrapper(input, boundaries, right=False):
    x, bounds = input.contiguous(), boundaries.contiguous()
    out = torch.empty(x.shape, dtype=torch.int64, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(x.numel(), 32),)](x, bounds, out, x.numel(), bounds.numel(), RIGHT=right, BLOCK=32)
    return out
"""

FILLED = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + at, mask=at < N, other=0)
        total += tl.sum((x != 0).to(tl.int32), axis=0)
    tl.store(out_ptr + row, total.to(tl.int64))


def wrapper(input, dim=-1):
    x = input.movedim(dim, -1).contiguous()
    out = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
    if out.numel():
        kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=64)
    return out
"""

COUNTS = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=at < n)


def wrapper(input, minlength=0):
    x = input.contiguous()
    length = max(x.tolist(), default=-1) + 1
    length = max(length, minlength)
    out = torch.zeros(length, dtype=torch.int64, device=x.device)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""

MEANS = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total, count = 0.0, 0.0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + at, mask=at < N, other=float("nan"))
        total += tl.sum(tl.where(x == x, x, 0.0), axis=0)
        count += tl.sum((x == x).to(tl.float32), axis=0)
    tl.store(out_ptr + row, total / count)


def wrapper(input, dim=-1):
    x = input.movedim(dim, -1).contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=64)
    return out
"""


def whole(name: str, shape: list[int | str], **more: Any) -> dict[str, Any]:
    """Returns a declared input of small integers of 64 bits."""
    return tensor(name, shape, dtype="int64", **{"init": FEW, **more})


HONEST = {
    "isin": (
        declared("torch.isin", [whole("elements", ["N"]), whole("test_elements", ["K"])], {"N": 40, "K": 24}),
        FOUND,
    ),
    "bucketize": (
        declared(
            "torch.bucketize",
            [whole("input", ["N"]), whole("boundaries", ["K"], init={"kind": "sorted", "of": FEW})],
            {"N": 40, "K": 12},
            kwargs={"right": False},
        ),
        PLACES,
    ),
    "count_nonzero": (
        declared("torch.count_nonzero", [whole("input", ["M", "N"])], {"M": 6, "N": 40}, kwargs={"dim": -1}),
        FILLED,
    ),
    "bincount": (
        declared("torch.bincount", [whole("input", ["N"])], {"N": 200}, kwargs={"minlength": 50}, deterministic=False),
        COUNTS,
    ),
    "nanmean": (declared("torch.nanmean", [tensor("input", ["M", "N"])], {"M": 6, "N": 40}, kwargs={"dim": -1}), MEANS),
}

FAULTS = {
    "padding that may be an element": ("isin", " & (places < K)[None, :]", ""),
    "compared in float32": (
        "bucketize",
        "tl.load(x_ptr + at, mask=at < n, other=0)",
        "tl.load(x_ptr + at, mask=at < n, other=0).to(tl.float32)",
    ),
    "the lower half alone": ("count_nonzero", "(x != 0)", "(x.to(tl.int32) != 0)"),
    "no more than declared": ("bincount", "max(length, minlength)", "minlength or length"),
    "a row of nothing": ("nanmean", "total / count", "total / tl.maximum(count, 1.0)"),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)


LARGEST = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    hidden = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=float("-inf"))
        hidden = tl.maximum(hidden, (x != x).to(tl.int32))
        most = tl.maximum(most, x)
    found = tl.where(tl.max(hidden, axis=0) > 0, float("nan"), tl.max(most, axis=0))
    tl.store(out_ptr, found)


def wrapper(input):
    x = input.contiguous()
    if x.numel() == 0:
        raise RuntimeError("there is no largest of nothing")
    out = torch.empty((), dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out
"""

COLLAPSED = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row, first = tl.program_id(0), tl.program_id(1) * BLOCK
    at = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=-1)
    before = tl.load(x_ptr + row * N + at - 1, mask=(at < N) & (at > 0), other=-1)
    tl.store(out_ptr + row * N + at, tl.where((x != before) | (at == 0), x, 0), mask=at < N)


def wrapper(ids):
    x = ids.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        kernel[(x.shape[0], triton.cdiv(x.shape[1], 64))](x, out, x.shape[1], BLOCK=64)
    return out
"""

ACCEPTED = """
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + row * N + at, mask=at < N, other=0)
    b = tl.load(b_ptr + row * N + at, mask=at < N, other=0)
    wrong = ((a != b) & (at < N)).to(tl.int32)
    fine = tl.cumsum(wrong, axis=0) == 0
    count = tl.sum((fine & (at < N)).to(tl.int64), axis=0)
    last = tl.sum(tl.where(at == N - 1, b, 0), axis=0)
    tl.store(out_ptr + row, 100000 * count + last)


def wrapper(draft, target):
    a, b = draft.contiguous(), target.contiguous()
    out = torch.empty(a.shape[:1], dtype=torch.int64, device=a.device)
    if a.numel():
        kernel[(a.shape[0],)](a, b, out, a.shape[1], BLOCK=triton.next_power_of_2(a.shape[1]))
    elif out.numel():
        kernel[(a.shape[0],)](a, b, out, 0, BLOCK=1)
    return out
"""

REFERENCES = '''
import torch


def starts(ids):
    """Returns the first of each run of equal values, and zeros for the others."""
    found = ids.clone()
    found[:, 1:] *= ids[:, 1:] != ids[:, :-1]
    return found


def accepted(draft, target):
    """Returns how many agree before the first that does not, times 100000, and the last target."""
    count = (draft != target).to(torch.int64).cumsum(dim=1).eq(0).sum(dim=1)
    return 100000 * count + target[:, -1] if target.shape[1] else count
'''

WIDE = {"kind": "randint", "low": 0, "high": 32000}


def of_reference(folder: Path, name: str, *inputs: str) -> dict[str, Any]:
    """Returns an op of one of the references, of inputs that are never equal by chance."""
    (folder / "references.py").write_text(REFERENCES, encoding="utf-8")
    reference = {"file": "references.py", "name": name, "init": {}, "root": str(folder)}
    listed = [whole(one, ["M", "N"], init=WIDE) for one in inputs]
    return declared("", listed, {"M": 4, "N": 24}, torch=None, reference=reference)


def test_the_largest_may_be_below_zero(tmp_path: Path) -> None:
    op = declared("torch.max", [tensor("input", ["M", "N"])], {"M": 6, "N": 40})
    require_passed(tmp_path / "right", op, LARGEST)
    lanes, padding = 'tl.full((BLOCK,), float("-inf"), tl.float32)', 'other=float("-inf"))'
    require_rejected(tmp_path / "lanes", op, LARGEST, lanes, "tl.zeros((BLOCK,), tl.float32)")
    require_rejected(tmp_path / "padding", op, LARGEST, padding, "other=0.0)")


def test_neighbours_may_be_equal_where_a_block_ends(tmp_path: Path) -> None:
    op = of_reference(tmp_path, "starts", "ids")
    require_passed(tmp_path / "right", op, COLLAPSED)
    require_rejected(tmp_path / "wrong", op, COLLAPSED, "(at == 0)", "(at == first)")


def test_integers_of_two_inputs_may_agree_after_they_did_not(tmp_path: Path) -> None:
    op = of_reference(tmp_path, "accepted", "draft", "target")
    require_passed(tmp_path / "right", op, ACCEPTED)
    require_rejected(tmp_path / "wrong", op, ACCEPTED, "tl.cumsum(wrong, axis=0) == 0", "wrong == 0")
