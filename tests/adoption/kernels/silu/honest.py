"""A scalar function in a decorator that writes the kernel around it at run time."""

import triton
import triton.language as tl

from kernels.shared.pointwise import pointwise


@pointwise(1)
@triton.jit
def silu(x):
    value = x.to(tl.float32)
    return (value / (1 + tl.exp(-value))).to(x.dtype)


def triton_silu(input):
    return silu(input)
