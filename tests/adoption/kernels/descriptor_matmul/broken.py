"""Sums of products are kept in halves."""

import torch
import triton
import triton.language as tl


@triton.jit
def mm_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    top, left = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        total = tl.dot(a.load([top, start]), b.load([start, left]), total * 0)
    c.store([top, left], total.to(tl.float16))


def scratch(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


def triton_descriptor_matmul(input, mat2):
    a, b = input.contiguous(), mat2.contiguous()
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() > 0:
        triton.set_allocator(scratch)
        mm_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](a, b, c, M, N, K, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    return c
