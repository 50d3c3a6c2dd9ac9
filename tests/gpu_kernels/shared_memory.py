"""Needs more shared memory than a device has."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, o, steps, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(steps):
        block = x + step * BLOCK * BLOCK + rows * BLOCK + columns
        total = tl.dot(tl.load(block), tl.load(block + BLOCK), total)
    tl.store(o + rows * BLOCK + columns, total)


def triton_add(input, other, *, alpha=1):
    out = torch.empty_like(input)
    kernel[(1,)](input, out, input.shape[0], BLOCK=128, num_warps=8, num_stages=6)
    return out
