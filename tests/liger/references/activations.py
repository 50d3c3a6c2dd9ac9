"""What Liger's activations and gated products compute, in plain torch."""

import torch
import torch.nn.functional as F


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """Returns the square of what is above zero, element by element."""
    return F.relu(x).square()


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns `b` gated by GELU of `a`, in its approximation by tanh."""
    return F.gelu(a, approximate="tanh") * b


def swiglu(a: torch.Tensor, b: torch.Tensor, gate: float, down: float) -> torch.Tensor:
    """Returns `b` gated by SiLU of `gate * a`, times `down`."""
    return F.silu(a * gate) * b * down


def swiglu_halves(y: torch.Tensor) -> torch.Tensor:
    """Returns the second half of each row gated by SiLU of the first."""
    gate, up = y.chunk(2, dim=-1)
    return F.silu(gate) * up


def dynamic_tanh(x: torch.Tensor, alpha: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor | None) -> torch.Tensor:
    """Returns `gamma * tanh(alpha * x) + beta`, where `alpha` has one element and `gamma` one a column."""
    scaled = gamma * torch.tanh(alpha * x)
    return scaled if beta is None else scaled + beta


def sparsemax(x: torch.Tensor) -> torch.Tensor:
    """Returns the Euclidean projection of each row onto the simplex: what exceeds a threshold at which the excess is one."""
    ordered = x.sort(dim=-1, descending=True).values
    excess = ordered.cumsum(dim=-1) - 1
    counts = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    support = (ordered * counts > excess).sum(dim=-1, keepdim=True)
    return F.relu(x - excess.gather(-1, support - 1) / support)


def scaled(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Multiplies `x` in place by the one element of `factor`, and returns it."""
    return x.mul_(factor)


def swiglu_mlp(
    x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor, gate_by: float, down_by: float
) -> torch.Tensor:
    """Returns the gated MLP of `x`: `gate` and `up` project to hidden columns, `down` back; weights are (out, in)."""
    return F.linear(F.silu(F.linear(x, gate) * gate_by) * F.linear(x, up), down) * down_by


class MLP(torch.nn.Module):
    """A gated MLP, whatever tiles it is computed in."""

    def __init__(self, features: int, hidden: int, shards: int) -> None:
        """Draws the weights; `shards`, the number of tiles, changes nothing."""
        super().__init__()
        self.gate = torch.nn.Linear(features, hidden, bias=False)
        self.up = torch.nn.Linear(features, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the MLP of `x` (..., features)."""
        return swiglu_mlp(x, self.gate.weight, self.up.weight, self.down.weight, 1.0, 1.0)
