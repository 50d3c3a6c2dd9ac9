"""The sigmoid is rounded to half before it is multiplied."""

import triton
import triton.language as tl

from kernels.shared.pointwise import pointwise


@pointwise(1)
@triton.jit
def silu(x):
    value = x.to(tl.float32)
    return (value * (1 / (1 + tl.exp(-value))).to(tl.float16)).to(x.dtype)


def triton_silu(input):
    return silu(input)
