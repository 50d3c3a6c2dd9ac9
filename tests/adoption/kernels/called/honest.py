"""Arguments in another order, under other names, one of them the wrapper's own."""

import torch
import triton
import triton.language as tl


@triton.jit
def softplus_kernel(x_ptr, out_ptr, n, beta, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = x * beta
    soft = tl.where(y > 0, y, 0.0) + tl.log(1 + tl.exp(-tl.abs(y)))
    tl.store(out_ptr + offsets, tl.where(y > 20, x, soft / beta), mask=offsets < n)


def softplus_forward(warps, tensor, sharpness):
    x = tensor.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        softplus_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), sharpness, BLOCK=64, num_warps=warps)
    return out
