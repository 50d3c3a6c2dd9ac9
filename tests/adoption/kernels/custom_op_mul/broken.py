"""The second operand is read where the first is."""

import torch
import triton
import triton.language as tl


@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * y, mask=offsets < n)


@torch.library.custom_op("adoption::mul", mutates_args=())
def mul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        mul_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out


@mul.register_fake
def _(input, other):
    return torch.empty_like(input)


def scaled(input, other):
    return mul(input, other)
