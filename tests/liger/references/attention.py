"""What Liger's attentions compute, in plain torch."""

import torch
import torch.nn.functional as F

from references.activations import sparsemax


def multi_token(
    scores: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int, sparse: bool
) -> torch.Tensor:
    """Returns causal probabilities of `scores` (B, C, L, L), mixed by a convolution, with zeros above the diagonal."""
    length = scores.shape[-1]
    future = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
    masked = scores.masked_fill(future, -1e9)
    likely = sparsemax(masked) if sparse else masked.softmax(dim=-1)
    return F.conv2d(likely, weight, bias, padding=padding).masked_fill(future, 0.0)


def neighborhood(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kernel_size: int, dilation: int
) -> torch.Tensor:
    """Returns the attention of (B, heads, S, D) to those places that are at most `kernel_size // 2` steps of `dilation` away."""
    place = torch.arange(query.shape[-2], device=query.device)
    apart = (place.unsqueeze(1) - place).abs()
    near = (apart <= kernel_size // 2 * dilation) & (apart % dilation == 0)
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores.masked_fill(~near, float("-inf")).softmax(dim=-1) @ value
