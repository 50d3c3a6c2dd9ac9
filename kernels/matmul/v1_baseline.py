"""Matrix product, direct translation.

    out[m, n] = sum over k of input[m, k] * other[k, n]

The textbook triple loop. The grid takes the loops over m and n, the kernel keeps the loop over k: one program makes
BLOCK_N neighbouring elements of one row of the result. In each step it reads BLOCK_K elements of row m of `input`,
which all threads share, and a BLOCK_K x BLOCK_N piece of `other`, and adds the products to a float32 accumulator.

Why these blocks: BLOCK_N = 128 because 4 warps have 128 threads, so each thread owns exactly one element of the result
and its sum over k needs no other thread. BLOCK_K = 16 lets 16 loads of a thread be under way at once.

The outer strides are declared `do_not_specialize`: one compiled kernel serves every distance between rows. The price is
that the compiler cannot prove where a row starts, so that each thread loads one element with each instruction, as a
direct translation to CUDA would.

What it costs: every element loaded is used for a single multiply-add. Row m + 1 reads all of `other` again, so an
n x n product moves about n^3 elements through the caches for 2 n^3 operations, and tensor cores stay idle. `v2_tiling`
removes the rereading and uses the tensor cores, `v3_coalesced` makes each load instruction move more. `v4_optimized` is
another program altogether.
"""

import math

import torch
import triton
import triton.language as tl

BLOCK_N, BLOCK_K = 128, 16
OUTER_STRIDES = ["stride_ab", "stride_am", "stride_bb", "stride_bk", "stride_ob", "stride_om"]


@triton.jit(do_not_specialize=OUTER_STRIDES)
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
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # Program order: column strip fastest, then row, then matrix of the batch.
    pid = tl.program_id(0)
    strips = tl.cdiv(N, BLOCK_N)
    batch = (pid // (strips * M)).to(tl.int64)
    row = (pid // strips % M).to(tl.int64)
    start_n = (pid % strips).to(tl.int64) * BLOCK_N

    offs_n = tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_n = start_n + offs_n < N
    offs_a = offs_k * stride_ak
    offs_b = offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    a_ptr += batch * stride_ab + row * stride_am
    b_ptr += batch * stride_bb + start_n * stride_bn

    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k < K - k
        a = tl.load(a_ptr + offs_a, mask=mask_k, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + offs_b, mask=mask_k[:, None] & mask_n[None, :], other=0.0).to(tl.float32)
        acc += tl.sum(a[:, None] * b, axis=0)
        a_ptr += BLOCK_K * stride_ak
        b_ptr += BLOCK_K * stride_bk

    out_ptrs = out_ptr + batch * stride_ob + row * stride_om + start_n * stride_on + offs_n * stride_on
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask_n)


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
    matmul_kernel[(batch * M * triton.cdiv(N, BLOCK_N),)](
        a,
        b,
        out,
        M,
        N,
        K,
        *a.stride(),
        *b.stride(),
        *out.stride(),
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        num_warps=4,
        num_stages=1,
    )
    return out.view(*lead, M, N)
