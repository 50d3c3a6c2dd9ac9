"""A launcher that refuses what it cannot take, which is declared."""

import torch
import triton
import triton.language as tl


@triton.jit
def elu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(x > 0, x, tl.exp(x) - 1), mask=offsets < n)


def triton_dense_rows(input):
    if not input.is_contiguous() or input.numel() == 0:
        raise ValueError("dense rows are asked for")
    out = torch.empty_like(input)
    elu_kernel[(triton.cdiv(input.numel(), 64),)](input, out, input.numel(), BLOCK=64)
    return out
