"""The view is forgotten: int8 comes back where torch has bool."""

import torch
import triton
import triton.language as tl


@triton.jit
def isfinite_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, (tl.abs(x) < float("inf")).to(tl.int8), mask=mask)


def triton_isfinite(input):
    x = input.contiguous()
    out = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    if x.numel() > 0:
        isfinite_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
