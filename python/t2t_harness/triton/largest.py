"""Holds back what would be compiled with larger blocks than any launch before it: a block as long as an extreme row takes minutes to compile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from t2t_harness.triton import launching


@dataclass
class Largest:
    """What is known of the launches of one target."""

    number: int = 0
    """The largest integer among their constants."""
    is_known: bool = False
    """Whether launches with a larger one are held back from now on."""

    def holds_back(self, compilation: launching.Compilation) -> bool:
        """Tells whether `compilation` is not to be done; notes its constants if it is."""
        own = max((value for value in compilation.constants.values() if type(value) is int), default=0)
        if self.is_known:
            return own > self.number
        self.number = max(self.number, own)
        return False


@contextlib.contextmanager
def noted() -> Iterator[Largest]:
    """Yields what notes the launches of the context. A launch that is held back returns None."""
    largest = Largest()
    with launching.before_compiling(largest.holds_back):
        yield largest
