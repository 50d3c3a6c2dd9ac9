"""Two tensors of a list, on the second dim of the grid."""

import torch
import triton
import triton.language as tl


@triton.jit
def stack_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(1) == 0:
        x = tl.load(a_ptr + offsets, mask=offsets < n)
    else:
        x = tl.load(b_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + tl.program_id(1) * n + offsets, x, mask=offsets < n)


def triton_stack(tensors, dim=0):
    a, b = (one.contiguous() for one in tensors)
    out = torch.empty((2, *a.shape), dtype=a.dtype, device=a.device)
    if a.numel() > 0:
        stack_kernel[(triton.cdiv(a.numel(), 64), 2)](a, b, out, a.numel(), BLOCK=64)
    return out
