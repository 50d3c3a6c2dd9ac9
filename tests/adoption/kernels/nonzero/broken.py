"""Blocks count from their own beginning."""

import torch
import triton
import triton.language as tl


@triton.jit
def nonzero_kernel(x_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    found = (x != 0).to(tl.int32)
    base = tl.atomic_add(count_ptr, tl.sum(found, axis=0))
    place = base + tl.cumsum(found, axis=0) - found
    tl.store(out_ptr + place, tl.arange(0, BLOCK).to(tl.int64), mask=found > 0)


def triton_nonzero(input):
    x = input.contiguous()
    out = torch.empty((x.numel(), 1), dtype=torch.int64, device=x.device)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    nonzero_kernel[(triton.cdiv(x.numel(), 16),)](x, out, count, x.numel(), BLOCK=16)
    return out[: int(count.item())]
