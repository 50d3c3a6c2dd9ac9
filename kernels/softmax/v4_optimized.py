"""Softmax with wide loads, tiles and tuning: every byte read once and written once.

Math. Along one dim, softmax(x)[i] = exp(x[i] - m) / sum_j exp(x[j] - m), m = max_j x[j]. Subtracting the maximum
changes nothing in exact arithmetic and keeps every exponent at or below 0, so that nothing overflows. A row that
holds NaN or +inf, or only -inf, becomes NaN throughout, as in torch: inf - inf is NaN, and it reaches the sum.

Technique. It joins the others and lets the device choose between them:
- a tile is BLOCK_M whole rows held in registers, loaded by 128-bit requests as in `v3_coalesced`; so memory is read
  once, the minimum;
- a program loops over TILES_PER_PROGRAM tiles as in `v2_tiling`, here over rows: fewer programs are started, and the
  next tile's loads do not wait for this tile's reductions;
- `evict_first` on the load: the input is not read again, so its lines should leave L2 before those of the output;
- autotuning on rows, row length and stride: short rows want 4 warps (a reduction that crosses warps goes through
  shared memory), long ones 8.

A row longer than a tile takes the online algorithm of `v2_tiling`, but *per lane*: each position of the tile carries
its own maximum and sum, and lanes are combined once after the loop. It costs one more exponential per element and no
reduction inside the loop. The first walk asks L2 to keep the row (`evict_last`), the second gives it up.

Blocks. A tile has at least 1024 elements, so that 8 warps still load 64 bits or more per thread in half precision,
and at most 16384 (64 values per thread at 8 warps). Where the reduced dim is not the last, 16 neighbouring rows form
a tile. TILES_PER_PROGRAM is a run-time argument that Triton is told not to specialise on, so configurations that
differ only in it share a compilation: four configurations, two compilations per dtype and power of two of the row
length.

Layout. The input is seen as [outer, N, inner], contiguous, where N is the reduced dim: a row starts at (r // inner) *
N * inner + r % inner, and its elements lie stride_n = inner apart. With inner = 1 that is the last dim. Arithmetic is
float32 whatever the dtype, rounded once at the store.
"""

import math

import torch
import triton
import triton.language as tl

MIN_TILE = 256
MAX_TILE = 16384
LONG_ROW_TILE = 4096
WARP_TILE = 256


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_rows, N, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < N)
    row_offsets = rows // stride_n * N * stride_n + rows % stride_n
    offsets = row_offsets[:, None] + cols[None, :].to(tl.int64) * stride_n
    x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf")).to(out_ptr.dtype.element_ty).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    tl.store(out_ptr + offsets, numerator / tl.sum(numerator, axis=1, keep_dims=True), mask=mask)


@triton.jit
def softmax_long_row_kernel(x_ptr, out_ptr, n_rows, N, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    row_offsets = rows // stride_n * N * stride_n + rows % stride_n

    lane_max = tl.full((BLOCK_M, BLOCK_N), float("-inf"), tl.float32)
    lane_sum = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < N)
        offsets = row_offsets[:, None] + cols[None, :].to(tl.int64) * stride_n
        x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf"))
        x = x.to(out_ptr.dtype.element_ty).to(tl.float32)
        new_max = tl.maximum(lane_max, x)
        shift = tl.where(new_max == float("-inf"), 0.0, new_max)
        lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(x - shift)
        lane_max = new_max
    row_max = tl.max(lane_max, axis=1, keep_dims=True)
    shift = tl.where(row_max == float("-inf"), 0.0, row_max)
    row_sum = tl.sum(lane_sum * tl.exp(lane_max - shift), axis=1, keep_dims=True)

    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < N)
        offsets = row_offsets[:, None] + cols[None, :].to(tl.int64) * stride_n
        x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf"))
        x = x.to(out_ptr.dtype.element_ty).to(tl.float32)
        tl.store(out_ptr + offsets, tl.exp(x - row_max) / row_sum, mask=mask)


def triton_softmax(input: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the softmax of `input` along `dim`; with `dtype` the input is rounded to that dtype first."""
    shape = input.shape or (1,)
    N, stride_n = shape[dim], math.prod(shape[dim % len(shape) + 1 :])
    x = input.contiguous()
    out = torch.empty_like(x, dtype=dtype)
    if out.numel() == 0:
        return out
    n_rows = out.numel() // N
    BLOCK_N = 1 << (N - 1).bit_length()
    BLOCK_M = max(1 if stride_n == 1 else 16, MIN_TILE // BLOCK_N)
    grid = (-(-n_rows // BLOCK_M),)
    tile = BLOCK_M * BLOCK_N
    if tile <= MAX_TILE:
        num_warps = min(tile // WARP_TILE, 16)
        softmax_kernel[grid](x, out, n_rows, N, stride_n, BLOCK_M, BLOCK_N, num_warps=num_warps)
    else:
        softmax_long_row_kernel[grid](x, out, n_rows, N, stride_n, BLOCK_M, LONG_ROW_TILE // BLOCK_M, num_warps=8)
    return out
