"""What Liger's manifold-constrained hyper-connections compute, in plain torch. Streams are (tokens, HC, C)."""

import torch

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def coefficients(
    x: torch.Tensor,
    phi: torch.Tensor,
    b: torch.Tensor,
    alpha_pre: torch.Tensor,
    alpha_post: torch.Tensor,
    alpha_res: torch.Tensor,
    steps: int,
    rms_eps: float,
    pre_eps: float,
    sinkhorn_eps: float,
    post_mult: float,
) -> Three:
    """Returns how much of each stream goes in (tokens, HC), how much of the result comes out (tokens, HC), and how streams are mixed (tokens, HC, HC).

    All three come of one projection of the normalized streams by `phi` (HC * C, 2 HC + HC * HC), scaled by the alphas (one element
    each), plus `b`. The mixture is brought near one whose rows and columns sum to one, in `steps` rounds of Sinkhorn's.
    """
    streams = x.shape[-2]
    flat = x.flatten(-2)
    mix = (flat @ phi) * torch.rsqrt(flat.square().mean(dim=-1, keepdim=True) + rms_eps)
    pre, post, rest = mix.split([streams, streams, streams * streams], dim=-1)
    b_pre, b_post, b_rest = b.split([streams, streams, streams * streams])
    matrix = (rest * alpha_res + b_rest).view(-1, streams, streams).softmax(dim=-1) + sinkhorn_eps
    matrix = matrix / (matrix.sum(dim=-2, keepdim=True) + sinkhorn_eps)
    for _ in range(steps - 1):
        matrix = matrix / (matrix.sum(dim=-1, keepdim=True) + sinkhorn_eps)
        matrix = matrix / (matrix.sum(dim=-2, keepdim=True) + sinkhorn_eps)
    goes_in = torch.sigmoid(pre * alpha_pre + b_pre) + pre_eps
    return goes_in, torch.sigmoid(post * alpha_post + b_post) * post_mult, matrix


def into_layer(x: torch.Tensor, goes_in: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the streams, weighted by `goes_in` (tokens, HC)."""
    return (x * goes_in.unsqueeze(-1)).sum(dim=-2)


def out_of_layer(x: torch.Tensor, made: torch.Tensor, comes_out: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Returns the streams mixed by `matrix` (tokens, HC, HC), plus what the layer `made` (tokens, C) weighted by `comes_out`."""
    return matrix @ x + comes_out.unsqueeze(-1) * made.unsqueeze(-2)
