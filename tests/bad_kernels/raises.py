"""Raises in a function that the wrapper calls."""

from kernels.add.right import triton_add as add


def halved(tensor):
    raise ValueError(f"cannot halve a tensor of {tensor.dim()} dims")


def triton_add(input, other, *, alpha=1):
    return add(input, halved(other), alpha=alpha)
