"""Numbers by chance that the system draws, ahead of their use: between timed calls nothing asks the system, which may take as long as a launch, or let others run."""

from __future__ import annotations

import os
import struct

AHEAD = 1 << 12
"""How many are drawn at once: more than a run has calls."""

WORD = 32
"""The bits of each."""


class Chances:
    """A supply of them."""

    def __init__(self) -> None:
        self.words: list[int] = []

    def draw(self) -> None:
        """Has the system draw as many as there is room for."""
        missing = AHEAD - len(self.words)
        self.words += struct.unpack(f"={missing}I", os.urandom(missing * WORD // 8))

    def below(self, count: int) -> int:
        """Returns one of the first `count` whole numbers, each with the same chance but for `count` in 2^32."""
        if not self.words:
            self.draw()
        return self.words.pop() * count >> WORD
