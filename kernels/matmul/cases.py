"""Cases that reach the kernels for large products in the middle of a block: the harness's own edge cases are too small.

None where the declared sizes are small, as they are on the interpreter: it has no kernel for large products.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Case:
    """Two matrices under a name."""

    name: str
    inputs: dict[str, torch.Tensor]


def cases(spec: dict[str, Any], generator: torch.Generator) -> Iterator[Case]:
    """Yields large products of odd lengths, with and without values that are not finite."""
    if max(length for size in spec["sizes"].values() for length in size.values()) < 1024:
        return

    def normal(rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator)

    yield Case("ragged", {"input": normal(2047, 520), "other": normal(520, 2031)})
    yield Case("ragged-few", {"input": normal(700, 690), "other": normal(690, 650)})
    for name, rows, columns in (("not-finite", 2047, 2031), ("not-finite-few", 700, 650)):
        values = normal(rows, 690)
        values[0, 1], values[rows // 2, 2], values[rows - 1, 3] = float("nan"), float("inf"), float("-inf")
        yield Case(name, {"input": values, "other": normal(690, columns)})
    yield Case("ragged-half", {"input": normal(777, 5000).half(), "other": normal(5000, 1136).half()})
