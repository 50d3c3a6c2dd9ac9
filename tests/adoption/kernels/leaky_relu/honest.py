"""A scalar argument that the kernel takes as a constant, and a grid by lambda."""

import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu_kernel(x_ptr, out_ptr, n, SLOPE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x >= 0, x, x * SLOPE), mask=mask)


def triton_leaky_relu(input, negative_slope=0.01):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        leaky_relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](
            x, out, x.numel(), SLOPE=negative_slope, BLOCK=128
        )
    return out
