"""Reads a bias whether there is one or not."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, out_ptr, M, N, K, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    m = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    n = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n * K + k[:, None], mask=(n < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(x, w, total, input_precision="ieee")
    if HAS_BIAS:
        total += tl.load(b_ptr + n, mask=n < N, other=0.0)
    tl.store(out_ptr + m * N + n, total, mask=(m < M) & (n < N))


def triton_optional_bias(input, weight, bias=None):
    x, w = input.contiguous(), weight.contiguous()
    bias = bias.contiguous()
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        linear_kernel[grid](x, w, bias, out, M, N, K, HAS_BIAS=bias is not None, BLOCK=16)
    return out
