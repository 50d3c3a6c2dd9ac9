"""Works on a dense copy, so that the caller's tensor stays as it was."""

import triton
import triton.language as tl


@triton.jit
def relu_inplace_kernel(x_ptr, stride_m, stride_n, columns, BLOCK: tl.constexpr):
    row = x_ptr + tl.program_id(0) * stride_m
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(row + column * stride_n, mask=column < columns)
        tl.store(row + column * stride_n, tl.where(x <= 0, 0.0, x), mask=column < columns)


def triton_relu_inplace(input):
    input = input.clone()
    rows, columns = input.shape
    if input.numel() > 0:
        relu_inplace_kernel[(rows,)](input, input.stride(0), input.stride(1), columns, BLOCK=32)
    return input
