"""Inputs in float8, as quantized products have them: kernels that are right pass, those that mistake the numbers are seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, require_passed, tensor

from t2t_harness.cases import eights, inputs, probe_eights
from t2t_harness.judging import kept, steps

REFERENCE = """
import torch


def dequantized(x, scale):
    return x.to(torch.float32) * scale[:, None]


def quantized(x, dtype):
    most = torch.finfo(dtype).max
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-4) / most
    return (x / scale).clamp(-most, most).to(dtype), scale


def product(a, b, scale_a, scale_b):
    a = a.to(torch.float32) * scale_a[:, None]
    b = b.to(torch.float32) * scale_b[:, None]
    return a @ b.t()
"""

DEQUANTIZED = """
@triton.jit
def kernel(x_ptr, scale_ptr, out_ptr, N, sm, sn, ss, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    scale = tl.load(scale_ptr + row * ss)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * N + cols, x * scale, mask=cols < N)


def wrapper(x, scale):
    M, N = x.shape
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    if M and N:
        kernel[(M,)](x, scale, out, N, *x.stride(), *scale.stride(), BLOCK=32)
    return out
"""

PRODUCT = """
@triton.jit
def kernel(a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, M, N, K, am, ak, bn, bk, ss, st, BLOCK: tl.constexpr):
    rows, cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows[:, None] * am + inner[None, :] * ak, mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0)
        b = tl.load(b_ptr + cols[None, :] * bn + inner[:, None] * bk, mask=(cols[None, :] < N) & (inner[:, None] < K), other=0.0)
        total = tl.dot(a, b, total)
    scale_a = tl.load(sa_ptr + rows * ss, mask=rows < M, other=0.0)
    scale_b = tl.load(sb_ptr + cols * st, mask=cols < N, other=0.0)
    total = total * scale_a[:, None] * scale_b[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total, mask=(rows[:, None] < M) & (cols[None, :] < N))


def wrapper(a, b, scale_a, scale_b):
    M, K = a.shape
    N = b.shape[0]
    out = torch.empty((M, N), dtype=torch.float32, device=a.device)
    if M and N:
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
        kernel[grid](a, b, scale_a, scale_b, out, M, N, K, *a.stride(), *b.stride(), *scale_a.stride(), *scale_b.stride(), BLOCK=32)
    return out
"""

SCALE = {"kind": "uniform", "low": 0.01, "high": 0.1}


def of_dequantized(folder: Path, dtype: str, **more: Any) -> dict[str, Any]:
    """Returns the op of scaled rows of the float8 `dtype`, whose reference is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": "dequantized", "init": {}, "root": str(folder)}
    given = [tensor("x", ["M", "N"], dtype=dtype), tensor("scale", ["M"], init=SCALE)]
    return declared("", given, {"M": 6, "N": 24}, torch=None, reference=reference, **more)


def of_product(folder: Path, dtype: str) -> dict[str, Any]:
    """Returns the op of a product of two matrices of the float8 `dtype`, whose reference is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": "product", "init": {}, "root": str(folder)}
    given = [tensor("a", ["M", "K"], dtype=dtype), tensor("b", ["N", "K"], dtype=dtype)]
    given += [tensor("scale_a", ["M"], init=SCALE), tensor("scale_b", ["N"], init=SCALE)]
    return declared("", given, {"M": 20, "N": 24, "K": 40}, torch=None, reference=reference)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_honest_kernels_pass(tmp_path: Path, dtype: str) -> None:
    require_passed(tmp_path / "scaled", of_dequantized(tmp_path, dtype), DEQUANTIZED)
    require_passed(tmp_path / "product", of_product(tmp_path, dtype), PRODUCT)


# Takes the bits of a float8_e4m3fn apart: a sign, four of the exponent, three of the mantissa.
BY_BITS = """
@triton.jit
def value(bits):
    exponent, mantissa = (bits >> 3) & 15, (bits & 7).to(tl.float32)
    normal = (1.0 + mantissa / 8) * tl.exp2((exponent - 7).to(tl.float32))
    size = tl.where(exponent == 0, mantissa / 512, normal)
    size = tl.where((bits & 127) == 127, float("nan"), size)
    return tl.where(bits >= 128, -size, size)


@triton.jit
def kernel(x_ptr, scale_ptr, out_ptr, N, sm, sn, ss, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    scale = tl.load(scale_ptr + row * ss)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        bits = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=0).to(tl.int32)
        tl.store(out_ptr + row * N + cols, value(bits) * scale, mask=cols < N)


def wrapper(x, scale):
    M, N = x.shape
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    if M and N:
        kernel[(M,)](x.view(torch.uint8), scale, out, N, *x.stride(), *scale.stride(), BLOCK=32)
    return out
"""


def test_bits_are_taken_apart(tmp_path: Path) -> None:
    require_passed(tmp_path / "right", of_dequantized(tmp_path, "float8_e4m3fn"), BY_BITS)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("tl.where(exponent == 0, mantissa / 512, normal)", "tl.where(exponent == 0, 0.0, normal)"),
        ("tl.exp2((exponent - 7)", "tl.exp2((tl.minimum(exponent, 14) - 7)"),
        ('tl.where((bits & 127) == 127, float("nan"), size)', "size"),
        ("tl.where(bits >= 128, -size, size)", "tl.where(bits > 129, -size, size)"),
        ("(exponent - 7)", "(exponent - 8)"),
    ],
    ids=[
        "denormal numbers are lost",
        "the largest are too small",
        "no NaN",
        "one negative number has no sign",
        "another bias",
    ],
)
def test_bits_that_are_taken_for_others_are_seen(tmp_path: Path, written: str, instead: str) -> None:
    assert written in BY_BITS
    kernel = BY_BITS.replace(written, instead)
    failure = check(tmp_path / "wrong", of_dequantized(tmp_path, "float8_e4m3fn"), kernel)["evidence"]["failure"]
    assert failure is not None, written


def test_all_finite_numbers_are_among_the_values_of_a_case(tmp_path: Path) -> None:
    op = of_dequantized(tmp_path, "float8_e5m2")
    (case,) = probe_eights.every(op)
    x = inputs.make_inputs(op, case)["x"]
    assert x.dtype is torch.float8_e5m2 and len(x.float().unique()) == 247
    # As it is declared, none of them is negative.
    op["inputs"][0]["init"] = {"kind": "uniform", "low": 0.0, "high": 2.0}
    known = inputs.make_inputs(op, case)["x"].float().unique()
    assert known.min() == 0 and known.max() == 2 and len(known) == 65
    op["inputs"][0]["dtype"] = None
    assert [*probe_eights.every(op)] == []


def test_numbers_beyond_the_largest_are_the_largest() -> None:
    values = torch.tensor([1e6, -1e6, 447.0, float("inf"), float("nan"), 0.3])
    small, wide = eights.narrowed(values, "float8_e4m3fn"), eights.narrowed(values, "float8_e5m2")
    assert small.dtype is torch.float8_e4m3fn and wide.dtype is torch.float8_e5m2
    assert small.float()[:3].tolist() == [448, -448, 448] and small.float()[3:5].isnan().all()
    assert wide.float()[:4].tolist() == [57344, -57344, 448, float("inf")]
    assert eights.narrowed(values, "float32") is values


def test_elements_are_moved_byte_by_byte() -> None:
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    small = values.to(torch.float8_e5m2)
    assert eights.moved(small, 2).float().equal(values.to(torch.float8_e5m2).float().roll(2))
    apart = torch.empty(6, 2, dtype=torch.float8_e5m2)[:, 0].copy_(small.flatten())
    assert eights.moved(apart, 1).float().equal(small.float().flatten().roll(1))
    assert eights.moved(values, 1).equal(values.roll(1))


QUANTIZED = """
@triton.jit
def kernel(x_ptr, out_ptr, scale_ptr, N, sm, sn, MOST: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=0.0)
    top = tl.where(tl.max((x != x).to(tl.int32), 0) > 0, float("nan"), tl.max(tl.abs(x), 0))
    scale = tl.div_rn(tl.where(top < 1e-4, 1e-4, top), MOST + 0.0)
    level = tl.div_rn(x, scale)
    level = tl.where(level < -MOST, -MOST, tl.where(level > MOST, MOST, level))
    tl.store(out_ptr + row * N + cols, level.to(out_ptr.dtype.element_ty), mask=cols < N)
    tl.store(scale_ptr + row, scale)


def wrapper(x, dtype):
    M, N = x.shape
    out = torch.empty((M, N), dtype=dtype, device=x.device)
    scale = torch.empty((M, 1), dtype=torch.float32, device=x.device)
    if M and N:
        block = triton.next_power_of_2(N)
        kernel[(M,)](x, out, scale, N, *x.stride(), MOST=torch.finfo(dtype).max, BLOCK=block)
    return out, scale
"""


def of_quantized(folder: Path) -> dict[str, Any]:
    """Returns the op of rows that are scaled to a float8, which an argument names."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": "quantized", "init": {}, "root": str(folder)}
    kwargs = {"dtype": "torch.float8_e4m3fn"}
    given = [tensor("x", ["M", "N"])]
    return declared("", given, {"M": 6, "N": 24}, kwargs=kwargs, torch=None, reference=reference)


def test_the_other_float8_is_another_value_of_an_argument(tmp_path: Path) -> None:
    require_passed(tmp_path / "right", of_quantized(tmp_path), QUANTIZED)
    wrong = QUANTIZED.replace("MOST=torch.finfo(dtype).max", "MOST=448.0")
    failure = check(tmp_path / "wrong", of_quantized(tmp_path), wrong)["evidence"]["failure"]
    assert failure is not None and "dtype=torch.float8_e5m2" in failure["case"], failure


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (
            "level.to(out_ptr.dtype.element_ty)",
            "(level.to(tl.int32, bitcast=True) & -1048576).to(tl.float32, bitcast=True).to(out_ptr.dtype.element_ty)",
        ),
        ("level = tl.div_rn(x, scale)", "level = tl.div_rn(x, scale) * 0.96875"),
        (
            "level = tl.div_rn(x, scale)",
            "level = tl.div_rn(x, scale)\n    level = tl.where(tl.abs(level) < 8, 0.0, level)",
        ),
    ],
    ids=["cut off and not rounded", "three hundredths too small", "small ones are zero"],
)
def test_results_in_float8_that_are_next_to_the_right_ones_are_seen(tmp_path: Path, written: str, instead: str) -> None:
    assert written in QUANTIZED
    wrong = QUANTIZED.replace(written, instead)
    failure = check(tmp_path / "wrong", of_quantized(tmp_path), wrong)["evidence"]["failure"]
    assert failure is not None and failure["class"] == "mismatch", failure


def compared(out: torch.Tensor, right: torch.Tensor, wide: torch.Tensor | None = None, atol: float = 0.0) -> bool:
    return steps.compare(out, right, wide, (atol, 0.0)).passed


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_a_few_results_in_float8_may_be_the_next_number(name: str) -> None:
    dtype = getattr(torch, name)
    right = torch.linspace(-300, 300, 1024).to(dtype)
    bits = right.view(torch.uint8).clone()
    assert compared(right.clone(), right)
    bits[:8] -= 1
    assert compared(bits.view(dtype), right)
    bits[:16] -= 1
    assert not compared(bits.view(dtype), right), "two steps off"
    bits = right.view(torch.uint8).clone()
    bits[:16] -= 1
    assert not compared(bits.view(dtype), right), "too many"
    # What torch's own result is off from the oracle's says how much rounding decides.
    assert compared(bits.view(dtype), right, bits.view(dtype)) and compared(bits.view(dtype), right, atol=64.0)
    # A zero has either sign, and a NaN is one.
    zero = torch.tensor([0.0, float("nan")]).to(dtype)
    assert compared(torch.tensor([-0.0, float("nan")]).to(dtype), zero)
    found = steps.compare(torch.tensor([0.0, 1.0]).to(dtype), zero, None, (0.0, 0.0))
    assert found.class_ == "nan" and found.index == [1]
    assert compared(right[:0], right[:0])


def test_results_that_are_powers_of_two_alone_are_kept_and_compared(tmp_path: Path) -> None:
    right = torch.tensor([1.0, 2.0, 0.5, float("nan")]).to(torch.float8_e8m0fnu)
    writer = kept.Writer(tmp_path / "0.safetensors")
    writer.add("a.0", right)
    writer.close()
    (found,) = kept.load(tmp_path / "0.safetensors").values()
    assert found.dtype is right.dtype and compared(found, right)
    other = right.view(torch.uint8).clone()
    other[:2] += 1
    assert not compared(other.view(right.dtype), right)
