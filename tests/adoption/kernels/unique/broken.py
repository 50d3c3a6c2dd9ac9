"""Padded lanes count as zeros that were seen."""

import torch
import triton
import triton.language as tl


@triton.jit
def mark_kernel(x_ptr, seen_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=13)
    tl.store(seen_ptr + x, tl.full((BLOCK,), 1, tl.int32))


@triton.jit
def collect_kernel(seen_ptr, out_ptr, count_ptr, TABLE: tl.constexpr):
    value = tl.arange(0, TABLE)
    seen = tl.load(seen_ptr + value)
    place = tl.cumsum(seen, axis=0) - seen
    tl.store(out_ptr + place, value.to(tl.int64), mask=seen > 0)
    tl.store(count_ptr, tl.sum(seen, axis=0))


def triton_unique(input, sorted=True):
    x = input.contiguous()
    seen = torch.zeros(16, dtype=torch.int32, device=x.device)
    out = torch.empty(16, dtype=torch.int64, device=x.device)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    mark_kernel[(triton.cdiv(x.numel(), 32),)](x, seen, x.numel(), BLOCK=32)
    collect_kernel[(1,)](seen, out, count, TABLE=16)
    return out[: int(count.item())]
