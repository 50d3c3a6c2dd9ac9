"""What a wrapper keeps of a call by too little to tell the next one from it, numbers that references decide by, and lengths of dims in the middle. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import both_tests, declared, require_passed, require_rejected, tensor

ADD = """
plans = {}


@triton.jit
def kernel(x_ptr, b_ptr, out_ptr, n, N, HAS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    if HAS:
        x += tl.load(b_ptr + at % N, mask=at < n)
    tl.store(out_ptr + at, x, mask=at < n)


def wrapper(x, bias=None):
    x, N = x.contiguous(), x.shape[-1]
    key = (tuple(x.shape), bias is None)
    plan = plans.setdefault(key, (N, bias is not None))
    out = torch.empty_like(x)
    if out.numel():
        b = x if bias is None else bias.contiguous()
        kernel[(triton.cdiv(out.numel(), 128),)](x, b, out, out.numel(), plan[0], HAS=plan[1], BLOCK=128)
    return out
"""

SCAN = """
@triton.jit
def kernel(x_ptr, out_ptr, L, D, sb, sl, sd, BLOCK: tl.constexpr):
    batch, at = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for place in range(L):
        if place % 64 == 64:
            total = total * 0
        total += tl.load(x_ptr + batch * sb + place * sl + at * sd, mask=at < D, other=0.0)
        tl.store(out_ptr + (batch * L + place) * D + at, total, mask=at < D)


def wrapper(input, dim):
    B, L, D = input.shape
    out = torch.empty((B, L, D), dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(B,)](input, out, L, D, *input.stride(), BLOCK=triton.next_power_of_2(D))
    return out
"""

REFERENCES = '''"""Ops of our own."""

import torch


def added(x, bias=None):
    return x if bias is None else x + bias


def above(x):
    return torch.where(x > 0.7, x, torch.zeros_like(x))


def embedded(ids, weight, mark=103):
    return weight[ids].masked_fill((ids == mark)[:, None], 0.0)
'''

ABOVE = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(x > 0.7, x, 0.0), mask=at < n)


def wrapper(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), BLOCK=128)
    return out
"""

EMBEDDED = """
@triton.jit
def kernel(ids_ptr, w_ptr, out_ptr, D, si, sv, sd, mark, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    index = tl.load(ids_ptr + row * si)
    w = tl.load(w_ptr + index * sv + at * sd, mask=at < D, other=0.0)
    tl.store(out_ptr + row * D + at, tl.where(index == mark, 0.0, w), mask=at < D)


def wrapper(ids, weight, mark=103):
    M, D = ids.shape[0], weight.shape[1]
    out = torch.empty((M, D), dtype=weight.dtype, device=weight.device)
    if out.numel():
        kernel[(M,)](ids, weight, out, D, *ids.stride(), *weight.stride(), mark, BLOCK=triton.next_power_of_2(D))
    return out
"""


def of_reference(
    folder: Path, name: str, inputs: list[dict[str, Any]], binding: dict[str, int], **more: Any
) -> dict[str, Any]:
    """Returns an op of one of the references, which are written into `folder`."""
    (folder / "reference.py").write_text(REFERENCES, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    return declared("", inputs, binding, torch=None, reference=reference, **more)


def added(folder: Path) -> dict[str, Any]:
    return of_reference(
        folder, "added", [tensor("x", ["M", "N"]), tensor("bias", ["N"], optional=True)], {"M": 5, "N": 12}
    )


def above(folder: Path) -> dict[str, Any]:
    return of_reference(folder, "above", [tensor("x", ["M", "N"])], {"M": 5, "N": 12})


def embedded(folder: Path) -> dict[str, Any]:
    ids = tensor("ids", ["M"], dtype="int64", init={"kind": "randint", "low": 0, "high": "V"})
    inputs = [ids, tensor("weight", ["V", "D"])]
    return of_reference(folder, "embedded", inputs, {"M": 7, "V": 1000, "D": 6}, kwargs={"mark": 103}, fixed=["V"])


@pytest.mark.parametrize(
    ("make", "kernel", "written", "instead"),
    [
        (added, ADD, "key = (tuple(x.shape), bias is None)", "key = tuple(x.shape)"),
        (added, ADD, "key = (tuple(x.shape), bias is None)", "key = (x.numel(), bias is None)"),
        (above, ABOVE, "x > 0.7", "x >= 0.7"),
        (embedded, EMBEDDED, "index == mark", "index == mark + 1"),
        (embedded, EMBEDDED, "index == mark, 0.0, w", "index == -1, 0.0, w"),
    ],
    ids=["whether there is a bias", "how many elements there are", "a bound", "the mark's neighbour", "no mark"],
)
def test_what_is_kept_or_decided_by_a_number_is_seen(
    tmp_path: Path, make: Any, kernel: str, written: str, instead: str
) -> None:
    op = make(tmp_path)
    require_passed(tmp_path / "honest", op, kernel)
    require_rejected(tmp_path / "careless", op, kernel, written, instead)


SUMS = declared(
    "torch.cumsum",
    [tensor("input", ["B", "L", "D"])],
    {"B": 2, "L": 9, "D": 5},
    kwargs={"dim": 1},
    edges={"kwargs": "one dim"},
)

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(
    {"sums": (SUMS, SCAN)},
    {"what is carried is lost between pieces": ("sums", "place % 64 == 64", "(place % 64 == 0) & (place > 0)")},
)
