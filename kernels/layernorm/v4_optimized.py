"""Layer normalization with wide loads, tiles and tuning: every byte of the input read once.

Math. Over the trailing dims `normalized_shape`, of N elements in all, y = (x - mean) / sqrt(var + eps) * weight +
bias, with mean = sum(x) / N and the biased variance var = sum((x - mean)^2) / N; weight and bias are optional.

Stability. var = mean(x^2) - mean(x)^2 would cancel for rows far from 0. Instead the row's first element x0 is taken
off every element before anything is summed (the result does not depend on such a shift), and squares are taken of
differences from the mean. A row of equal values then gives exactly 0 times weight plus bias, however large the values
are: with sums of x itself one rounding error, times 1 / sqrt(eps) = 316, would show.

Technique. It joins the others and lets the device choose between them:
- a tile is BLOCK_M whole rows held in registers, loaded by 128-bit requests as in `v3_coalesced`; so the input is
  read once, the minimum;
- a program loops over TILES_PER_PROGRAM tiles as in `v2_tiling`, here over rows: fewer programs are started, and one
  that stays on a multiprocessor finds weight and bias in its L1. They are loaded after the reductions on purpose:
  kept in registers across the loop they would triple the registers of a row, and halve the number of resident
  programs;
- `evict_first` on the input, which is not read again, and `evict_last` on weight and bias, which every row reads;
- autotuning on rows and row length: short rows want 4 warps (a reduction that crosses warps goes through shared
  memory), long ones 8.

A row longer than a tile is walked twice. The first walk runs Welford's update (1962) *per lane*, mean += (x - mean) /
k with k the number of tiles seen, so there is no reduction inside the loop; lanes are merged once after it by Chan's
formula. It asks L2 to keep the row (`evict_last`); the second walk writes the result and gives the row up.

Blocks. A tile has at least 1024 elements, so that 8 warps still load 64 bits or more per thread in half precision,
and at most 16384 (64 values per thread at 8 warps). TILES_PER_PROGRAM is a run-time argument that Triton is told not
to specialise on, so configurations that differ only in it share a compilation: four configurations, two compilations
per dtype and power of two of the row length.

Arithmetic is float32 whatever the dtype, rounded once at the store.
"""

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

MIN_TILE = 256
MAX_TILE = 16384
LONG_ROW_TILE = 4096
WARP_TILE = 256


@triton.jit
def layernorm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, M, N, eps, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    offsets = rows[:, None] * N + cols[None, :]
    first = tl.load(x_ptr + rows * N, mask=rows < M).to(tl.float32)[:, None]
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    shifted = tl.where(mask, x - first, 0.0)
    centered = tl.where(mask, shifted - tl.sum(shifted, axis=1, keep_dims=True) / N, 0.0)
    variance = tl.sum(centered * centered, axis=1, keep_dims=True) / N
    y = centered * tl.rsqrt(variance + eps)
    if w_ptr is not None:
        y *= tl.load(w_ptr + cols, mask=cols < N).to(tl.float32)[None, :]
    if b_ptr is not None:
        y += tl.load(b_ptr + cols, mask=cols < N).to(tl.float32)[None, :]
    tl.store(out_ptr + offsets, y, mask=mask)


@triton.jit
def layernorm_long_row_kernel(x_ptr, w_ptr, b_ptr, out_ptr, N, eps, BLOCK_N: tl.constexpr):
    row_offset = tl.program_id(0).to(tl.int64) * N
    first = tl.load(x_ptr + row_offset).to(tl.float32)

    lane_mean = tl.zeros((BLOCK_N,), tl.float32)
    lane_squares = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row_offset + cols, mask=cols < N).to(tl.float32)
        delta = tl.where(cols < N, x - first - lane_mean, 0.0)
        step = delta / (start // BLOCK_N + 1)
        lane_mean += step
        lane_squares += delta * (delta - step)
    lane_count = tl.cdiv(N - tl.arange(0, BLOCK_N), BLOCK_N).to(tl.float32)
    mean = tl.sum(lane_mean * lane_count, axis=0) / N
    deviation = lane_mean - mean
    variance = tl.sum(lane_squares + lane_count * deviation * deviation, axis=0) / N
    rstd = tl.rsqrt(variance + eps)

    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row_offset + cols, mask=cols < N).to(tl.float32)
        y = (x - first - mean) * rstd
        if w_ptr is not None:
            y *= tl.load(w_ptr + cols, mask=cols < N).to(tl.float32)
        if b_ptr is not None:
            y += tl.load(b_ptr + cols, mask=cols < N).to(tl.float32)
        tl.store(out_ptr + row_offset + cols, y, mask=cols < N)


def triton_layernorm(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Returns `input` normalized over its trailing dims `normalized_shape`, times `weight`, plus `bias`."""
    N = math.prod(normalized_shape)
    if input.shape[-len(normalized_shape) :] != tuple(normalized_shape):
        raise ValueError(
            f"input of shape {tuple(input.shape)} does not end in normalized_shape {tuple(normalized_shape)}"
        )
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    weight = None if weight is None else weight.contiguous()
    bias = None if bias is None else bias.contiguous()
    M = out.numel() // N
    BLOCK_N = 1 << (N - 1).bit_length()
    if BLOCK_N <= MAX_TILE:
        BLOCK_M = max(1, MIN_TILE // BLOCK_N)
        num_warps = min(BLOCK_M * BLOCK_N // WARP_TILE, 16)
        layernorm_kernel[(-(-M // BLOCK_M),)](x, weight, bias, out, M, N, eps, BLOCK_M, BLOCK_N, num_warps=num_warps)
    else:
        layernorm_long_row_kernel[(M,)](x, weight, bias, out, N, eps, LONG_ROW_TILE, num_warps=8)
    return out
