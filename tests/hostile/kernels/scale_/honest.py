"""A wrapper that scales in place."""

from lib.scaling import launch


def triton_scale_(input, other):
    return launch(input, input, other)
