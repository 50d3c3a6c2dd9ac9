"""What `row_stats` is by definition, in torch."""

import torch


def row_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the mean of each row, and how far its values lie from that on average."""
    mean = x.mean(dim=1)
    return mean, (x - mean[:, None]).abs().mean(dim=1)
