"""Softmax, translated directly: one row per program, the whole row at once.

Math. Along one dim, softmax(x)[i] = exp(x[i] - m) / sum_j exp(x[j] - m), m = max_j x[j]. Subtracting the maximum
changes nothing in exact arithmetic and keeps every exponent at or below 0, so that nothing overflows. A row that
holds NaN or +inf, or only -inf, becomes NaN throughout, as in torch: inf - inf is NaN, and it reaches the sum.

Technique. A program loads its row into registers as one block, and the three steps of the formula (maximum, sum of
exponentials, quotient) are three lines. Memory is read once and written once, which is the minimum; eager torch reads
long rows more than once. The column stride is an ordinary argument of which nothing is promised to the compiler, so a
thread loads one element per request: neighbouring threads read neighbouring elements, but each asks for 32 bits (16
in half precision). `v3_coalesced` widens that.

Blocks. BLOCK_N is the power of two at or above N, up to 16384: at 8 warps that is 64 values per thread, what a
register file holds without spilling. A longer row does not fit; a second kernel makes the three passes over memory,
block by block.

Layout. The input is seen as [outer, N, inner], contiguous, where N is the reduced dim: a row starts at (r // inner) *
N * inner + r % inner, and its elements lie stride_n = inner apart. With inner = 1 that is the last dim. Arithmetic is
float32 whatever the dtype, rounded once at the store.
"""

import math

import torch
import triton
import triton.language as tl

MAX_BLOCK_N = 16384


@triton.jit(do_not_specialize=["stride_n"])
def softmax_kernel(x_ptr, out_ptr, N, stride_n, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    offsets = row // stride_n * N * stride_n + row % stride_n + cols.to(tl.int64) * stride_n
    x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf")).to(out_ptr.dtype.element_ty).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit(do_not_specialize=["stride_n"])
def softmax_long_row_kernel(x_ptr, out_ptr, N, stride_n, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    row_offset = row // stride_n * N * stride_n + row % stride_n

    lane_max = tl.full((BLOCK_N,), float("-inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        offsets = row_offset + cols.to(tl.int64) * stride_n
        x = tl.load(x_ptr + offsets, mask=cols < N, other=float("-inf")).to(out_ptr.dtype.element_ty).to(tl.float32)
        lane_max = tl.maximum(lane_max, x)
    row_max = tl.max(lane_max, axis=0)

    lane_sum = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        offsets = row_offset + cols.to(tl.int64) * stride_n
        x = tl.load(x_ptr + offsets, mask=cols < N, other=float("-inf")).to(out_ptr.dtype.element_ty).to(tl.float32)
        lane_sum += tl.exp(x - row_max)
    row_sum = tl.sum(lane_sum, axis=0)

    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        offsets = row_offset + cols.to(tl.int64) * stride_n
        x = tl.load(x_ptr + offsets, mask=cols < N, other=float("-inf")).to(out_ptr.dtype.element_ty).to(tl.float32)
        tl.store(out_ptr + offsets, tl.exp(x - row_max) / row_sum, mask=cols < N)


def triton_softmax(input: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the softmax of `input` along `dim`; with `dtype` the input is rounded to that dtype first."""
    shape = input.shape or (1,)
    N, stride_n = shape[dim], math.prod(shape[dim % len(shape) + 1 :])
    x = input.contiguous()
    out = torch.empty_like(x, dtype=dtype)
    if out.numel() == 0:
        return out
    n_rows = out.numel() // N
    if N <= MAX_BLOCK_N:
        softmax_kernel[(n_rows,)](x, out, N, stride_n, BLOCK_N=triton.next_power_of_2(N), num_warps=8)
    else:
        softmax_long_row_kernel[(n_rows,)](x, out, N, stride_n, BLOCK_N=MAX_BLOCK_N // 4, num_warps=8)
    return out
