"""Gives `liger_kernel.ops.tiled_mlp`, which only cuts its input and calls a function on the parts, the gated MLP of the package to call."""

import torch
import torch.nn.functional as F
from liger_kernel.ops.swiglu import LigerSiLUMulFunction
from liger_kernel.ops.tiled_mlp import apply_tiled_mlp


class TiledMLP(torch.nn.Module):
    """A gated MLP with the weights of the reference's, in the same order."""

    def __init__(self, features: int, hidden: int, shards: int) -> None:
        """Draws the weights."""
        super().__init__()
        self.gate = torch.nn.Linear(features, hidden, bias=False)
        self.up = torch.nn.Linear(features, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, features, bias=False)
        self.shards = shards

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the MLP of `x` (B, T, features), tile by tile."""
        made: torch.Tensor = apply_tiled_mlp(of_tile, self, x, num_shards=self.shards)
        return made


def of_tile(module: TiledMLP, x: torch.Tensor) -> torch.Tensor:
    """Returns the MLP of one tile."""
    gated = LigerSiLUMulFunction.apply(F.linear(x, module.gate.weight), F.linear(x, module.up.weight))
    return F.linear(gated, module.down.weight)
