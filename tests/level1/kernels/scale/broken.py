"""The number is made an integer on its way."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, N, stride_m, stride_n, factor, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * stride_m + n * stride_n, mask=n < N)
    tl.store(out_ptr + row * N + n, x * factor, mask=n < N)


def triton_scale(input, other):
    M, N = input.shape
    out = torch.empty((M, N), dtype=input.dtype, device=input.device)
    if out.numel() > 0:
        scale_kernel[(M, triton.cdiv(N, 16))](input, out, N, *input.stride(), int(other), BLOCK_N=16)
    return out
