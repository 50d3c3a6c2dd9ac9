"""A list of tensors: a launch for each, at its offset."""

import torch
import triton
import triton.language as tl


@triton.jit
def place_kernel(x_ptr, out_ptr, columns, width, offset, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns)
    tl.store(out_ptr + row * width + offset + column, x, mask=column < columns)


def triton_cat(tensors, dim=0):
    assert dim == 1
    tensors = [one.contiguous() for one in tensors]
    rows, width = tensors[0].shape[0], sum(one.shape[1] for one in tensors)
    out = torch.empty((rows, width), dtype=tensors[0].dtype, device=tensors[0].device)
    offset = 0
    for one in tensors:
        if one.numel() > 0:
            place_kernel[(rows,)](one, out, one.shape[1], width, offset, BLOCK=triton.next_power_of_2(one.shape[1]))
        offset += one.shape[1]
    return out
