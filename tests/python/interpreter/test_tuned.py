"""Autotuned kernels: a first call, in which the autotuner tries configurations on the very arguments, and later ones, which reset and restore nothing (triton 3.6, `Autotuner.run`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import both_tests, check, declared, require_passed, require_rejected, tensor

CONFIGS = "[triton.Config({'BLOCK': 32}), triton.Config({'BLOCK': 64})], key=['n']"

ADDED_UP = f"""
@triton.autotune({CONFIGS}, reset_to_zero=["out_ptr"])
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0))


def wrapper(input):
    x = input.contiguous()
    out = torch.zeros((), dtype=x.dtype, device=x.device)
    if x.numel():
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
"""

IN_PLACE = f"""
@triton.autotune({CONFIGS}, restore_value=["x_ptr"])
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(x_ptr + at, tl.exp(x), mask=at < n)


def wrapper(input):
    out = input.contiguous().clone()
    if out.numel():
        kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](out, out.numel())
    return out
"""

DIVIDED = """
@triton.autotune([triton.Config({'BLOCK': 32}), triton.Config({'BLOCK': 64})], key=['n'])
@triton.jit
def kernel(x_ptr, out_ptr, n, IS_EVEN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (at < n) | (IS_EVEN and n % BLOCK == 0)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at, mask=mask)), mask=mask)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), x.numel() % 32 == 0)
    return out
"""


CHANGED = f"""
@triton.autotune({CONFIGS}, restore_value=["x_ptr"])
@triton.jit
def kernel(x_ptr, n, stride, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at * stride, mask=at < n, other=0.0)
    tl.store(x_ptr + at * stride, x * factor, mask=at < n)


def wrapper(x, factor=0.5):
    if x.numel():
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel(), x.stride(0), factor)
"""


def scaled(folder: Path) -> dict[str, Any]:
    """Returns an op that changes its input and returns nothing."""
    (folder / "reference.py").write_text("def scaled(x, factor=0.5):\n    x.mul_(factor)\n")
    reference = {"file": "reference.py", "name": "scaled", "init": {}, "root": str(folder)}
    more = {"reference": reference, "mutates": ["x"], "kwargs": {"factor": 0.5}, "seeds": 1}
    return declared("", [tensor("x", ["M"])], {"M": 77}, torch=None, **more)


def op(torch_name: str = "torch.exp") -> dict[str, Any]:
    return declared(torch_name, [tensor("input", ["M"])], {"M": 256}, deterministic=False, seeds=1)


HONEST = {
    "added up": (op("torch.sum"), ADDED_UP),
    "in place": (op(), IN_PLACE),
    "divided": (op(), DIVIDED),
}

FAULTS = {
    "trials leave their sums": ("added up", ', reset_to_zero=["out_ptr"]', ""),
    "later calls have no zeros": ("added up", "torch.zeros((), ", "torch.empty((), "),
    "trials change what the call reads": ("in place", ', restore_value=["x_ptr"]', ""),
    "the largest block has no mask where the smallest divides": ("divided", " and n % BLOCK == 0", ""),
}


test_the_honest_kernel_passes, test_the_wrong_one_is_rejected = both_tests(HONEST, FAULTS)


def test_what_trials_left_is_told_as_such(tmp_path: Path) -> None:
    declaration, kernel = HONEST["in place"]
    documents = check(tmp_path, declaration, kernel.replace(', restore_value=["x_ptr"]', ""))
    assert "the autotuner has tried" in documents["evidence"]["failure"]["message"]


@pytest.mark.parametrize(
    ("written", "instead"),
    [(', restore_value=["x_ptr"]', ""), ("x * factor", "x * tl.where(BLOCK > 32, 1.0, factor)")],
    ids=["trials change it", "the second configuration is wrong"],
)
def test_what_an_op_changes_is_compared_in_each_run_as_what_it_returns_is(
    tmp_path: Path, written: str, instead: str
) -> None:
    require_passed(tmp_path / "right", scaled(tmp_path), CHANGED)
    require_rejected(tmp_path / "wrong", scaled(tmp_path), CHANGED, written, instead)
