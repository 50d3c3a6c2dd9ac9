"""Reads address 0."""

import ctypes

from kernels.add.right import triton_add as add


def triton_add(input, other, *, alpha=1):
    ctypes.string_at(0)
    return add(input, other, alpha=alpha)
