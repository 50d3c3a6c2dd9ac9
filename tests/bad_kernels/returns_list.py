"""Returns a list."""

from kernels.add.right import triton_add as add


def triton_add(input, other, *, alpha=1):
    return [add(input, other, alpha=alpha)]
