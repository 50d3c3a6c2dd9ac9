"""Uniform numbers of a shape."""

import torch
import triton
import triton.language as tl


@triton.jit
def rand_kernel(out_ptr, n, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.rand(seed, offsets), mask=offsets < n)


def triton_rand(size, seed=None):
    out = torch.empty(size, device="cuda")
    seed = torch.initial_seed() % (1 << 31) if seed is None else seed
    if out.numel() > 0:
        rand_kernel[(triton.cdiv(out.numel(), 128),)](out, out.numel(), seed, BLOCK=128)
    return out
