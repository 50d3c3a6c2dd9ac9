"""Never ends."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(o):
    while tl.program_id(0) < 1:
        tl.store(o, tl.load(o) + 1.0)


def triton_add(input, other, *, alpha=1):
    out = torch.empty_like(input)
    kernel[(1,)](out)
    return out
