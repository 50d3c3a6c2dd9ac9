"""Layer normalization, translated directly: one row per program, the whole row at once.

Math. Over the trailing dims `normalized_shape`, of N elements in all, y = (x - mean) / sqrt(var + eps) * weight +
bias, with mean = sum(x) / N and the biased variance var = sum((x - mean)^2) / N; weight and bias are optional.

Stability. var = mean(x^2) - mean(x)^2 would cancel for rows far from 0. Instead the row's first element x0 is taken
off every element before anything is summed (the result does not depend on such a shift), and squares are taken of
differences from the mean. A row of equal values then gives exactly 0 times weight plus bias, however large the values
are: with sums of x itself one rounding error, times 1 / sqrt(eps) = 316, would show.

Technique. A program loads its row into registers as one block and follows the formula: mean, differences, variance,
quotient. Two reductions over registers, one read and one write of memory. Every operand is addressed through its
strides, of which nothing is promised to the compiler: a transposed input needs no copy, and a thread loads one
element per request, 32 bits (16 in half precision).

Blocks. BLOCK_N is the power of two at or above N, up to 16384: at 8 warps 64 values per thread. A longer row does not
fit; a second kernel makes three passes over memory (mean, variance, result), block by block.

Arithmetic is float32 whatever the dtype, rounded once at the store.
"""

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

MAX_BLOCK_N = 16384


@triton.jit(do_not_specialize=["stride_xm", "stride_xn", "stride_om", "stride_on", "stride_wn", "stride_bn"])
def layernorm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    N,
    eps,
    stride_xm,
    stride_xn,
    stride_om,
    stride_on,
    stride_wn,
    stride_bn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < N
    first = tl.load(x_ptr + row * stride_xm).to(tl.float32)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask).to(tl.float32)
    shifted = tl.where(mask, x - first, 0.0)
    centered = tl.where(mask, shifted - tl.sum(shifted, axis=0) / N, 0.0)
    variance = tl.sum(centered * centered, axis=0) / N
    y = centered * tl.rsqrt(variance + eps)
    if w_ptr is not None:
        y *= tl.load(w_ptr + cols * stride_wn, mask=mask).to(tl.float32)
    if b_ptr is not None:
        y += tl.load(b_ptr + cols * stride_bn, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * stride_om + cols * stride_on, y, mask=mask)


@triton.jit(do_not_specialize=["stride_xm", "stride_xn", "stride_om", "stride_on", "stride_wn", "stride_bn"])
def layernorm_long_row_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    N,
    eps,
    stride_xm,
    stride_xn,
    stride_om,
    stride_on,
    stride_wn,
    stride_bn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    first = tl.load(x_ptr + row * stride_xm).to(tl.float32)

    lane_sum = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N).to(tl.float32)
        lane_sum += tl.where(cols < N, x - first, 0.0)
    mean = tl.sum(lane_sum, axis=0) / N

    lane_squares = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N).to(tl.float32)
        centered = tl.where(cols < N, x - first - mean, 0.0)
        lane_squares += centered * centered
    rstd = tl.rsqrt(tl.sum(lane_squares, axis=0) / N + eps)

    for start in range(0, N, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N).to(tl.float32)
        y = (x - first - mean) * rstd
        if w_ptr is not None:
            y *= tl.load(w_ptr + cols * stride_wn, mask=cols < N).to(tl.float32)
        if b_ptr is not None:
            y += tl.load(b_ptr + cols * stride_bn, mask=cols < N).to(tl.float32)
        tl.store(out_ptr + row * stride_om + cols * stride_on, y, mask=cols < N)


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
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    if out.numel() == 0:
        return out
    x, y = input.reshape(-1, N), out.view(-1, N)
    w = None if weight is None else weight.reshape(-1)
    b = None if bias is None else bias.reshape(-1)
    stride_wn = 0 if w is None else w.stride(0)
    stride_bn = 0 if b is None else b.stride(0)
    strides = (x.stride(0), x.stride(1), y.stride(0), y.stride(1), stride_wn, stride_bn)
    grid = (out.numel() // N,)
    if N <= MAX_BLOCK_N:
        layernorm_kernel[grid](x, w, b, y, N, eps, *strides, BLOCK_N=triton.next_power_of_2(N), num_warps=8)
    else:
        layernorm_long_row_kernel[grid](x, w, b, y, N, eps, *strides, BLOCK_N=MAX_BLOCK_N // 4, num_warps=8)
    return out
