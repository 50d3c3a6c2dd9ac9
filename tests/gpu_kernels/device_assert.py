"""Asserts on the device what is not so."""

import torch
import triton
import triton.language as tl


@triton.jit(debug=True)
def kernel(x, o):
    tl.device_assert(tl.load(x) > 1e30, "not so")
    tl.store(o, 1.0)


def triton_add(input, other, *, alpha=1):
    out = torch.empty_like(input)
    kernel[(1,)](input, out)
    return out
