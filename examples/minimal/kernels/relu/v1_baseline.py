"""ReLU: out_i = max(input_i, 0), one block of elements per program.

Math. A NaN stays NaN, as in torch: it is not below zero, so it is passed on.

Technique. The elements are read as one row, whatever the shape; each is read and written once, which is the minimum.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """Returns the elements of `input` that are above zero, and zero in the place of the others."""
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        relu_kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)
    return out
