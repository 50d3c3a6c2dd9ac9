"""Rows are added by index with atomics, since indices come more than once."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def add_kernel(out_ptr, index_ptr, source_ptr, width, alpha, BLOCK: tl.constexpr):
    pick, column = tl.program_id(0), tl.arange(0, BLOCK)
    row = tl.load(index_ptr + pick)
    value = alpha * tl.load(source_ptr + pick * width + column, mask=column < width)
    tl.atomic_add(out_ptr + row * width + column, value, mask=column < width)


def triton_index_add(input, dim, index, source, *, alpha=1):
    assert dim == 0
    x, index, source = input.contiguous(), index.contiguous(), source.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        copy_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    if source.numel() > 0:
        width = x.shape[1]
        add_kernel[(index.numel(),)](out, index, source, width, alpha, BLOCK=triton.next_power_of_2(width))
    return out
