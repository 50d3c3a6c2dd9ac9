"""A product of two matrices, forward and backward, as an autograd function: three times the same kernel.

Math. C = A B. With dC flowing in, dA = dC B^T and dB = A^T dC.

Technique. A program has a tile of the result and walks over the inner dim. The kernel takes the strides of both factors, so that a transposed matrix is
one with its strides exchanged, and nothing is copied. `tf32x3` has float32 products exact to float32; sums are float32, rounded once at the store.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 64
BLOCK_K = 32


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = (tl.program_id(0) // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K).to(tl.int64)
        mask_a = (rows[:, None] < M) & (inner[None, :] < K)
        mask_b = (inner[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak, mask=mask_a, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * stride_bk + cols[None, :] * stride_bn, mask=mask_b, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the product of two matrices of any strides, contiguous."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel():
        grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
        product_kernel[grid](
            a, b, c, M, N, K, *a.stride(), *b.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
        )
    return c


class Matmul(torch.autograd.Function):
    """The product of two matrices."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return product(a, b)

    @staticmethod
    def backward(ctx, dc):
        a, b = ctx.saved_tensors
        da = product(dc, b.t()) if ctx.needs_input_grad[0] else None
        db = product(a.t(), dc) if ctx.needs_input_grad[1] else None
        return da, db


def triton_matmul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns `input @ other`. Raises ValueError unless they are matrices that fit together."""
    if input.dim() != 2 or other.dim() != 2 or input.shape[1] != other.shape[0]:
        raise ValueError(f"need two matrices that fit together, not {tuple(input.shape)} and {tuple(other.shape)}")
    return Matmul.apply(input, other)
