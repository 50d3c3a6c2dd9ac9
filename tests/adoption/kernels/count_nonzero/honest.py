"""Programs add to one counter with atomics; the result is int64."""

import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.atomic_add(out_ptr, tl.sum((x != 0).to(tl.int64), axis=0))


def triton_count_nonzero(input):
    x = input.contiguous()
    out = torch.zeros((), dtype=torch.int64, device=x.device)
    count_kernel[(max(triton.cdiv(x.numel(), 64), 1),)](x, out, x.numel(), BLOCK=64)
    return out
