"""Writes far outside of everything."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(o):
    tl.store(o + tl.arange(0, 128) + 10**12, 1.0)


def triton_add(input, other, *, alpha=1):
    out = torch.empty_like(input)
    kernel[(1,)](out)
    return out
