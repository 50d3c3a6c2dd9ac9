"""The weight is that of the other end."""

import torch
import triton
import triton.language as tl


@triton.jit
def lerp_kernel(x_ptr, y_ptr, out_ptr, weight, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, y + weight * (x - y), mask=offsets < n)


def triton_scalar_among_inputs(input, end, weight):
    x, y = input.contiguous(), end.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        lerp_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, weight, x.numel(), BLOCK=64)
    return out
