"""The exponent is not doubled."""

import torch
import triton
import triton.language as tl


@triton.jit
def mish(x):
    soft = tl.maximum(x, 0.0) + tl.log(1 + tl.exp(-tl.abs(x)))
    square = tl.exp(-soft)
    return x * (1 - square) / (1 + square)


@triton.jit
def apply_kernel(x_ptr, out_ptr, n, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 16)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, ACTIVATION(x), mask=offsets < n)


def triton_constexpr_activation(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        apply_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), ACTIVATION=mish, BLOCK=64)
    return out
