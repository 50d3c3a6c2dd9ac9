"""A tile is turned in registers, by tl.trans."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside)
    tl.store(out_ptr + column[:, None] * rows + row[None, :], tl.trans(tile), mask=tl.trans(inside))


def triton_transpose_copy(input, dim0, dim1):
    x = input.contiguous()
    out = torch.empty((x.shape[1], x.shape[0]), dtype=x.dtype, device=x.device)
    if x.numel() > 0:
        transpose_kernel[(triton.cdiv(x.shape[0], 8), triton.cdiv(x.shape[1], 8))](x, out, *x.shape, BLOCK=8)
    return out
