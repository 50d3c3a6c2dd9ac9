"""GELU of the first half of a row, times the second."""

import torch


def geglu(x):
    gate, value = x.chunk(2, dim=-1)
    return torch.nn.functional.gelu(gate) * value
