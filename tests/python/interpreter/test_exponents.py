"""Large values in exponentials: few elements may be off by what the last bit of an exponent is worth, many may not, nor one of an op without exponentials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks import declared, require_passed, require_rejected, tensor

from t2t_harness.cases.cases import Case
from t2t_harness.judging import exponents

FORMULA = """
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
"""

WRAPPER = """

def wrapper(x, dim=-1):
    if x.dim() != 2 or dim not in (1, -1):
        raise NotImplementedError("rows of a matrix alone")
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

KERNEL = FORMULA + WRAPPER


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

"""


def test_one_of_a_sum_may_not(tmp_path: Path) -> None:
    """Returns nothing: without exponentials the last bits of large values are worth no more than those of others."""
    op = declared("torch.cumsum", [tensor("x", ["M", "N"])], {"M": 24, "N": 40}, kwargs={"dim": -1})
    kernel = SUM + WRAPPER
    require_passed(tmp_path / "right", op, kernel)
    require_rejected(tmp_path / "wrong", op, kernel, "out * 1.0", "out * 0.9")


REFERENCE = '''"""Functions with exponentials."""

import torch


def gated(x, y):
    return x / (1 + torch.exp(-y))


def weighed(x, y):
    e = torch.exp((x - x.amax(-1, keepdim=True)) / 2)
    return e / e.sum(-1, keepdim=True) + (y - 1)
'''


@pytest.mark.parametrize(("name", "most"), [("gated", 0.0), ("weighed", 8.0)])
def test_exponents_are_those_of_what_is_summed_up(tmp_path: Path, name: str, most: float) -> None:
    """Returns nothing. An exponential without a sum is rounded as any element, and a difference that becomes no exponent counts for nothing."""
    (tmp_path / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(tmp_path)}
    given = [tensor("x", ["M", "N"]), tensor("y", ["M", "N"])]
    own = declared("", given, {"M": 2, "N": 2}, torch=None, reference=reference)
    case = Case("edge/large/float32", "edge", "float32", {"M": 2, "N": 2}, values="large")
    values = {"x": torch.tensor([[8.0, 1.0], [2.0, 3.0]]), "y": torch.full((2, 2), 50.0)}
    assert exponents.worth(own, case, "0", values, "cpu") == most * exponents.LAST_BIT
