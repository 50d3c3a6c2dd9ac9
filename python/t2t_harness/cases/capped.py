"""Kernels whose grid stops growing: beyond that each program does more than one piece, and what it leaves out shows only there.

A wrapper is rehearsed with launches noted and not run. It knows no values, and imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases, probing

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

ELEMENTS = 1 << 19
"""Most elements of an input of a case of such a length. It runs only where the budget of one such case allows it."""

WORD = "grid"
"""What stands in the name of such a case, and for the size that it is of."""

TIMES = (1.25, 2.25)
"""How much there is to do, in what the programs do at once."""

MOST = 4
"""Most of such cases."""

Programs = Callable[[cases.Case], Mapping[tuple[str, str], int]]
"""Returns how many programs the wrapper launches of each kernel with its constants in a case. Raises what it raises."""


def lengths(declaration: Declaration, programs: Programs) -> list[dict[str, int]]:
    """Returns the lengths of cases in which a kernel has as many programs as it ever has, and `TIMES` as much to do as at the shortest length at which it has: programs that do a second piece, and a third one."""
    dims = probing.loose(declaration)
    found: list[dict[str, int]] = []
    known: set[tuple[str, str]] = set()
    for dim in dict.fromkeys((*dims[-1:], *dims[:1])):
        for path, length in of_dim(declaration, dim, programs).items():
            for times in TIMES if path not in known else ():
                binding = bound(declaration, dim, int(times * length) | 1)
                if probing.fits(declaration, binding, ELEMENTS) and len(found) < MOST:
                    known.add(path)
                    found.append(binding)
    return found


def bound(declaration: Declaration, dim: str, length: int) -> dict[str, int]:
    """Returns lengths of which that of `dim` alone is long."""
    return probing.bound(declaration, {dim: length}, probing.NARROW)


def of_dim(declaration: Declaration, dim: str, programs: Programs) -> dict[tuple[str, str], int]:
    """Returns the kernels whose programs grow in number with the length of `dim`, and do so no more in the end, with the shortest length at which they do not."""
    first = declaration["dtypes"][0]

    def at(length: int) -> Mapping[tuple[str, str], int]:
        try:
            return programs(cases.Case(f"{WORD}/{dim}/{first}", "edge", first, bound(declaration, dim, length)))
        except Exception:
            return {}

    most = ELEMENTS * 64 // max(bindings.largest(declaration, bound(declaration, dim, 64)), 1)
    if most < 64:
        return {}
    half, whole = at(most // 2), at(most)
    found = {}
    for path, count in whole.items():
        if count < 2 or half.get(path) != count:
            continue
        low, high = 1, most // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if at(middle).get(path) == count else (middle, high)
        if high > probing.NARROW:
            found[path] = high
    return found
