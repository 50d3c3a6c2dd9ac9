"""A bool tensor beside a float one, on a grid of two dims with a mask for each."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked_fill_kernel(x_ptr, mask_ptr, out_ptr, rows, columns, value, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (row < rows) & (column < columns)
    places = row * columns + column
    x = tl.load(x_ptr + places, mask=inside)
    is_filled = tl.load(mask_ptr + places, mask=inside, other=0).to(tl.int1)
    tl.store(out_ptr + places, tl.where(is_filled, value, x), mask=inside)


def triton_masked_fill(input, mask, value):
    x, mask = (one.contiguous() for one in torch.broadcast_tensors(input, mask))
    out = torch.empty_like(x)
    if x.numel() > 0:
        rows, columns = x.numel() // x.shape[-1], x.shape[-1]
        grid = (triton.cdiv(rows, 8), triton.cdiv(columns, 16))
        masked_fill_kernel[grid](x, mask, out, rows, columns, value, BLOCK_M=8, BLOCK_N=16)
    return out
