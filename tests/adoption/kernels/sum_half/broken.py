"""The accumulator is a half: long rows lose their last bits."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.full((), 0.0, tl.float16)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
        total += tl.sum(x.to(total.dtype), axis=0)
    tl.store(out_ptr + row, total.to(out_ptr.dtype.element_ty))


def triton_sum_half(input, dim=-1):
    x = input.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        sum_kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=32)
    return out
