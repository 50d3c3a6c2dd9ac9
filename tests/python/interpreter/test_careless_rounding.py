"""Faults that show where all values are far from zero, where numbers lie in the middle of two levels, and where two dims are long at once. Beside each the honest kernel, which passes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, require_passed, tensor

from t2t_harness.cases import inputs, probe_scaled, unusual
from t2t_harness.judging import comparing, tolerance

REFERENCE = """
import torch

def quantized(x):
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale

def scaled(x, scale, zero):
    return (torch.round(x / scale[:, None]) + zero[:, None]) * 2.0
"""

QUANTIZED = """
from triton.language.extra import libdevice

@triton.jit
def kernel(x_ptr, out_ptr, scale_ptr, N, sm, sn, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=0.0)
    top = tl.max(tl.where(x != x, float("nan"), tl.abs(x)), 0)
    top = tl.where(tl.max((x != x).to(tl.int32), 0) > 0, float("nan"), tl.where(top < 1e-8, 1e-8, top))
    scale = top / LEVELS
    level = libdevice.rint(tl.div_rn(x, scale))
    level = tl.where(level < -LEVELS, -LEVELS, tl.where(level > LEVELS, LEVELS, level))
    tl.store(out_ptr + row * N + cols, level.to(tl.int8), mask=cols < N)
    tl.store(scale_ptr + row, scale)

def wrapper(x):
    M, N = x.shape
    out = torch.empty((M, N), dtype=torch.int8, device=x.device)
    scale = torch.empty((M, 1), dtype=torch.float32, device=x.device)
    if M and N:
        kernel[(M,)](x, out, scale, N, *x.stride(), LEVELS=127, BLOCK=triton.next_power_of_2(N))
    return out, scale
"""

SCALED = """
from triton.language.extra import libdevice

@triton.jit
def kernel(x_ptr, scale_ptr, zero_ptr, out_ptr, n, N, sm, sn, ss, sz, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = at // N
    x = tl.load(x_ptr + row * sm + at % N * sn, mask=at < n, other=0.0)
    scale = tl.load(scale_ptr + row * ss, mask=at < n, other=1.0)
    zero = tl.load(zero_ptr + row * sz, mask=at < n, other=0).to(tl.float32)
    tl.store(out_ptr + at, (libdevice.rint(tl.div_rn(x, scale)) + zero) * 2.0, mask=at < n)

def wrapper(x, scale, zero):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n:
        grid = (triton.cdiv(n, 64),)
        kernel[grid](x, scale, zero, out, n, x.shape[1], *x.stride(), *scale.stride(), *zero.stride(), BLOCK=64)
    return out
"""

VARIANCE = """
@triton.jit
def kernel(x_ptr, out_ptr, M, sm, sn, BLOCK: tl.constexpr):
    col, rows = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows * sm + col * sn, mask=rows < M, other=0.0)
    mean = tl.sum(x) / M
    apart = tl.where(rows < M, x - mean, 0.0)
    tl.store(out_ptr + col, tl.sum(apart * apart) / M)

def wrapper(input, dim, correction):
    if dim != 0 or correction != 0:
        raise ValueError("along the first dim alone")
    M, N = input.shape
    out = torch.empty(N, dtype=input.dtype, device=input.device)
    if N:
        kernel[(N,)](input, out, M, *input.stride(), BLOCK=triton.next_power_of_2(max(M, 1)))
    return out
"""

SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=0.0)))

def wrapper(input, dim):
    if dim not in (-1, 1):
        raise ValueError("along the last dim alone")
    M, N = input.shape
    out = torch.empty(M, dtype=input.dtype, device=input.device)
    is_large = M >= 128 and N >= 128
    if M:
        kernel[(M,)](input, out, N - 0, *input.stride(), BLOCK=triton.next_power_of_2(max(N, 1)))
    return out
"""

MN = [tensor("input", ["M", "N"])]

OPS: dict[str, tuple[dict[str, Any], str]] = {
    "variance": (declared("torch.var", MN, {"M": 12, "N": 8}, kwargs={"dim": 0, "correction": 0}), VARIANCE),
    "sum": (declared("torch.sum", MN, {"M": 12, "N": 8}, kwargs={"dim": -1}), SUM),
}


def of_levels(folder: Path) -> dict[str, Any]:
    """Returns the op of quantized rows, whose reference is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": "quantized", "init": {}, "root": str(folder)}
    given, size = [tensor("x", ["M", "N"])], {"M": 6, "N": 24}
    return declared("", given, size, torch=None, reference=reference)


@pytest.mark.parametrize("name", [*OPS, "levels"])
def test_honest_kernels_pass(tmp_path: Path, name: str) -> None:
    require_passed(tmp_path / "right", *(OPS[name] if name in OPS else (of_levels(tmp_path), QUANTIZED)))


@pytest.mark.parametrize(
    ("name", "written", "instead", "case"),
    [
        (
            "variance",
            "tl.sum(apart * apart) / M",
            "tl.sum(x * x) / M - mean * mean",
            "edge/offset[input,level]/float32",
        ),
        ("sum", "N - 0", "N - is_large", "edge/literal[M=131,N=129]/float32"),
        (
            "levels",
            "libdevice.rint(tl.div_rn(x, scale))",
            "tl.floor(tl.div_rn(x, scale) + 0.5)",
            None,
        ),
    ],
    ids=["a variance of squares", "another kernel for large matrices", "halves rounded up"],
)
def test_faults_are_seen(tmp_path: Path, name: str, written: str, instead: str, case: str | None) -> None:
    op, kernel = OPS[name] if name in OPS else (of_levels(tmp_path), QUANTIZED)
    assert written in kernel
    failure = check(tmp_path / "wrong", op, kernel.replace(written, instead))["evidence"]["failure"]
    assert failure is not None and case in (None, failure["case"])


def test_halves_lie_between_the_levels_of_a_row() -> None:
    values = unusual.halves(torch.randn(9, 64, generator=torch.Generator().manual_seed(0)))
    assert values[:, -1].tolist() == [127, 255, 7] * 3
    # In the middle of two levels of a row, once it is divided by its scale, which is one.
    rest = values[:, :-1].abs()
    assert set((rest % 1).unique().tolist()) == {0.0, 0.5} and bool((rest <= values[:, -1:]).all())
    assert 127.5 not in rest[1] and 3.5 not in rest[2]


def of_scales(folder: Path) -> dict[str, Any]:
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": "scaled", "init": {}, "root": str(folder)}
    scale = tensor("scale", ["M"], init={"kind": "uniform", "low": 0.05, "high": 0.3})
    zero = tensor("zero", ["M"], dtype="int32", init={"kind": "randint", "low": -3, "high": 4})
    given = [tensor("x", ["M", "N"]), scale, zero]
    return declared("", given, {"M": 6, "N": 40}, torch=None, reference=reference)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("libdevice.rint(tl.div_rn(x, scale))", "tl.floor(tl.div_rn(x, scale) + 0.5)"),
        ("libdevice.rint(tl.div_rn(x, scale)) + zero", "libdevice.rint(tl.div_rn(x, scale) + zero)"),
    ],
    ids=["halves rounded up", "rounded with the zero point"],
)
def test_halves_of_a_scale_that_is_an_input_are_found(tmp_path: Path, written: str, instead: str) -> None:
    op = of_scales(tmp_path)
    require_passed(tmp_path / "right", op, SCALED)
    assert written in SCALED
    failure = check(tmp_path / "wrong", op, SCALED.replace(written, instead))["evidence"]["failure"]
    assert failure["case"] == "edge/halves[x,scale]/float32"


def test_each_quotient_by_a_scale_is_a_half_and_the_scale_stays_in_its_range(tmp_path: Path) -> None:
    op = of_scales(tmp_path)
    (case,) = probe_scaled.halves(op)
    given = inputs.make_inputs(op, case)
    assert set(given["scale"].tolist()) <= {0.0625, 0.125, 0.25}
    quotients = given["x"] / given["scale"][:, None]
    assert bool(((quotients % 1) == 0.5).all())
    scale = op["inputs"][1]
    # No power of two lies in the range, or it is no scale.
    for low, high in ((0.3, 0.45), (-1.0, 1.0), (0.0, 1.0)):
        scale["init"] = {"kind": "uniform", "low": low, "high": high}
        assert not list(probe_scaled.halves(op)), (low, high)


MEAN = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, 0) / N)


def wrapper(input, dim):
    x = input.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if x.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out if x.shape[1] else out.fill_(float("nan"))
"""


def of_small_means() -> dict[str, Any]:
    """Returns an op of a few results that are far smaller than one, and of no other values."""
    small = tensor("input", ["M", "N"], init={"kind": "uniform", "low": 0.001, "high": 0.003})
    edges = {"special": "small values alone", "kwargs": None}
    return declared("torch.mean", [small], {"M": 6, "N": 24}, kwargs={"dim": -1}, edges=edges)


def test_few_small_results_are_held_to_their_size(tmp_path: Path) -> None:
    require_passed(tmp_path / "right", of_small_means(), MEAN)
    half = MEAN.replace("tl.sum(x, 0) / N)", "(tl.sum(x, 0) / N).to(tl.float16).to(tl.float32))")
    assert half != MEAN
    failure = check(tmp_path / "wrong", of_small_means(), half)["evidence"]["failure"]
    assert failure is not None and failure["class"] == "mismatch", failure


def judged(made: torch.Tensor, right: torch.Tensor, wide: torch.Tensor, **more: Any) -> bool:
    """Tells whether a result of a float32 is right beside torch's and the oracle's."""
    op = declared("torch.mean", [], {}, **more)
    results = comparing.Judged({}, {"0": right}, {"0": made})
    return comparing.compare(op, "float32", "0", results, wide, whole=False).passed


def test_an_absolute_tolerance_shrinks_with_a_small_result_but_not_below_what_torch_is_off() -> None:
    wide = torch.tensor([0.0021, 0.0017, 0.0013], dtype=torch.float64)
    right = wide.float()
    rounded = tolerance.through_tf32(right)
    assert not rounded.equal(right) and not judged(rounded, right, wide)
    assert judged(right + 2e-7, right, wide)
    # Tolerances that ops.yaml has for the result are as they are, and so is one that TF32 may meet.
    own = {"name": "0", "compare": "close", "of": None, "dim": None, "tolerances": {"float32": [1e-5, 1e-5]}}
    assert judged(rounded, right, wide, outputs=[own])
    assert judged(rounded, right, wide, tolerances={"float32": [1e-5, 1e-3]})
    # What is left of a one and a tiny number is nothing.
    tiny = torch.tensor([6e-44, 2e-10], dtype=torch.float64)
    assert judged(torch.zeros(2), tiny.float(), tiny)
    # Torch itself is off by a thousandth: what is left of numbers that cancel.
    off = right + 2e-6
    assert judged(off - 8e-6, off, wide) and not judged(off - 8e-6, right, wide)


@pytest.mark.parametrize("shape", [[1], [], [1, 1]], ids=["a list of one", "a number", "a matrix of one"])
def test_a_scale_of_all_elements_has_halves(tmp_path: Path, shape: list[int | str]) -> None:
    op = of_scales(tmp_path)
    op["inputs"][1] = tensor("scale", shape, init={"kind": "uniform", "low": 0.05, "high": 0.3})
    (case,) = probe_scaled.halves(op)
    assert case.name == "edge/halves[x,scale]/float32"
    given = inputs.make_inputs(op, case)
    assert list(given["scale"].shape) == shape
    assert math.log2(given["scale"].item()).is_integer() and 0.05 <= given["scale"].item() <= 0.3
    assert set((given["x"] / given["scale"].reshape(()) % 1).flatten().tolist()) == {0.5}
