"""How long interpreted cases take, and which one would not be over before the deadline.

The interpreter takes longer for more elements. The slowest case so far, by its elements, says how long the next may take. A case for which no time is left is
made smaller, or left out where that does not help; declared cases of the first dtype are always run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

SHARE = 0.8
"""How much of a check's deadline its cases may take; the rest is for what began before them."""


@dataclass
class Pace:
    """The cases so far, in seconds of this process's CPU time."""

    deadline_s: float | None
    """None where nothing is limited."""
    slowest: float = 0.0
    """Seconds for an element, in the case with the most."""
    began: float = field(default_factory=time.process_time)

    def note(self, elements: int, seconds: float) -> None:
        """Takes that a case of so many `elements` took so many `seconds`."""
        self.slowest = max(self.slowest, seconds / max(elements, MANY))

    def refusal(self, elements: int, runs: int = 1) -> str | None:
        """Returns why a case of so many `elements`, called in so many `runs`, is not begun, and what to set; None where there is time for it."""
        if self.deadline_s is None:
            return None
        needed = runs * self.slowest * max(elements, MANY)
        left = SHARE * self.deadline_s - (time.process_time() - self.began)
        if needed <= left:
            return None
        return (
            f"it would take about {needed:.0f} s in the interpreter, and of the deadline of {self.deadline_s:.0f} s {max(left, 0):.0f} s are left: "
            "set `check: {timeout: …}`, or smaller sizes in `profiles: {cpu: …}`"
        )


MANY = 256
"""A case with fewer elements takes as long as one with so many: it is calls that cost there."""
