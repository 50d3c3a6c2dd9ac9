"""The decorator for pointwise functions, with a scalar and operands that broadcast."""

import triton

from kernels.shared.pointwise import pointwise


@pointwise(2)
@triton.jit
def add(x, y, alpha):
    return x + y * alpha


def triton_add(input, other, *, alpha=1):
    return add(input, other, float(alpha))
