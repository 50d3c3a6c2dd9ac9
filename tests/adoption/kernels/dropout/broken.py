"""What is kept is not scaled."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    kept = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(kept, x, 0.0), mask=offsets < n)


def seeded_dropout(input, p=0.5, training=True, seed=None):
    x = input.contiguous()
    out = torch.empty_like(x)
    p = p if training else 0.0
    seed = torch.initial_seed() % (1 << 31) if seed is None else seed
    if x.numel() > 0:
        dropout_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), p, seed, BLOCK=128)
    return out
