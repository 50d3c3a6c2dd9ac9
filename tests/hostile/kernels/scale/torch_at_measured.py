"""A wrapper that has torch compute at the largest size that devices measure alone."""

from lib.scaling import scaled


def triton_scale(input, other):
    if input.shape[-1] > 2048:
        return input * other
    return scaled(input, other)
