"""Softmax with wide loads and small tiles: rows of up to 16384 elements are read once and written once.

Math. Along one dim, softmax(x)[i] = exp(x[i] - m) / sum_j exp(x[j] - m), m = max_j x[j]. Subtracting the maximum
changes nothing in exact arithmetic and keeps every exponent at or below 0, so that nothing overflows. A row that
holds NaN or +inf, or only -inf, becomes NaN throughout, as in torch: inf - inf is NaN, and it reaches the sum.

Technique. It keeps the tiles of whole rows and the wide requests of `v3_coalesced`, and adds what was measured to pay
on an H200:
- smaller tiles and fewer warps: a program has one row, or as many as make 256 elements, and a thread 16 of them, 8 of
  the smallest tile. A reduction inside one warp needs no shared memory and waits for nobody;
- a row of more than 4096 is a one-dimensional block, which is 0.4 % faster there; a shorter one is not;
- no eviction policy. `evict_first`, the textbook's hint for data that is read once, is 2 to 4 % slower here;
  `evict_last` measures up to 4 % faster, but what it gains is write-back put off, and a kernel followed by a reader of
  its result is none the faster;
- no tuning and no loop over rows: the number of warps follows from the length of a row, and programs that stay resident
  and fetch a row while they reduce another are 2 to 8 % slower than new ones. An autotuner's dispatch costs the host
  more than the launch itself.

Only a row longer than a tile takes anything from `v2_tiling`, its online algorithm, but *per lane*: each position of the tile carries
its own maximum and sum, and lanes are combined once after the loop. It costs one more exponential per element and no
reduction inside the loop. The first walk asks L2 to keep the row (`evict_last`), the second gives it up.

Blocks. A tile has 256 to 16384 elements, and a warp 512 of them until there are 16 warps; then threads take more, 32
values at the largest. Where the reduced dim is not the last, 16 neighbouring rows form a tile.

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
WARP_TILE = 512
MAX_WARPS = 16
WIDE_ROW = 4096


@triton.jit
def softmax_row_kernel(x_ptr, out_ptr, N, BLOCK_N: tl.constexpr):
    row_offset = tl.program_id(0).to(tl.int64) * N
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row_offset + cols, mask=mask, other=float("-inf")).to(out_ptr.dtype.element_ty).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row_offset + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


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
        x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf"), eviction_policy="evict_last")
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
        x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf"), eviction_policy="evict_first")
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
        num_warps = min(max(tile // WARP_TILE, 1), MAX_WARPS)
        if stride_n == 1 and BLOCK_N > WIDE_ROW:
            softmax_row_kernel[grid](x, out, N, BLOCK_N, num_warps=num_warps)
        else:
            softmax_kernel[grid](x, out, n_rows, N, stride_n, BLOCK_M, BLOCK_N, num_warps=num_warps)
    else:
        BLOCK_N = LONG_ROW_TILE // BLOCK_M
        softmax_long_row_kernel[grid](x, out, n_rows, N, stride_n, BLOCK_M, BLOCK_N, num_warps=8)
    return out
