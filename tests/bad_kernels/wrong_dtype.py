"""Returns float64 for float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_add(input, other, *, alpha=1):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty_like(x, dtype=torch.float64)
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), float(alpha), BLOCK_SIZE=64)
    return out
