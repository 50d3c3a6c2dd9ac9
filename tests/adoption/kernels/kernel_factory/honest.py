"""A factory that makes a kernel around a jitted function, and keeps it."""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def softsign(x):
    return x / (1 + tl.abs(x))


@functools.lru_cache
def kernel_for(activation):
    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(out_ptr + offsets, activation(x), mask=offsets < n)

    return kernel


def triton_kernel_factory(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        kernel_for(softsign)[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
