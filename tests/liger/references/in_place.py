"""Ops of which the way back leaves the gradients where the inputs were: it is part of what such an op does, and so of its reference."""

from collections.abc import Callable
from typing import Any

import torch

from references.activations import geglu, swiglu


class _GradientsInInputs(torch.autograd.Function):
    """A function whose first inputs hold their gradients after the way back."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., torch.Tensor], *given: torch.Tensor) -> torch.Tensor:
        """Returns `function` of the inputs."""
        ctx.function, ctx.given = function, given
        return function(*given)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Returns the gradients, in the memory of the inputs."""
        leaves = [one.detach().clone().requires_grad_() for one in ctx.given]
        with torch.enable_grad():
            found = torch.autograd.grad(ctx.function(*leaves), leaves, upstream)
        return None, *[one.detach().copy_(gradient) for one, gradient in zip(ctx.given, found, strict=True)]


def geglu_over(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns `geglu` of `a` and `b`, which hold their gradients after the way back."""
    made: torch.Tensor = _GradientsInInputs.apply(geglu, a, b)
    return made


def swiglu_over(a: torch.Tensor, b: torch.Tensor, gate: float, down: float) -> torch.Tensor:
    """Returns `swiglu` of `a` and `b`, which hold their gradients after the way back."""
    made: torch.Tensor = _GradientsInInputs.apply(lambda a, b: swiglu(a, b, gate, down), a, b)
    return made
