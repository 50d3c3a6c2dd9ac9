"""A grid of three dims, the batch the last, with whatever strides the batches have."""

import torch
import triton
import triton.language as tl


@triton.jit
def bmm_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    batch = tl.program_id(2)
    m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    n = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_at = a_ptr + batch * stride_ab + m * stride_am + k[None, :] * stride_ak
        b_at = b_ptr + batch * stride_bb + k[:, None] * stride_bk + n * stride_bn
        a = tl.load(a_at, mask=(m < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_at, mask=(k[:, None] < K) & (n < N), other=0.0)
        total += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + batch * M * N + m * N + n, total, mask=(m < M) & (n < N))


def triton_bmm(input, mat2):
    B, M, K = input.shape
    N = mat2.shape[2]
    out = torch.empty((B, M, N), dtype=input.dtype, device=input.device)
    if out.numel() > 0:
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16), B)
        bmm_kernel[grid](input, mat2, out, M, N, K, *input.stride(), *mat2.stride(), BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    return out
