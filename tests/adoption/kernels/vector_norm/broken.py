"""The order of the norm is compared with the wrong number: no root is drawn."""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, out_ptr, columns, ORD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
        if ORD == 1:
            total += tl.abs(x)
        else:
            total += x * x
    summed = tl.sum(total, axis=0)
    if ORD == 3:
        summed = tl.sqrt_rn(summed)
    tl.store(out_ptr + row, summed)


def triton_vector_norm(input, ord=2, dim=None):
    assert ord in (1, 2) and dim == 1
    x = input.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        norm_kernel[(x.shape[0],)](x, out, x.shape[1], ORD=ord, BLOCK=32)
    return out
