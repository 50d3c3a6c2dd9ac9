"""What Liger's mixture of experts computes, in plain torch."""

import torch
import torch.nn.functional as F


def fused_moe(
    x: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, index: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Returns for each token of `x` (T, H) the weighted sum over the experts that `index` (T, K) names.

    Expert e projects by `gate_up[e]` (2 I, H), gates the second half by SiLU of the first, and projects back by `down[e]` (H, I).
    """
    chosen = index.long()
    gate, up = torch.einsum("th,tkih->tki", x, gate_up[chosen]).chunk(2, dim=-1)
    made = torch.einsum("tki,tkhi->tkh", F.silu(gate) * up, down[chosen])
    return (made * weights.unsqueeze(-1)).sum(dim=1)


def routing(index: torch.Tensor, experts: int, block: int) -> tuple[torch.Tensor, ...]:
    """Returns how entries of `index` (T, K) are sorted by expert: counts, where each expert begins, the token and the place of
    each sorted entry, the place among the sorted ones of each entry, and of each block of at most `block` rows the first row and the expert."""
    flat = index.flatten().long()
    order = flat.argsort(stable=True)
    places = torch.empty_like(order)
    places[order] = torch.arange(len(flat), device=flat.device)
    counts = torch.bincount(flat, minlength=experts)
    begins = F.pad(counts.cumsum(0), (1, 0))
    blocks = [
        (int(begins[expert]) + block * number, expert)
        for expert in range(experts)
        for number in range(-(-int(counts[expert]) // block))
    ]
    rows, owners = (torch.tensor(column, device=flat.device) for column in zip(*blocks, strict=True))
    made = (counts, begins, order // index.shape[1], order, places, rows, owners)
    return tuple(one.to(torch.int32) for one in made)
