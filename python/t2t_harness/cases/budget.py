"""The budget of probes on the interpreter: a share of what the other cases did, in operations and not in seconds, so that it is the same in every run.

A probe that would do more than is left is stopped, and left out. It knows nothing of values.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2t_harness.cases import capped, cases, programs
from t2t_harness.triton import effort

SHARE = 0.5
"""What all probes may do, as a part of what all other cases did."""

LEAST = 32000.0
"""What they may do however little the others did, in operations: some 400 ms of a slow core."""

OWN = 12000.0
"""What each of those may do that have a budget of their own: a long dim is worth most, and small blocks make it dear."""

GRID = 4 * OWN
"""What one may do whose grid has as many programs as it ever has: few kernels have such a grid."""

WIDE = (capped.WORD, programs.WORD, "literal", "multiple")
"""What cases are called whose grid, or whose row, is as long as it has to be."""

SHAPED = 6 * OWN
"""What one may do that cannot be made smaller: inputs have shapes of their own there, or as few places as say something."""

CALL = 250.0
"""What a case costs beside the operations of its kernel, in operations."""

PART = 0.8
"""The most that one probe may do of what is left."""

DEAR = 0.4
"""The same of one that does more than `OWN`."""

KEPT = 0.2
"""The part that is for drawn shapes alone."""

FAIR = 0.12
"""The part of what is left that a probe takes if it can be made smaller: so that those behind it have their turn."""

LIKELY = 0.9
"""A probe is not begun where it would do more than this part of that, by what others did for an element."""

FEW = 64
"""A case of fewer elements does as much as one of so many."""


@dataclass
class Budget:
    """What is left for the probes of a check; everything, where nothing is interpreted."""

    is_limited: bool
    is_backward: bool = False
    """Whether a case has a backward pass, too: those of many programs may do five times as much."""
    left: float = 0.0
    kept: float = 0.0
    """What is left for drawn shapes, apart from the others: what these come to differs from build to build, and decides nothing else."""
    others: float = 0.0
    """What the other cases did."""
    rate: float = 0.0
    """What a run did for an element of its inputs, at least: of the runs so far, the one that did least."""

    def note(self, case: cases.Case, elements: int, runs: int, before: float) -> None:
        """Takes that `case`, of so many `elements`, was run so often, since the meter stood at `before`."""
        done = effort.METER.done - before
        if runs and elements >= FEW:
            rate = done / runs / elements
            self.rate = min(self.rate or rate, rate)
        done += CALL * max(runs, 1)
        if is_drawn(case):
            self.kept -= done
        elif case.has_own_budget:
            pass
        elif case.is_probe:
            self.left -= done
        else:
            self.others += done

    def open(self, dtypes: int = 1) -> None:
        """Starts the budget for the probes of an op with so many `dtypes`. Each but the first adds half as much to the least."""
        whole = max(SHARE * self.others, LEAST * (1 + dtypes) / 2)
        self.kept = KEPT * whole
        self.left = whole - self.kept

    def allowance(self, case: cases.Case, elements: int, is_whole: bool = False) -> float | None:
        """Returns the operations that `case`, of so many `elements`, may do, 0 where it is not begun; None where nothing limits it. `is_whole` says that it is not made smaller."""
        if not case.is_probe or not self.is_limited:
            return None
        if case.has_own_budget:
            if case.name.startswith(f"edge/{cases.COUNTED}[") or is_whole:
                return SHAPED
            is_wide = case.name.startswith(tuple(f"edge/{word}[" for word in WIDE))
            return (5 * GRID if self.is_backward else GRID) if is_wide else OWN if cases.has_lengths(case) else SHAPED
        left = self.kept if is_drawn(case) else self.left
        most = max(min(PART * (left - CALL), OWN), DEAR * (left - CALL), 0.0)
        return most if self.rate * max(elements, FEW) <= LIKELY * most else 0.0

    def is_fair(self, elements: int) -> bool:
        """Tells whether a probe of so many `elements` would stay within its share of what is left; one with the fewest elements always does."""
        return elements <= FEW or not self.is_limited or self.rate * elements + CALL <= FAIR * self.left


def is_drawn(case: cases.Case) -> bool:
    """Tells whether a case has a drawn shape."""
    return case.is_probe and case.name.startswith("edge/drawn-")
