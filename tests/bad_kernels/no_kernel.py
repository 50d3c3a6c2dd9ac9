"""Launches nothing and returns fresh memory."""

import torch


def triton_add(input, other, *, alpha=1):
    return torch.empty_like(input)
