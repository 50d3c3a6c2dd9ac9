"""A loss whose targets may be zero, where zero times its logarithm is zero."""

import torch
import triton
import triton.language as tl


@triton.jit
def kl_div_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.load(y_ptr + offsets, mask=offsets < n)
    term = tl.where(y == 0, 0.0, y * tl.log(y))
    tl.store(out_ptr + offsets, term - y * x, mask=offsets < n)


def triton_kl_div(input, target, reduction="mean"):
    assert reduction == "none"
    x, y = input.contiguous(), target.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        kl_div_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out
