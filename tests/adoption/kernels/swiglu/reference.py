"""SiLU of one tensor times another."""

import torch


def swiglu(a, b):
    return torch.nn.functional.silu(a) * b
