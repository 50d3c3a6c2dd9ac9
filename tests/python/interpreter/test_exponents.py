"""Large values in exponentials: few elements may be off by what the last bit of an exponent is worth, many may not, nor one of an op without exponentials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import declared, require_passed, require_rejected, tensor

KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=float("-inf")).to(tl.float32)
    most = tl.max(x, 0)
    e = tl.exp(x - most)
    out = e / tl.sum(e, 0)
    largest = cols == tl.argmax(x, 0)
    out = tl.where(largest & (tl.abs(most) > 2e4) & (row == 2), out * 0.9, out)
    tl.store(out_ptr + row * N + cols, out, mask=cols < N)


def wrapper(x, dim=-1):
    if x.dim() != 2 or dim not in (1, -1):
        raise NotImplementedError("rows of a matrix alone")
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""


def softmax() -> dict[str, Any]:
    """Returns the op that exponentials are in."""
    sizes = {"M": 24, "N": 40}
    return declared("torch.nn.functional.softmax", [tensor("x", ["M", "N"])], sizes, kwargs={"dim": -1})


@pytest.mark.parametrize("kept", ["0.9", "0.0"])
def test_one_element_of_large_values_may_be_off(tmp_path: Path, kept: str) -> None:
    """Returns nothing: a weight of a single row that is lost, as where one thread has another sum, is within what its exponent's last bit is worth."""
    require_passed(tmp_path, softmax(), KERNEL.replace("0.9", kept))


MIDDLE = "(tl.abs(most) > 5e3) & (tl.abs(most) < 2e4)"
"""Exponents as `offset` has them, of which the last bits are worth a part in 400."""


def test_all_may_be_off_by_the_last_bits_of_exponents(tmp_path: Path) -> None:
    """Returns nothing: a weight a thousandth too large is within that, one a hundredth too large is not."""
    kernel = KERNEL.replace("(tl.abs(most) > 2e4) & (row == 2)", MIDDLE).replace("out * 0.9", "out * 1.001")
    require_passed(tmp_path / "right", softmax(), kernel)
    require_rejected(tmp_path / "wrong", softmax(), kernel, "1.001", "1.01")


@pytest.mark.parametrize(("written", "instead"), [("(row == 2)", "(row >= 0)"), ("0.9", "2.5")])
def test_more_may_not(tmp_path: Path, written: str, instead: str) -> None:
    """Returns nothing: a weight that is lost in every row is wrong, and so is one by more than its row's largest."""
    require_rejected(tmp_path, softmax(), KERNEL, written, instead)


SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=0.0).to(tl.float32)
    out = tl.cumsum(x, 0)
    out = tl.where((tl.max(tl.abs(x), 0) > 2e4) & (row == 2) & (cols == 1), out * 1.0, out)
    tl.store(out_ptr + row * N + cols, out, mask=cols < N)


def wrapper(x, dim=-1):
    if x.dim() != 2 or dim not in (1, -1):
        raise NotImplementedError("rows of a matrix alone")
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""


def test_one_of_a_sum_may_not(tmp_path: Path) -> None:
    """Returns nothing: without exponentials the last bits of large values are worth no more than those of others."""
    op = declared("torch.cumsum", [tensor("x", ["M", "N"])], {"M": 24, "N": 40}, kwargs={"dim": -1})
    require_rejected(tmp_path, op, SUM, "out * 1.0", "out * 0.9")
