"""An operator by torch.library.triton_op, its kernel wrapped for torch.compile."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def sub_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x - alpha * y, mask=offsets < n)


@triton_op("adoption::sub", mutates_args={})
def sub(input: torch.Tensor, other: torch.Tensor, alpha: float) -> torch.Tensor:
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        wrap_triton(sub_kernel)[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), alpha, BLOCK=64)
    return out


def triton_triton_op_sub(input, other, *, alpha=1):
    return sub(input, other, float(alpha))
