"""Layer normalization by tiles: one row per program, mean and variance merged tile by tile.

Math. Over the trailing dims `normalized_shape`, of N elements in all, y = (x - mean) / sqrt(var + eps) * weight +
bias, with mean = sum(x) / N and the biased variance var = sum((x - mean)^2) / N; weight and bias are optional.

Stability. var = mean(x^2) - mean(x)^2 would cancel for rows far from 0. Instead the row's first element x0 is taken
off every element before anything is summed (the result does not depend on such a shift), and squares are taken of
differences from the mean. A row of equal values then gives exactly 0 times weight plus bias, however large the values
are: with sums of x itself one rounding error, times 1 / sqrt(eps) = 316, would show.

Technique. A row is walked in tiles, so a row of any length fits, and mean and variance come from *one* walk by the
pairwise update of Chan, Golub and LeVeque (1979): with (n, mean, M2) of what was seen and (k, tile_mean, tile_M2) of
the next tile, M2 being the sum of squared differences from the mean,

    delta = tile_mean - mean,   mean += delta * k / (n + k),   M2 += tile_M2 + delta^2 * n * k / (n + k).

Nothing large is ever subtracted from something large. A second walk writes the result; its reads mostly hit L2. Loads
are as narrow as in `v1_baseline`, since nothing is promised about the strides.

Against `v1_baseline` three things change: the row is walked in tiles, mean and variance are merged in one walk, and a
program has 4 warps and not 8. `v1_baseline` reads a row of up to 16384 elements once, a longer one three times; this
kernel reads both twice.

Blocks. BLOCK_N = 1024 at 4 warps: 8 values per thread, eight independent loads in flight and few registers, so that
many programs share a multiprocessor.

Arithmetic is float32 whatever the dtype, rounded once at the store.
"""

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


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
    first = tl.load(x_ptr + row * stride_xm).to(tl.float32)

    mean = tl.full((), 0.0, tl.float32)
    squares = tl.full((), 0.0, tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        count = tl.minimum(N - start, BLOCK_N).to(tl.float32)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N).to(tl.float32)
        shifted = tl.where(cols < N, x - first, 0.0)
        tile_mean = tl.sum(shifted, axis=0) / count
        centered = tl.where(cols < N, shifted - tile_mean, 0.0)
        delta = tile_mean - mean
        share = count / (start + count)
        mean += delta * share
        squares += tl.sum(centered * centered, axis=0) + delta * delta * start * share
    rstd = tl.rsqrt(squares / N + eps)

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
    layernorm_kernel[(out.numel() // N,)](x, w, b, y, N, eps, *strides, BLOCK_N=BLOCK_N, num_warps=4)
    return out
