"""The bias is added once for every part of K."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    HAS_BIAS: tl.constexpr,
    PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    across = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * across
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        m = (tile // across * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
        n = (tile % across * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            x = tl.load(x_ptr + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
            w = tl.load(w_ptr + n * K + k[:, None], mask=(n < N) & (k[:, None] < K), other=0.0)
            total = tl.dot(x, w, total, input_precision="ieee")
            if HAS_BIAS:
                total += tl.load(b_ptr + n, mask=n < N, other=0.0)
        tl.store(out_ptr + m * N + n, total, mask=(m < M) & (n < N))


def triton_linear(input, weight, bias=None):
    x, w = input.contiguous(), weight.contiguous()
    bias = None if bias is None else bias.contiguous()
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        programs = min(4, triton.cdiv(M, 16) * triton.cdiv(N, 16))
        linear_kernel[(programs,)](
            x, w, bias, out, M, N, K, HAS_BIAS=bias is not None, PROGRAMS=programs, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16
        )
    return out
