"""A wrapper that keeps what may be kept: the number of elements, and scratch memory that no result lies in."""

import torch
from lib.scaling import scaled

LENGTHS, SCRATCH = {}, {}


def triton_scale(input, other):
    LENGTHS.setdefault(input.shape, input.numel())
    SCRATCH.setdefault(input.shape, torch.empty(16, device="cuda"))
    return scaled(input, other)
