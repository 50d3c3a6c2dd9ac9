"""A row in one block, whose size a shared function settles; padded lanes are minus infinity."""

import torch
import triton
import triton.language as tl

from kernels.shared.launch import block_of, ensure_contiguous, launch


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf")).to(tl.float32)
    grown = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + column, grown / tl.sum(grown, axis=0), mask=column < columns)


@ensure_contiguous
def triton_softmax(input, dim=-1):
    out = torch.empty_like(input)
    rows, columns = input.shape
    block, num_warps = block_of(columns)
    launch(softmax_kernel, rows, input, out, columns, BLOCK=block, num_warps=num_warps)
    return out
