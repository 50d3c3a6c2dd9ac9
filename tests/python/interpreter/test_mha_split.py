"""Holds the split of float32 keys and values into float16 terms to the numbers that it stands for."""

import math

import pytest
import torch

from kernels.mha import hopper

BLOCK_N, D = 16, 64


def split(k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the parts (heads, 4, rows, D) and the scales (heads, 2, tiles) of keys and values (heads, N, D)."""
    heads, n, _ = k.shape
    tiles = math.ceil(n / BLOCK_N)
    parts = torch.full((heads, 4, tiles * BLOCK_N, D), math.nan, dtype=torch.float16)
    scales = torch.full((heads, 2, tiles), math.nan)
    hopper.split_kernel[(tiles, heads)](k, v, parts, scales, n, D, BLOCK_N)
    return parts, scales


def joined(parts: torch.Tensor, powers: torch.Tensor) -> torch.Tensor:
    """Returns (hi + lo) * power of a tensor's two parts (heads, 2, rows, D), in float64, by tile of rows."""
    return parts.double().sum(1) * powers.double().repeat_interleave(BLOCK_N, 1)[:, :, None]


@pytest.mark.parametrize("magnitude", [1e-20, 1e-4, 1.0, 1e4, 1e20])
def test_two_terms_hold_22_bits_of_a_tile(magnitude: float) -> None:
    k, v = (torch.randn(3, 40, D) * magnitude for _ in range(2))
    parts, scales = split(k, v)
    for given, found in (
        (k, joined(parts[:, :2], scales[:, 0])),
        (v, joined(parts[:, 2:], torch.exp2(scales[:, 1]))),
    ):
        assert bool(((found[:, :40] - given).abs() <= given.abs() * 2.0**-22 + given.abs().max() * 2.0**-38).all())
        assert bool((found[:, 40:] == 0).all())


def test_a_tile_of_zeros_has_no_scale() -> None:
    k, v = torch.randn(1, 32, D), torch.randn(1, 32, D)
    v[:, :16] = 0.0
    parts, scales = split(k, v)
    assert scales[0, 1, 0] == 1000.0
    assert bool((parts[0, 2:, :16] == 0).all())
    assert scales[0, 1, 1] < 0.0
    assert bool(scales[0, 0].isfinite().all())


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e8])
@pytest.mark.parametrize("is_key", [True, False])
def test_what_a_split_does_not_hold_is_told(value: float, is_key: bool) -> None:
    k, v = torch.randn(1, 48, D), torch.randn(1, 48, D)
    (k if is_key else v)[0, 20, 3] = value
    _, scales = split(k, v)
    assert scales[0, 0].isnan().tolist() == [False, True, False]
