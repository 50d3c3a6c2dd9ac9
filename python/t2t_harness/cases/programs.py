"""Launches of many programs: where a wrapper launches several kernels, a later one may take for granted how many programs an earlier one had.

A wrapper is rehearsed with launches noted and not run. It knows no values, and imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases, probing

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

WORD = "programs"
"""What stands in the name of such a case, and for the size that it is of."""

MOST = 2
"""Most of such cases."""

ELEMENTS = 1 << 19
"""Most elements of an input of such a case. It runs only where the budget of one such case allows it."""

BESIDE = 9
"""So many programs more are tried than a block has places: what one of them left may not count by chance."""

COUNTS = (1024 + BESIDE, 256 + BESIDE)
"""So many programs are tried, the first that there is room for: more than what a block often has."""

DEAREST = 2048 + BESIDE
"""More programs are not interpreted."""

Launched = Callable[[cases.Case], Sequence[tuple[str, int]]]
"""Returns the launches of the wrapper in a case: of each the kernel's name, and the number of its programs. Raises what it raises."""


@dataclass
class Found:
    """What was found out."""

    lengths: list[dict[str, int]] = field(default_factory=list)
    """Those of the cases to add."""
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    """A measured size, the kernel that has more programs there than in any case, and the reason."""


def explored(
    declaration: Declaration,
    sizes: Mapping[str, Mapping[str, int]],
    known: Mapping[str, int],
    integers: Iterable[int],
    launched: Launched,
) -> Found:
    """Returns the cases in which kernels have many programs that have more at the measured `sizes` than in any case: `known` are the most of each kernel. `BESIDE` more than each of the `integers` are tried, too.

    Only calls with several launches count: where there is one, nobody reads what its programs left.
    """
    found, served = Found(), dict(known)
    dtype = declaration["dtypes"][0]
    for size, binding in sorted(sizes.items(), key=lambda one: -math.prod(one[1].values())):
        case = cases.Case(f"{WORD}/{size}/{dtype}", "edge", dtype, dict(binding))
        try:
            launches = launched(case)
        except Exception:
            # What cannot be told of a measured size is told elsewhere.
            continue
        if len(launches) < 2:
            continue
        for kernel, count in most(launches).items():
            wanted = counts(served.get(kernel, 0), count, integers)
            if not wanted:
                continue
            made = next(
                (one for target in wanted if (one := lengths(declaration, case, kernel, target, launched))), None
            )
            if made is None or len(found.lengths) >= MOST:
                reason = f"it has {count} programs there, and {served.get(kernel, 0)} in the cases: more take too much"
                found.missed.append((size, kernel, reason))
            else:
                found.lengths.append(made)
                for name, reached in most(launched(cases.at(case, made))).items():
                    served[name] = max(reached, served.get(name, 0))
            served[kernel] = max(count, served.get(kernel, 0))
    return found


def most(launches: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Returns the most programs that each kernel has in a launch."""
    found: dict[str, int] = {}
    for kernel, count in launches:
        found[kernel] = max(count, found.get(kernel, 0))
    return found


def counts(known: int, full: int, integers: Iterable[int]) -> list[int]:
    """Returns the numbers of programs to try, the largest first, where there are `known` in cases and `full` at a measured size."""
    told = {integer + BESIDE for integer in integers} | set(COUNTS)
    wanted = {count for count in told if known < count <= min(full, DEAREST)}
    if known < full <= COUNTS[-1]:
        wanted.add(full)
    return sorted(wanted, reverse=True)


def lengths(
    declaration: Declaration, case: cases.Case, kernel: str, target: int, launched: Launched
) -> dict[str, int] | None:
    """Returns short lengths, none beyond those of `case`, at which the kernel has at least `target` programs; None where inputs are too large."""
    own = bindings.own_lengths(declaration)
    small = {
        dim: min(length, probing.NARROW) if own.get(dim) is None else length for dim, length in case.binding.items()
    }

    def has(binding: Mapping[str, int]) -> int:
        try:
            return most(launched(cases.at(case, bindings.stepped(declaration, binding)))).get(kernel, 0)
        except Exception:
            return 0

    held = has(small)
    for dim in reversed([dim for dim in probing.loose(declaration) if dim in small]):
        whole = {**small, dim: case.binding[dim]}
        reached = has(whole)
        if reached >= target:
            low, high = small[dim] - 1, case.binding[dim]
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if has({**small, dim: middle}) >= target else (middle, high)
            found = bindings.stepped(declaration, {**small, dim: high})
            return found if probing.fits(declaration, found, ELEMENTS) else None
        if reached > held:
            small, held = whole, reached
    return None


def axes(kernel: str, grid: Sequence[int] | None) -> list[tuple[str, int]]:
    """Returns how many programs a launch has along each axis of its grid, by the kernel's name and the number of the axis."""
    return [(f"{kernel} along {axis}", count) for axis, count in enumerate(grid or ())]


def along(
    declaration: Declaration, sizes: Mapping[str, Mapping[str, int]], known: Mapping[str, int], launched: Launched
) -> list[dict[str, int]]:
    """Returns short lengths at which a grid has several programs along an axis that has several at one of the measured `sizes`, and one in every case: `known` are the most along each. `launched` tells of axes.

    A sum that is split among programs, for one, is split in long rows alone.
    """
    found: list[dict[str, int]] = []
    served = dict(known)
    dtype = declaration["dtypes"][0]
    for size, binding in sorted(sizes.items(), key=lambda one: -math.prod(one[1].values())):
        case = cases.Case(f"{WORD}/{size}/{dtype}", "edge", dtype, dict(binding))
        try:
            counted = most(launched(case))
        except Exception:
            # What cannot be told of a measured size is told elsewhere.
            continue
        for axis, count in counted.items():
            if count < 2 or served.get(axis) != 1 or len(found) >= MOST:
                continue
            made = lengths(declaration, case, axis, 2, launched)
            if made is not None:
                found.append(made)
                served |= {
                    name: max(more, served.get(name, 0)) for name, more in most(launched(cases.at(case, made))).items()
                }
    return found
