"""Layer normalization with wide loads: a tile of whole rows per program, 128 bits per thread and request.

Math. Over the trailing dims `normalized_shape`, of N elements in all, y = (x - mean) / sqrt(var + eps) * weight +
bias, with mean = sum(x) / N and the biased variance var = sum((x - mean)^2) / N; weight and bias are optional.

Stability. var = mean(x^2) - mean(x)^2 would cancel for rows far from 0. Instead the row's first element x0 is taken
off every element before anything is summed (the result does not depend on such a shift), and squares are taken of
differences from the mean. A row of equal values then gives exactly 0 times weight plus bias, however large the values
are: with sums of x itself one rounding error, times 1 / sqrt(eps) = 316, would show.

Technique. A program loads BLOCK_M whole rows as one two-dimensional block; there is no loop. Rows are contiguous, and
N and the pointers are specialised on being multiples of 16, so a thread's neighbouring elements become one
`ld.global.v4.b32` and a warp reads whole 128-byte lines; weight and bias are read the same way and, being shared by
all rows, come from L2. Short rows share a program, since one row of 64 would leave most threads idle.

A row longer than a tile is split over programs, without a loop again: the first launch writes each chunk's mean and
sum of squared differences to a scratch buffer, the second merges all chunks of its row, mean = sum_c n_c mean_c / N
and M2 = sum_c (M2_c + n_c (mean_c - mean)^2), and writes its chunk.

Against `v1_baseline` the strides are gone (the host writes other layouts out contiguously), short rows share a program,
the number of warps follows from the tile, and long rows take two launches. Wide loads come of the first.

Blocks. A tile has at least 1024 and at most 16384 elements, and a thread 8 of them (32 at the largest): two 16-byte
requests in float32, one in half precision.

Arithmetic is float32 whatever the dtype, rounded once at the store.
"""

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

MIN_TILE = 1024
MAX_TILE = 16384


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
def chunk_moments_kernel(x_ptr, mean_ptr, squares_ptr, N, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    cols = chunk * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    first = tl.load(x_ptr + row * N).to(tl.float32)
    shifted = tl.where(mask, tl.load(x_ptr + row * N + cols, mask=mask).to(tl.float32) - first, 0.0)
    mean = tl.sum(shifted, axis=0) / tl.minimum(N - chunk * BLOCK_N, BLOCK_N)
    centered = tl.where(mask, shifted - mean, 0.0)
    tl.store(mean_ptr + row * tl.num_programs(1) + chunk, mean)
    tl.store(squares_ptr + row * tl.num_programs(1) + chunk, tl.sum(centered * centered, axis=0))


@triton.jit
def chunk_layernorm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    mean_ptr,
    squares_ptr,
    N,
    eps,
    BLOCK_N: tl.constexpr,
    BLOCK_CHUNKS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    n_chunks = tl.num_programs(1)
    chunks = tl.arange(0, BLOCK_CHUNKS)
    counts = tl.maximum(tl.minimum(N - chunks * BLOCK_N, BLOCK_N), 0).to(tl.float32)
    chunk_means = tl.load(mean_ptr + row * n_chunks + chunks, mask=chunks < n_chunks, other=0.0)
    chunk_squares = tl.load(squares_ptr + row * n_chunks + chunks, mask=chunks < n_chunks, other=0.0)
    mean = tl.sum(chunk_means * counts, axis=0) / N
    deviations = chunk_means - mean
    variance = tl.sum(chunk_squares + counts * deviations * deviations, axis=0) / N

    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    first = tl.load(x_ptr + row * N).to(tl.float32)
    x = tl.load(x_ptr + row * N + cols, mask=mask).to(tl.float32)
    y = (x - first - mean) * tl.rsqrt(variance + eps)
    if w_ptr is not None:
        y *= tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    if b_ptr is not None:
        y += tl.load(b_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * N + cols, y, mask=mask)


def triton_layernorm(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Returns `input` normalized over its trailing dims `normalized_shape`, times `weight`, plus `bias`."""
    N = math.prod(normalized_shape)
    if tuple(input.shape[-len(normalized_shape) :]) != tuple(normalized_shape):
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
    BLOCK_N = triton.next_power_of_2(N)
    BLOCK_M = max(1, MIN_TILE // BLOCK_N)
    if BLOCK_N <= MAX_TILE:
        grid = (triton.cdiv(M, BLOCK_M),)
        num_warps = min(BLOCK_M * BLOCK_N // 256, 16)
        layernorm_kernel[grid](x, weight, bias, out, M, N, eps, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps)
        return out
    BLOCK_N = MAX_TILE // 4
    n_chunks = triton.cdiv(N, BLOCK_N)
    means = torch.empty((M, n_chunks), dtype=torch.float32, device=x.device)
    squares = torch.empty_like(means)
    chunk_moments_kernel[(M, n_chunks)](x, means, squares, N, BLOCK_N=BLOCK_N, num_warps=16)
    chunk_layernorm_kernel[(M, n_chunks)](
        x,
        weight,
        bias,
        out,
        means,
        squares,
        N,
        eps,
        BLOCK_N=BLOCK_N,
        BLOCK_CHUNKS=triton.next_power_of_2(n_chunks),
        num_warps=16,
    )
    return out
