"""An element a row, picked by index, with a weight by class."""

import torch
import triton
import triton.language as tl


@triton.jit
def nll_kernel(x_ptr, target_ptr, w_ptr, out_ptr, rows, V, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(target_ptr + row, mask=row < rows, other=0)
    x = tl.load(x_ptr + row * V + target, mask=row < rows)
    tl.store(out_ptr + row, -x * tl.load(w_ptr + target), mask=row < rows)


def triton_nll_loss(input, target, weight=None, reduction="mean"):
    assert reduction == "none"
    x, target, w = input.contiguous(), target.contiguous(), weight.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        nll_kernel[(triton.cdiv(x.shape[0], 16),)](x, target, w, out, *x.shape, BLOCK=16)
    return out
