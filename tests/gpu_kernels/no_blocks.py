"""Launches no block: nothing runs, and nothing is written."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(o):
    tl.store(o, 1.0)


def triton_add(input, other, *, alpha=1):
    out = torch.empty_like(input)
    kernel[(0,)](out)
    return out
