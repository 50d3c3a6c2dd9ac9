"""Matrix product with coalesced wide loads, rows in the fastest program order.

    out[m, n] = sum over k of input[m, k] * other[k, n]

The work is divided as in `v1_baseline`, a strip of one row of the result per program, but memory is read the way the
hardware likes it. A load instruction of a warp is fastest when its 32 threads read one contiguous stretch and each
thread reads 16 bytes of it: 512 bytes in 4 full cache lines, with a quarter of the instructions for the same data.

Why these blocks: BLOCK_N = 128 threads x 16 bytes, so 512 columns in float32 and 1024 in the 16-bit types, and each
thread owns 4 or 8 neighbouring columns that it loads and stores with one instruction. BLOCK_K = 16 rows of `other` are
loaded at a time: their 16-byte loads are independent, so several are in flight at once, and their products are summed
before they reach the accumulator, which also shortens the chain of roundings from K to K / 16.

The compiler takes 16-byte loads only where it can prove alignment. Triton specialises a kernel on strides that are 1
or multiples of 16, from which the proof follows; other layouts compile to narrower loads and stay correct.

Against `v1_baseline` three things change, so a ratio of their times is not what wide loads alone bring:
- specialised strides: the outer ones are no longer `do_not_specialize`, which is what lets the compiler widen a load;
- wider strips: a program makes 512 or 1024 columns and not 128, so there are fewer programs and an element of `input`
  that is loaded serves 4 or 8 times as many columns;
- program order: rows are fastest and not columns, so programs that run together read the same strip of `other`.

There are no tiles of rows and no tensor cores: neither comes from `v2_tiling`.
"""

import math

import torch
import triton
import triton.language as tl

NUM_WARPS = 4
BYTES_PER_THREAD = 16
BLOCK_K = 16


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
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # Program order: row fastest, so that programs that run together share a strip of `other` in the caches.
    pid = tl.program_id(0)
    strips = tl.cdiv(N, BLOCK_N)
    batch = (pid // (strips * M)).to(tl.int64)
    start_n = (pid // M % strips).to(tl.int64) * BLOCK_N
    row = (pid % M).to(tl.int64)

    offs_n = tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_n = start_n + offs_n < N
    a_ptrs = a_ptr + batch * stride_ab + row * stride_am + offs_k * stride_ak
    b_ptrs = b_ptr + batch * stride_bb + start_n * stride_bn + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn

    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k < K - k
        a = tl.load(a_ptrs, mask=mask_k, other=0.0).to(tl.float32)
        b = tl.load(b_ptrs, mask=mask_k[:, None] & mask_n[None, :], other=0.0).to(tl.float32)
        acc += tl.sum(a[:, None] * b, axis=0)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

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
    BLOCK_N = 32 * NUM_WARPS * BYTES_PER_THREAD // out.element_size()
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
        num_warps=NUM_WARPS,
        num_stages=1,
    )
    return out.view(*lead, M, N)
