"""No input at all: numbers that only arguments decide."""

import torch
import triton
import triton.language as tl


@triton.jit
def arange_kernel(out_ptr, start, step, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + place, start + place * step, mask=place < n)


def triton_arange(start, end, step=1):
    n = triton.cdiv(end - start, step)
    out = torch.empty(n, dtype=torch.int64, device="cuda")
    arange_kernel[(triton.cdiv(n, 16),)](out, start, step, n, BLOCK=16)
    return out
