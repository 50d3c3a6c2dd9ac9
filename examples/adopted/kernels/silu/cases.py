"""Cases that the shapes in ops.yaml do not ask for: values so far from zero that the sigmoid is 0 or 1."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch


def cases(spec: dict[str, Any], generator: torch.Generator) -> Iterator[SimpleNamespace]:
    """Yields rows of large values of either sign."""
    for name, scale in (("large", 30.0), ("larger", 300.0)):
        yield SimpleNamespace(name=name, inputs={"input": scale * torch.randn(5, 70, generator=generator)})
