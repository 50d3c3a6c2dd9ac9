"""A kernel that writes whole blocks."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, length, factor, BLOCK: tl.constexpr):
    """Scale one block."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < length
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor)


def triton_scale(input, other):
    x = input.contiguous()
    out = torch.empty_like(x)
    length = out.numel()
    if length > 0:
        scale_kernel[(triton.cdiv(length, 512),)](x, out, length, other, BLOCK=512)
    return out
