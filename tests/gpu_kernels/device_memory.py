"""Asks for more memory than a device has."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(o):
    tl.store(o, 1.0)


def triton_add(input, other, *, alpha=1):
    out = torch.empty_like(input)
    torch.empty(1 << 42, dtype=torch.uint8, device=input.device)
    kernel[(1,)](out)
    return out
