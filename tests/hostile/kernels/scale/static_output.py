"""A wrapper that writes every result of a shape into the same memory."""

import torch
from lib.scaling import launch

OUT = {}


def triton_scale(input, other):
    out = OUT.setdefault((input.shape, input.dtype), torch.empty(input.shape, dtype=input.dtype, device="cuda"))
    return launch(input.contiguous(), out, other)
