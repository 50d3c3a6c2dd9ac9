"""Layer normalization with wide loads and small tiles: rows of up to 16384 elements are read once.

Math. Over the trailing dims `normalized_shape`, of N elements in all, y = (x - mean) / sqrt(var + eps) * weight +
bias, with mean = sum(x) / N and the biased variance var = sum((x - mean)^2) / N; weight and bias are optional.

Stability. var = mean(x^2) - mean(x)^2 would cancel for rows far from 0. Instead the row's first element x0 is taken
off every element before anything is summed (the result does not depend on such a shift), and squares are taken of
differences from the mean. A row of equal values then gives exactly 0 times weight plus bias, however large the values
are: with sums of x itself one rounding error, times 1 / sqrt(eps) = 316, would show.

Technique. It keeps the tiles of whole rows and the wide requests of `v3_coalesced`, and adds what was measured to pay
on an H200:
- weight and bias are asked for together with the row, before the reductions, which then hide their way from L2: 1 to
  6 % faster than after them;
- smaller tiles and fewer warps: a program has one row, or as many as make 256 elements, and a thread 16 of them, 8 of
  the smallest tile. A reduction inside one warp needs no shared memory and waits for nobody;
- a row on its own is a one-dimensional block. As a block of one row and two dims it is 5 % slower at 8192 columns with 8
  warps, and 45 % with 16: its threads need 85 registers, which leaves one program a multiprocessor;
- no eviction policy. `evict_first`, the textbook's hint for data that is read once, is 2 to 4 % slower here;
  `evict_last` measures up to 4 % faster, but what it gains is write-back put off, and a kernel followed by a reader of
  its result is none the faster;
- no tuning and no loop over rows: the number of warps follows from the length of a row, and programs that stay resident
  and keep weight and bias in registers are 1 to 7 % slower than new ones. An autotuner's dispatch costs the
  host more than the launch itself.

Nothing comes from `v2_tiling`. A row longer than a tile is walked twice. The first walk runs Welford's update (1962) *per lane*, mean += (x - mean) /
k with k the number of tiles seen, so there is no reduction inside the loop; lanes are merged once after it by Chan's
formula. It asks L2 to keep the row (`evict_last`); the second walk writes the result and gives the row up.

Blocks. A tile has 256 to 16384 elements, and a warp 512 of them until there are 16 warps; then threads take more, 32
values at the largest.

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
WARP_TILE = 512
MAX_WARPS = 16
LONG_ROW_WARPS = 8


@triton.jit
def layernorm_row_kernel(x_ptr, w_ptr, b_ptr, out_ptr, N, eps, BLOCK_N: tl.constexpr):
    row_offset = tl.program_id(0).to(tl.int64) * N
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row_offset + cols, mask=mask).to(tl.float32)
    first = tl.load(x_ptr + row_offset).to(tl.float32)
    if w_ptr is not None:
        weight = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    if b_ptr is not None:
        bias = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
    shifted = tl.where(mask, x - first, 0.0)
    centered = tl.where(mask, shifted - tl.sum(shifted, axis=0) / N, 0.0)
    variance = tl.sum(centered * centered, axis=0) / N
    y = centered * tl.rsqrt(variance + eps)
    if w_ptr is not None:
        y *= weight
    if b_ptr is not None:
        y += bias
    tl.store(out_ptr + row_offset + cols, y, mask=mask)


@triton.jit
def layernorm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, M, N, eps, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    offsets = rows[:, None] * N + cols[None, :]
    first = tl.load(x_ptr + rows * N, mask=rows < M).to(tl.float32)[:, None]
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    if w_ptr is not None:
        weight = tl.load(w_ptr + cols, mask=cols < N).to(tl.float32)[None, :]
    if b_ptr is not None:
        bias = tl.load(b_ptr + cols, mask=cols < N).to(tl.float32)[None, :]
    shifted = tl.where(mask, x - first, 0.0)
    centered = tl.where(mask, shifted - tl.sum(shifted, axis=1, keep_dims=True) / N, 0.0)
    variance = tl.sum(centered * centered, axis=1, keep_dims=True) / N
    y = centered * tl.rsqrt(variance + eps)
    if w_ptr is not None:
        y *= weight
    if b_ptr is not None:
        y += bias
    tl.store(out_ptr + offsets, y, mask=mask)


@triton.jit
def layernorm_long_row_kernel(x_ptr, w_ptr, b_ptr, out_ptr, N, eps, BLOCK_N: tl.constexpr):
    row_offset = tl.program_id(0).to(tl.int64) * N
    first = tl.load(x_ptr + row_offset).to(tl.float32)

    lane_mean = tl.zeros((BLOCK_N,), tl.float32)
    lane_squares = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row_offset + cols, mask=cols < N, eviction_policy="evict_last").to(tl.float32)
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
        x = tl.load(x_ptr + row_offset + cols, mask=cols < N, eviction_policy="evict_first").to(tl.float32)
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
        num_warps = min(max(BLOCK_M * BLOCK_N // WARP_TILE, 1), MAX_WARPS)
        if BLOCK_M == 1:
            layernorm_row_kernel[(M,)](x, weight, bias, out, N, eps, BLOCK_N, num_warps=num_warps)
        else:
            grid = (-(-M // BLOCK_M),)
            layernorm_kernel[grid](x, weight, bias, out, M, N, eps, BLOCK_M, BLOCK_N, num_warps=num_warps)
    else:
        layernorm_long_row_kernel[(M,)](x, weight, bias, out, N, eps, LONG_ROW_TILE, num_warps=LONG_ROW_WARPS)
    return out
