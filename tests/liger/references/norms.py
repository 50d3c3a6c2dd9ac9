"""What Liger's norms compute, in plain torch."""

import torch


def unit(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns each row over the root of its mean square, to which `eps` is added."""
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)


def fused_add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, offset: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the weighted norm of the sum, and the sum."""
    added = x + residual
    return unit(added, eps) * (weight + offset), added


def modulated_rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    shift: torch.Tensor | None,
    eps: float,
    offset: float,
) -> torch.Tensor:
    """Returns the weighted norm of `x` (B, T, H) times one plus `scale` (B, H), plus `shift` (B, H)."""
    made = unit(x, eps) * (weight + offset) * (1 + scale.unsqueeze(1))
    return made if shift is None else made + shift.unsqueeze(1)


def poly_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns the norms of the third, second and first powers, each times its weight, plus the bias."""
    cube, square, one = weight
    return cube * unit(x**3, eps) + square * unit(x**2, eps) + one * unit(x, eps) + bias


def attention_residual(values: torch.Tensor, query: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns the mean of `values` (N, B, T, D) over N, by the softmax of how well their norms agree with `query` (D)."""
    scores = (unit(values, eps) * weight * query).sum(dim=-1)
    return (scores.softmax(dim=0).unsqueeze(-1) * values).sum(dim=0)
