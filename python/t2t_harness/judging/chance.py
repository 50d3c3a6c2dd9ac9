"""Tests of what must hold in distribution, with bounds that hold for any number of samples: no approximation, no table.

A `Sums` is of terms that are zero in expectation whatever came before them, bounded, and of known variance: by Freedman's
inequality (Bernstein's, where terms are independent) it leaves `reach` with a chance below the level. `Draws` are numbers that
must be uniform in [0, 1): by the Dvoretzky-Kiefer-Wolfowitz inequality, with Massart's constant, their distribution leaves the
diagonal by `distance` with a chance below the level. torch is imported only inside functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LEVEL = 8e-7
"""The chance that a right kernel fails any test of one check, at most. With `pooled.CERTAIN` it is below 1 in 10⁶."""

MOST_DRAWS = 1 << 16
"""The most numbers whose distribution is tested at once: beyond, the grid of a 16-bit dtype would count as a deviation."""


@dataclass
class Sums:
    """A sum that is zero in expectation."""

    total: float = 0.0
    variance: float = 0.0
    """At least the sum of the variances of the terms, each given what came before it."""
    bound: float = 0.0
    """At least the largest term, in magnitude."""
    count: int = 0

    def add(self, terms: torch.Tensor, variance: float, bound: float) -> None:
        """Adds terms, with their variances summed and the largest magnitude that they can have."""
        self.total += float(terms.double().sum())
        self.variance += variance
        self.bound = max(self.bound, bound)
        self.count += terms.numel()

    def reach(self, level: float) -> float:
        """Returns what the sum exceeds, in magnitude, with a chance of `level` at most."""
        wanted = math.log(2 / level)
        third = self.bound * wanted / 3
        return third + math.sqrt(third * third + 2 * self.variance * wanted)

    def is_off(self, level: float) -> bool:
        """Tells whether the sum is further from zero than chance allows."""
        return abs(self.total) > self.reach(level)


@dataclass
class Draws:
    """Numbers that must be independent and uniform in [0, 1)."""

    parts: list[torch.Tensor] = field(default_factory=list)
    count: int = 0

    def add(self, values: torch.Tensor) -> None:
        """Adds numbers, of one case's as many as there is room for."""
        taken = values.reshape(-1)[: MOST_DRAWS - self.count].double().cpu()
        self.parts.append(taken)
        self.count += taken.numel()

    def distance(self) -> float:
        """Returns how far the distribution of the numbers is from the diagonal, at most."""
        import torch

        if self.count == 0:
            return 0.0
        ordered = torch.cat(self.parts).sort().values
        steps = torch.arange(self.count + 1, dtype=torch.float64) / self.count
        return float(torch.maximum((ordered - steps[:-1]).max(), (steps[1:] - ordered).max()))

    def allowed(self, level: float) -> float:
        """Returns the distance that is exceeded with a chance of `level` at most."""
        return math.sqrt(math.log(2 / level) / (2 * self.count)) if self.count else 1.0

    def is_off(self, level: float) -> bool:
        """Tells whether the numbers are further from uniform than chance allows."""
        return self.distance() > self.allowed(level)
