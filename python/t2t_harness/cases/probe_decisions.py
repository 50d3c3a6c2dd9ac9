"""Probes of words, flags and infinite orders in a row that is longer than the kernel's blocks: each has code of its own, of which a loop may be missing. Nothing here makes values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases, literals, probe_meetings, probing
from t2t_harness.cases.cases import Case

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import VariantRequest

MOST = 2
"""So many arguments are tried."""


def long(
    request: VariantRequest, known: Sequence[Case], others: Sequence[Case], read: Sequence[literals.Nodes]
) -> Iterator[Case]:
    """Yields, of the cases `others`, the first in which one argument alone is another flag, word or infinite order, of up to so many arguments, with a last dim that is longer than the integers of the kernel's files `read` and than what blocks led to among the `known` cases. Where that takes too many operations it is tried at a half and a quarter."""
    declaration = request["op"]
    binding = beyond(request, known, read)
    if binding is None or "kwargs" in cases.edges_off(declaration):
        return
    dims = probing.loose(declaration)
    firsts: dict[str, object] = {}
    for case in others:
        changed = [*probe_meetings.difference(declaration, case).items()]
        if len(changed) == 1 and probe_meetings.is_decision(changed[0][1]):
            name, value = changed[0]
            if name not in (*probe_meetings.ELSEWHERE, *firsts):
                firsts[name] = value
    for name, value in islice(firsts.items(), MOST):
        kwargs = {**declaration["kwargs"], name: value}
        label = f"kwarg[{name}={value},{dims[-1]}={binding[dims[-1]]}]"
        yield probing.probe(declaration, label, binding, kwargs=kwargs, values="ends", has_own_budget=True)


def beyond(request: VariantRequest, known: Sequence[Case], read: Sequence[literals.Nodes]) -> dict[str, int] | None:
    """Returns lengths of which the last dim's is above the integers of the kernel's files `read` and what blocks led to among the `known` cases; None where none fits."""
    declaration, lane = request["op"], request["lane"]
    dims = probing.loose(declaration)
    if not dims or declaration.get("random") or "blocks" in cases.edges_off(declaration):
        return None
    rows = probing.NARROW if lane == "cuda" else 1
    limit = bindings.reach_limit(lane)
    led = [case.binding.get(dims[-1], 0) for case in known]
    lengths = sorted({*led, *(value + 1 for value in literals.of_files(read)), probing.LONG[0]}, reverse=True)
    tried = (probing.bound(declaration, {dims[-1]: length}, rows) for length in lengths)
    return next((one for one in tried if probing.fits(declaration, one, limit)), None)
