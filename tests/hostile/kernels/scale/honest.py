"""A wrapper that scales."""

from lib.scaling import scaled


def triton_scale(input, other):
    return scaled(input, other)
