"""The input is read with the strides of the index."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, width, stride_xm, stride_xn, stride_im, stride_in, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    index = tl.load(index_ptr + row * stride_im + column * stride_in, mask=column < width, other=0)
    value = tl.load(x_ptr + row * stride_im + index * stride_xn, mask=column < width)
    tl.store(out_ptr + row * width + column, value, mask=column < width)


def triton_gather(input, dim, index):
    assert dim == 1
    out = torch.empty(index.shape, dtype=input.dtype, device=input.device)
    rows, width = index.shape
    if out.numel() > 0:
        block = triton.next_power_of_2(width)
        gather_kernel[(rows,)](input, index, out, width, *input.stride(), *index.stride(), BLOCK=block)
    return out
