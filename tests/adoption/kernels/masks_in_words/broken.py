"""One of the masks stands alone: rows below the first block lose their tail."""

import torch
import triton
import triton.language as tl


@triton.jit
def tril_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    column = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    x = tl.load(x_ptr + row * columns + column, mask=row < rows and column < columns, other=0.0)
    kept = not (column > row) and column < rows - 8
    tl.store(out_ptr + row * columns + column, tl.where(kept, x, 0.0), mask=row < rows and column < columns)


def triton_masks_in_words(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        grid = (triton.cdiv(x.shape[0], 8), triton.cdiv(x.shape[1], 8))
        tril_kernel[grid](x, out, *x.shape, BLOCK=8)
    return out
