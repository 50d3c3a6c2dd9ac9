"""Asks for a petabyte in one piece."""

from kernels.add.right import triton_add as add


def triton_add(input, other, *, alpha=1):
    input.new_empty(1 << 48)
    return add(input, other, alpha=alpha)
