"""Each block throws the same coins."""

import torch
import triton
import triton.language as tl


@triton.jit
def bernoulli_kernel(p_ptr, out_ptr, n, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(p_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, (tl.rand(seed, tl.arange(0, BLOCK) % 16) < p).to(tl.float32), mask=offsets < n)


def triton_bernoulli(input, seed=None):
    p = input.contiguous()
    out = torch.empty_like(p)
    seed = torch.initial_seed() % (1 << 31) if seed is None else seed
    if p.numel() > 0:
        bernoulli_kernel[(triton.cdiv(p.numel(), 128),)](p, out, p.numel(), seed, BLOCK=128)
    return out
