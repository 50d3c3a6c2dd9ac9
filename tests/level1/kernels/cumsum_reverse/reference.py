"""What stands at each place and after it, added up."""

import torch


def cumsum_reverse(x, dim):
    return torch.cumsum(x.flip(dim), dim=dim).flip(dim)
