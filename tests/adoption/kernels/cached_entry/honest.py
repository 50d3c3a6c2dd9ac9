"""A library's own class in front of the kernel, which looks into the jitted function."""

import torch
import triton
import triton.language as tl

from kernels.shared.entry import cached_entry


@cached_entry
@triton.heuristics({"BLOCK": lambda given: 64 if given["n"] < 1000 else 256})
@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * x, mask=offsets < n)


def triton_cached_entry(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        square_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
