"""What Liger's rotary embeddings compute, in plain torch."""

import torch


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Returns `x` with pairs half a row apart turned by the angles of the first halves of `cos` and `sin`."""
    half = x.shape[-1] // 2
    left, right = x[..., :half], x[..., half:]
    cos, sin = cos[..., :half], sin[..., :half]
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


def rope(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns `q` and `k` (B, heads, S, D), turned by angles (S, D) that all heads share and that are constants."""
    cos, sin = cos.detach(), sin.detach()
    return turned(q, cos, sin), turned(k, cos, sin)


def mrope(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, sections: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns `q` and `k` (B, heads, S, D), turned by angles (3, B, S, D) of time, height and width.

    `sections` says how many columns of the first half are of time, and how many of height; the others are of width.
    """
    half = q.shape[-1] // 2
    time, height = sections[0], sections[0] + sections[1]
    column = torch.arange(half, device=q.device)
    which = (column >= time).long() + (column >= height).long()

    def chosen(angles: torch.Tensor) -> torch.Tensor:
        of_three = angles.detach()[..., :half]
        return of_three.gather(0, which.expand(1, *of_three.shape[1:])).squeeze(0).unsqueeze(1)

    return turned(q, chosen(cos), chosen(sin)), turned(k, chosen(cos), chosen(sin))


def complex_rope(
    q: torch.Tensor, k: torch.Tensor, angles: torch.Tensor, sign: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Turns neighbours in `q` and `k` (B, S, heads, D), which are complex numbers, in place; returns both.

    `angles` (S, D // 2, 2) are the factors; their imaginary parts are taken times `sign`.
    """
    real, imaginary = angles[..., 0].unsqueeze(1), angles[..., 1].unsqueeze(1) * sign
    for x in (q, k):
        even, odd = x[..., 0::2].clone(), x[..., 1::2].clone()
        x[..., 0::2] = even * real - odd * imaginary
        x[..., 1::2] = even * imaginary + odd * real
    return q, k
