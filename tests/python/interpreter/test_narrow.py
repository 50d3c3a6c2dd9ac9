"""bfloat16 and float8 on the interpreter: bits are read and rounded as the formats say, once."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

import numpy as np
import pytest
import torch

from t2t_harness.triton import narrow

TYPES = {"bf16": torch.bfloat16, "fp8e5": torch.float8_e5m2, "fp8e4nv": torch.float8_e4m3fn}


def any_floats() -> np.ndarray:
    drawn = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    small = np.random.default_rng(1).standard_normal(100_000).astype(np.float32)
    ties = (np.arange(0, 2**16, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    return np.concatenate([drawn, small, ties])


@pytest.mark.parametrize("name", TYPES)
def test_all_bits_are_read_as_torch_reads_them(name: str) -> None:
    kind, unsigned = (np.uint16, torch.uint16) if name == "bf16" else (np.uint8, torch.uint8)
    bits = np.arange(2 ** (8 * np.dtype(kind).itemsize), dtype=np.uint32).astype(kind)
    right = torch.from_numpy(bits).view(unsigned).view(TYPES[name]).float().numpy()
    assert np.array_equal(narrow.floats(bits, name), right, equal_nan=True)


def test_floats_are_rounded_to_bfloat16_as_torch_rounds_them() -> None:
    exact = any_floats()
    right = torch.from_numpy(exact).bfloat16().float().numpy()
    assert np.array_equal(narrow.floats(narrow.bits(exact, "bf16"), "bf16"), right, equal_nan=True)


@pytest.mark.parametrize(("name", "largest"), [("fp8e5", 57344.0), ("fp8e4nv", 448.0)])
def test_a_float8_rounds_to_even_and_stops_at_its_largest_number(name: str, largest: float) -> None:
    exact = any_floats()
    exact = exact[np.abs(exact) <= largest]
    right = torch.from_numpy(exact).to(TYPES[name]).float().numpy()
    assert np.array_equal(narrow.floats(narrow.bits(exact, name), name), right)
    beyond = np.array([largest * 2, -np.inf, np.nan], dtype=np.float32)
    assert np.array_equal(narrow.floats(narrow.bits(beyond, name), name), [largest, -largest, np.nan], equal_nan=True)


def test_a_double_is_rounded_once() -> None:
    # Halfway of two numbers of bfloat16 but for a bit that no float32 has: rounded twice, the first two are ties.
    exact = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40, -(1 + 2.0**-8 + 2.0**-40), 1e300, 1e-60])
    right = [1 + 2.0**-7, 1 + 2.0**-7, -(1 + 2.0**-7), np.inf, 0.0]
    assert narrow.floats(narrow.bits(exact, "bf16"), "bf16").tolist() == right
