"""Right, on a stream that waits for the caller's and is waited for."""

import torch
import triton

from kernels.add.right import add_kernel


def triton_add(input, other, *, alpha=1):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty_like(x)
    here, there = torch.cuda.current_stream(), torch.cuda.Stream()
    there.wait_stream(here)
    with torch.cuda.stream(there):
        add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), float(alpha), BLOCK_SIZE=64)
    here.wait_stream(there)
    return out
