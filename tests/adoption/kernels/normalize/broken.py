"""eps is added, where torch takes the larger of the two."""

import torch
import triton
import triton.language as tl


@triton.jit
def normalize_kernel(x_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
    norm = tl.sqrt_rn(tl.sum(x * x, axis=0))
    norm = norm + eps
    tl.store(out_ptr + row * columns + column, x / norm, mask=column < columns)


def triton_normalize(input, p=2.0, dim=1, eps=1e-12):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        normalize_kernel[(x.shape[0],)](x, out, x.shape[1], eps, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
