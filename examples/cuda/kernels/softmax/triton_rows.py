"""Softmax in Triton, forward and backward: one program a row, which it holds as one block.

Math. Along one dim, softmax(x)[i] = exp(x[i] - m) / sum_j exp(x[j] - m), m = max_j x[j]. With dy flowing in, dx = y * (dy - sum(dy * y)), where y is the softmax.

Technique. A program loads its row, and the three steps of the formula are three lines. Rows lie `inner` apart element by element, as in `cuda_plain`.
Longer rows than MAX_BLOCK_N are gone through in three passes.
"""

import math

import torch
import triton
import triton.language as tl

MAX_BLOCK_N = 16384


@triton.jit(do_not_specialize=["inner"])
def softmax_rows(x_ptr, out_ptr, N, inner, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = row // inner * N * inner + row % inner
    largest = tl.full((BLOCK_N,), float("-inf"), tl.float32)
    for first in range(0, N, BLOCK_N):
        cols = first + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + start + cols.to(tl.int64) * inner, mask=cols < N, other=float("-inf"))
        largest = tl.maximum(largest, x.to(out_ptr.dtype.element_ty).to(tl.float32))
    m = tl.max(largest, axis=0)

    total = tl.zeros((BLOCK_N,), tl.float32)
    for first in range(0, N, BLOCK_N):
        cols = first + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + start + cols.to(tl.int64) * inner, mask=cols < N, other=float("-inf"))
        total += tl.exp(x.to(out_ptr.dtype.element_ty).to(tl.float32) - m)
    s = tl.sum(total, axis=0)

    for first in range(0, N, BLOCK_N):
        cols = first + tl.arange(0, BLOCK_N)
        offsets = start + cols.to(tl.int64) * inner
        x = tl.load(x_ptr + offsets, mask=cols < N, other=float("-inf"))
        tl.store(out_ptr + offsets, tl.exp(x.to(out_ptr.dtype.element_ty).to(tl.float32) - m) / s, mask=cols < N)


@triton.jit(do_not_specialize=["inner"])
def softmax_backward_rows(dy_ptr, y_ptr, dx_ptr, N, inner, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = row // inner * N * inner + row % inner
    dots = tl.zeros((BLOCK_N,), tl.float32)
    for first in range(0, N, BLOCK_N):
        cols = first + tl.arange(0, BLOCK_N)
        offsets = start + cols.to(tl.int64) * inner
        dy = tl.load(dy_ptr + offsets, mask=cols < N, other=0.0).to(tl.float32)
        dots += dy * tl.load(y_ptr + offsets, mask=cols < N, other=0.0).to(tl.float32)
    dot = tl.sum(dots, axis=0)

    for first in range(0, N, BLOCK_N):
        cols = first + tl.arange(0, BLOCK_N)
        offsets = start + cols.to(tl.int64) * inner
        dy = tl.load(dy_ptr + offsets, mask=cols < N, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + offsets, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(dx_ptr + offsets, y * (dy - dot), mask=cols < N)


def triton_softmax(input: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the softmax of `input` along `dim`; with `dtype` the input is rounded to that dtype first."""
    shape = input.shape or (1,)
    N, inner = shape[dim], math.prod(shape[dim % len(shape) + 1 :])
    x = input.contiguous()
    out = torch.empty_like(x, dtype=dtype)
    if out.numel() > 0:
        block = min(triton.next_power_of_2(N), MAX_BLOCK_N)
        softmax_rows[(out.numel() // N,)](x, out, N, inner, BLOCK_N=block, num_warps=8)
    return out


class TritonSoftmax:
    """Softmax along a dim, for autograd or by hand: `backward` takes what `forward` returned."""

    def forward(self, input: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the softmax of `input` along `dim`."""
        return triton_softmax(input, dim)

    def backward(self, grad: torch.Tensor, output: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the gradient of the input, where `grad` is that of the output."""
        shape = output.shape or (1,)
        N, inner = shape[dim], math.prod(shape[dim % len(shape) + 1 :])
        dy, y = grad.contiguous(), output.contiguous()
        dx = torch.empty_like(y)
        if dx.numel() > 0:
            block = min(triton.next_power_of_2(N), MAX_BLOCK_N)
            softmax_backward_rows[(dx.numel() // N,)](dy, y, dx, N, inner, BLOCK_N=block, num_warps=8)
        return dx


def get_triton_softmax() -> TritonSoftmax:
    """Returns the operator."""
    return TritonSoftmax()
