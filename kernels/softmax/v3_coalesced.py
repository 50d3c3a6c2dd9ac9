"""Softmax with wide loads: a tile of whole rows per program, 128 bits per thread and request.

Math. Along one dim, softmax(x)[i] = exp(x[i] - m) / sum_j exp(x[j] - m), m = max_j x[j]. Subtracting the maximum
changes nothing in exact arithmetic and keeps every exponent at or below 0, so that nothing overflows. A row that
holds NaN or +inf, or only -inf, becomes NaN throughout, as in torch: inf - inf is NaN, and it reaches the sum.

Technique. A program loads BLOCK_M whole rows as one two-dimensional block; there is no loop. Unlike `v1_baseline` the
compiler is told everything: a column stride of 1 is compiled in, N and the pointers are specialised on being
multiples of 16. So a thread's neighbouring elements become one `ld.global.v4.b32`, and a warp reads whole 128-byte
lines. Short rows share a program, since one row of 64 would leave most threads idle. If the reduced dim is not the
last, neighbouring *rows* are neighbours in memory; 16 of them form a tile, and where inner is a multiple of 16 the
compiler lays the threads along them.

A row longer than a tile is split over programs, without a loop again: the first launch writes each chunk's maximum
and its sum of exponentials to a scratch buffer, the second combines all partials of its row (s = sum_c s_c exp(m_c -
m)) and writes its chunk. A chunk of nothing but -inf contributes s_c = 0, not NaN.

Against `v1_baseline` the stride is specialised, short rows share a program, the number of warps follows from the tile,
and long rows take two launches. Wide loads are one of these four.

Blocks. A tile has at least 1024 and at most 16384 elements, and a thread 8 of them (32 at the largest): two 16-byte
requests in float32, one in half precision.

Layout. The input is seen as [outer, N, inner], contiguous, where N is the reduced dim: a row starts at (r // inner) *
N * inner + r % inner, and its elements lie stride_n = inner apart. With inner = 1 that is the last dim. Arithmetic is
float32 whatever the dtype, rounded once at the store.
"""

import math

import torch
import triton
import triton.language as tl

MIN_TILE = 1024
MAX_TILE = 16384


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
def chunk_partials_kernel(
    x_ptr, out_ptr, max_ptr, sum_ptr, n_rows, N, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < N)
    row_offsets = rows // stride_n * N * stride_n + rows % stride_n
    offsets = row_offsets[:, None] + cols[None, :].to(tl.int64) * stride_n
    x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf")).to(out_ptr.dtype.element_ty).to(tl.float32)
    chunk_max = tl.max(x, axis=1)
    shift = tl.where(chunk_max == float("-inf"), 0.0, chunk_max)
    chunk_sum = tl.sum(tl.exp(x - shift[:, None]), axis=1)
    partial_offsets = rows * tl.num_programs(1) + tl.program_id(1)
    tl.store(max_ptr + partial_offsets, chunk_max, mask=rows < n_rows)
    tl.store(sum_ptr + partial_offsets, chunk_sum, mask=rows < n_rows)


@triton.jit
def chunk_softmax_kernel(
    x_ptr,
    out_ptr,
    max_ptr,
    sum_ptr,
    n_rows,
    N,
    stride_n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_CHUNKS: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n_chunks = tl.num_programs(1)
    chunks = tl.arange(0, BLOCK_CHUNKS)
    partial_mask = (rows[:, None] < n_rows) & (chunks[None, :] < n_chunks)
    partial_offsets = rows[:, None] * n_chunks + chunks[None, :]
    chunk_max = tl.load(max_ptr + partial_offsets, mask=partial_mask, other=float("-inf"))
    chunk_sum = tl.load(sum_ptr + partial_offsets, mask=partial_mask, other=0.0)
    row_max = tl.max(chunk_max, axis=1, keep_dims=True)
    shift = tl.where(row_max == float("-inf"), 0.0, row_max)
    row_sum = tl.sum(chunk_sum * tl.exp(chunk_max - shift), axis=1, keep_dims=True)

    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < N)
    row_offsets = rows // stride_n * N * stride_n + rows % stride_n
    offsets = row_offsets[:, None] + cols[None, :].to(tl.int64) * stride_n
    x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf")).to(out_ptr.dtype.element_ty).to(tl.float32)
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
    BLOCK_N = triton.next_power_of_2(N)
    BLOCK_M = max(1 if stride_n == 1 else 16, MIN_TILE // BLOCK_N)
    if BLOCK_M * BLOCK_N <= MAX_TILE:
        grid = (triton.cdiv(n_rows, BLOCK_M),)
        num_warps = min(BLOCK_M * BLOCK_N // 256, 16)
        softmax_kernel[grid](x, out, n_rows, N, stride_n, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps)
        return out
    BLOCK_N = MAX_TILE // 4 // BLOCK_M
    n_chunks = triton.cdiv(N, BLOCK_N)
    grid = (triton.cdiv(n_rows, BLOCK_M), n_chunks)
    chunk_max = torch.empty((n_rows, n_chunks), dtype=torch.float32, device=x.device)
    chunk_sum = torch.empty_like(chunk_max)
    rows = (x, out, chunk_max, chunk_sum, n_rows, N, stride_n, BLOCK_M, BLOCK_N)
    chunk_partials_kernel[grid](*rows, num_warps=16)
    chunk_softmax_kernel[grid](*rows, BLOCK_CHUNKS=triton.next_power_of_2(n_chunks), num_warps=16)
    return out
