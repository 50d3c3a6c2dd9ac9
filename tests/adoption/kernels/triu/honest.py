"""A triangle by comparing row and column, on blocks of both."""

import torch
import triton
import triton.language as tl


@triton.jit
def triu_kernel(x_ptr, out_ptr, rows, columns, diagonal, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    column = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=inside & (column - row >= diagonal), other=0.0)
    tl.store(out_ptr + row * columns + column, x, mask=inside)


def triton_triu(input, diagonal=0):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16))
        triu_kernel[grid](x, out, *x.shape, diagonal, BLOCK=16)
    return out
