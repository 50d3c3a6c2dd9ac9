"""The second output is the input, not the sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def fused_kernel(x_ptr, r_ptr, w_ptr, out_ptr, added_ptr, columns, eps, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0)
    added = x + tl.load(r_ptr + row * columns + column, mask=inside, other=0.0)
    scale = 1 / tl.sqrt_rn(tl.sum(added * added, axis=0) / columns + eps)
    tl.store(added_ptr + row * columns + column, x, mask=inside)
    tl.store(out_ptr + row * columns + column, added * scale * tl.load(w_ptr + column, mask=inside), mask=inside)


def triton_fused_add_rms_norm(x, residual, weight, eps):
    x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
    out, added = torch.empty_like(x), torch.empty_like(x)
    if x.numel() > 0:
        block = triton.next_power_of_2(x.shape[1])
        fused_kernel[(x.shape[0],)](x, residual, weight, out, added, x.shape[1], eps, BLOCK=block)
    return out, added
