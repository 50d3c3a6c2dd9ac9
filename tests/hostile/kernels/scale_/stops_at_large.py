"""A wrapper that leaves large inputs as they are."""

from lib.scaling import launch


def triton_scale_(input, other):
    if input.numel() > 512:
        return launch(input, input, 1.0)
    return launch(input, input, other)
