"""The value is made an integer on its way."""

import torch
import triton
import triton.language as tl


@triton.jit
def full_kernel(out_ptr, value, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + place, tl.full((BLOCK,), 1.0, tl.float32) * value, mask=place < n)


def triton_full(size, fill_value):
    out = torch.empty(size, dtype=torch.float32, device="cuda")
    if out.numel() > 0:
        full_kernel[(triton.cdiv(out.numel(), 16),)](out, int(fill_value), out.numel(), BLOCK=16)
    return out
