"""Probes of gradients at corners: zeros in all inputs at once, and arguments at other values that meet zeros and ties.

What a gradient is there is a convention, but where torch's is a number a kernel's is one, too: a quotient of zero and zero is a mistake. Nothing here makes values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, elementwise, probe_meetings, probing, seeds
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

WORD = "corners"
"""What such a case is called."""


def corners(declaration: Declaration, others: Sequence[Case]) -> Iterator[Case]:
    """Yields, for an op that is checked backward, a case in which all inputs have zeros at once, and of the cases `others`, in which one argument differs from what is declared, one with zero for it and one with another number."""
    off = cases.edges_off(declaration)
    if not declaration["backward"] or "zeros" in off or seeds.is_random(declaration):
        return
    yield from at_once(declaration)
    if "kwargs" not in off:
        yield from of_arguments(declaration, others)


def at_once(declaration: Declaration) -> Iterator[Case]:
    """Yields the case in which all inputs have zeros, or the first floating one where there are others than floating ones: of an op that works element by element on several 0 and 1 of either sign in all pairs."""
    floating = probing.of_values(declaration)
    shaped = [given["name"] for given in tensors(declaration) if given["shape"]]
    if len(probing.alike(declaration)) > 1 and elementwise.is_elementwise(declaration):
        small = probing.of_pairs(declaration, probing.rows(declaration))
        yield probe(declaration, "all", Case("", "edge", "", small, values=cases.CORNERS, of=cases.ALL))
    elif floating:
        name = cases.ALL if floating == shaped else floating[0]
        small = probing.rows(declaration)
        yield probe(declaration, "all", Case("", "edge", "", small, values="zeros", of=name))


def of_arguments(declaration: Declaration, others: Sequence[Case]) -> Iterator[Case]:
    """Yields the first case of an argument that is zero, and the first of one that is another positive number, with zeros or ties in the first floating input."""
    floating = probing.of_values(declaration)
    kinds = [kind for kind in probe_meetings.kinds_of(declaration) if kind != probe_meetings.SPECIAL]
    asked = [(*one, case) for case in others if (one := number(declaration, case)) is not None]
    for is_zero in (True, False):
        for name, value, case in [one for one in asked if one[1] >= 0 and (one[1] == 0) == is_zero][:1]:
            for kind in kinds[:1] if floating else ():
                yield probe(declaration, f"{name}={value}", replace(case, values=kind, of=floating[0]))


def number(declaration: Declaration, case: Case) -> tuple[str, float] | None:
    """Returns the only argument of `case` that ops.yaml does not declare so, and its value, if that is a number by which something is computed."""
    changed = probe_meetings.difference(declaration, case)
    if len(changed) != 1 or case.values != "declared":
        return None
    ((name, value),) = changed.items()
    is_number = probing.is_plain(value) and not probe_meetings.is_decision(value)
    return (name, value) if is_number and name not in probe_meetings.ELSEWHERE else None  # type: ignore[return-value]


def probe(declaration: Declaration, label: str, case: Case) -> Case:
    """Returns `case` as the probe of that `label`, with a budget of its own."""
    dtype = declaration["dtypes"][0]
    return replace(case, name=f"edge/{WORD}[{label}]/{dtype}", dtype=dtype, is_probe=True, asks=(), has_own_budget=True)


def is_corner(case: Case) -> bool:
    """Tells whether of `case` nothing is asked but that gradients are numbers."""
    return case.is_probe and case.name.startswith(f"edge/{WORD}[")
