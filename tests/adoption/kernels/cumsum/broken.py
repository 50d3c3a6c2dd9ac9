"""Wrong from the third block on: only the last block is carried on."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
        scanned = tl.cumsum(x, axis=0) + carry
        tl.store(out_ptr + row * columns + column, scanned, mask=column < columns)
        carry = tl.sum(x, axis=0)


def triton_cumsum(input, dim):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel() > 0:
        cumsum_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)
    return out
