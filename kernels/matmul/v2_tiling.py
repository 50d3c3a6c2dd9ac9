"""Matrix product by tiles, on tensor cores.

    out[m, n] = sum over k of input[m, k] * other[k, n]

The product of two matrices is also a product of matrices of blocks. One program makes a BLOCK_M x BLOCK_N tile of the
result and walks along k in steps of BLOCK_K:

    acc += A[tile of rows, k : k + BLOCK_K] @ B[k : k + BLOCK_K, tile of columns]

Every element of A that is loaded now serves BLOCK_N columns and every element of B serves BLOCK_M rows, so an n x n
product reads 2 n^3 / 64 elements where the direct translation reads n^3, and the small product inside is `tl.dot`,
which runs on the tensor cores.

Why these blocks: 64 x 64 float32 accumulators are 32 registers a thread with 4 warps, which leaves room for several
programs on a multiprocessor to hide each other's latency. BLOCK_K = 32 is two tensor-core steps for 16-bit
and four for 32-bit elements between two barriers. One configuration, no pipelining, plain row-major program order.

Against `v1_baseline` three things change, so a ratio of their times is not what tiling alone brings:
- tiles: an element that is loaded serves 64 rows or columns and not one;
- tensor cores: `tl.dot` in place of multiply-adds, for float32 by three TF32 products;
- specialised strides: the outer ones are no longer `do_not_specialize`, so the compiler may prove alignment and take
  wide loads where it finds it.

Precision: a tensor core rounds float32 operands to TF32 (10 bits of mantissa), which is not float32 accuracy.
`tf32x3` splits each operand into a large and a small TF32 part and adds three products, large*large + large*small +
small*large, which recovers it. Accumulation is in float32 for every dtype.
"""

import math

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    stride_ob,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # Program order: tile of columns fastest, then tile of rows, then matrix of the batch.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    batch = (pid // (tiles_m * tiles_n)).to(tl.int64)
    start_m = (pid // tiles_n % tiles_m).to(tl.int64) * BLOCK_M
    start_n = (pid % tiles_n).to(tl.int64) * BLOCK_N

    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_m = start_m + offs_m < M
    mask_n = start_n + offs_n < N
    # The tile's corner in 64 bits, so that large tensors do not overflow; inside the tile 32 bits are enough.
    a_ptrs = a_ptr + batch * stride_ab + start_m * stride_am + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + batch * stride_bb + start_n * stride_bn + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k < K - k
        a = tl.load(a_ptrs, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask_k[:, None] & mask_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    out_ptrs = out_ptr + batch * stride_ob + start_m * stride_om + start_n * stride_on
    out_ptrs += offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


def triton_matmul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Multiply as torch.matmul does: `input` (..., M, K) by `other` (..., K, N), leading dims broadcast, or a 1-D side.

    float32, float16 and bfloat16, any sizes and strides. Raises TypeError or ValueError where torch.matmul refuses.
    """
    assert input.is_cuda and other.is_cuda
    if input.dtype != other.dtype or input.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"need float32, float16 or bfloat16 on both sides, got {input.dtype} and {other.dtype}")
    if input.dim() == 0 or other.dim() == 0 or input.shape[-1] != other.shape[max(other.dim() - 2, 0)]:
        raise ValueError(f"shapes {tuple(input.shape)} and {tuple(other.shape)} cannot be multiplied")
    if input.dim() == 1:
        return triton_matmul(input.unsqueeze(0), other).squeeze(-1 if other.dim() == 1 else -2)
    if other.dim() == 1:
        return triton_matmul(input, other.unsqueeze(1)).squeeze(-1)

    (M, K), N = input.shape[-2:], other.shape[-1]
    lead = input.shape[:-2]
    if lead != other.shape[:-2]:
        lead = torch.broadcast_shapes(lead, other.shape[:-2])
        input, other = input.expand(*lead, M, K), other.expand(*lead, K, N)
    batch = math.prod(lead)
    a, b = input.reshape(batch, M, K), other.reshape(batch, K, N)
    out = torch.empty((batch, M, N), dtype=input.dtype, device=input.device)
    if out.numel() == 0:
        return out.view(*lead, M, N)
    matmul_kernel[(batch * triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        a,
        b,
        out,
        M,
        N,
        K,
        *a.stride(),
        *b.stride(),
        *out.stride(),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        num_warps=4,
        num_stages=1,
    )
    return out.view(*lead, M, N)
