"""Writes a float between two floats."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(o):
    tl.store((o.to(tl.int64) + 2).to(tl.pointer_type(tl.float32)), 1.0)


def triton_add(input, other, *, alpha=1):
    out = torch.empty_like(input)
    kernel[(1,)](out)
    return out
