"""Probes of ops whose inputs say where segments of rows begin and end: segments of many rows, with the declared arguments and with others. Nothing here makes values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import (
    arguments_known,
    bindings,
    cases,
    probe_indices,
    probe_meetings,
    probe_raised,
    probing,
    seeds,
)
from t2t_harness.cases.cases import Case
from t2t_harness.op import expression
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

WORD = "segments"
"""What such a case is called."""

ROWS = (131, 67, 37)
"""So many rows lie in the segments of a case: several blocks of them, and no multiple of a block. The first that fits is used, and none with fewer than the last."""

ENDS = 4
"""So many ends of segments there are: three segments have about ROWS / 3 rows each."""

ARGUMENTS = 6
"""So many arguments are tried with them."""


WORDS = 3
"""So many words of one of them: each has code of its own."""

WINDOW = 5
"""Whole numbers are this, too: a window ends within a block, and another one in the block before it."""


def segments(declaration: Declaration, others: Sequence[Case], limit: int) -> Iterator[Case]:
    """Yields a case of three segments of many rows, and with these, of the cases `others`, those in which one argument differs from what is declared: in short rows segments have one or two each, and nothing of a flag or of a window shows. They take no other's place; no input has more than `limit` elements."""
    dims = divided(declaration)
    if not dims or seeds.is_random(declaration) or "shapes" in cases.edges_off(declaration):
        return
    ends = {str(dim): ENDS - more for dim, more in counted(declaration).items()}
    wanted = ({**ends, **dict.fromkeys(dims, rows)} for rows in ROWS)
    bound = (probing.bound(declaration, lengths, probing.NARROW) for lengths in wanted)
    binding = next((found for found in bound if probing.fits(declaration, found, limit)), None)
    if binding is None:
        return
    at = ",".join(f"{dim}={binding[dim]}" for dim in dims)
    yield probing.probe(declaration, f"{WORD}[{at}]", binding, has_own_budget=True)
    if probe_raised.is_exponential(declaration) and "large" not in cases.edges_off(declaration):
        # What a block of a segment says of its largest value shows where others have larger ones. One segment has all rows.
        word, one = (
            f"{WORD}[{at},{probe_raised.RAISED}]",
            {dim: max(length - ENDS + 2, 1) for dim, length in ends.items()},
        )
        single = probing.bound(declaration, {**binding, **one}, probing.NARROW)
        high = probing.probe(declaration, word, single, values=probe_raised.RAISED, of=cases.ALL)
        yield probing.forward(declaration, replace(high, has_own_budget=True))
    if "limits" not in cases.edges_off(declaration):
        # One of them has all rows, and the others have none.
        far = probing.probe(declaration, f"{WORD}[{at},{cases.BOUNDS}]", binding, values=cases.BOUNDS)
        yield replace(far, has_own_budget=True)
    if absent := tuple(given["name"] for given in tensors(declaration) if given.get("optional")):
        label = f"{WORD}[{at},without-{cases.JOINED.join(absent)}]"
        yield probing.probe(declaration, label, binding, absent=absent, has_own_budget=True)
    for dtype in declaration["dtypes"][1:]:
        yield probing.probe(declaration, f"{WORD}[{at}]", binding, dtype=dtype, has_own_budget=True)
    tried: dict[str, int] = {}
    for name, value, case in probe_meetings.changes(declaration, others):
        is_new = name not in tried and len(tried) < ARGUMENTS
        if name in arguments_known.DIMS or not (is_new or (isinstance(value, str) and 0 < tried.get(name, 0) < WORDS)):
            continue
        tried[name] = tried.get(name, 0) + 1
        label = f"edge/{probe_meetings.word(case, at)}/{case.dtype}"
        yield replace(case, name=label, binding=binding, has_own_budget=True)
        if type(value) is int and declaration["kwargs"].get(name) != WINDOW:
            kwargs = {**declaration["kwargs"], **(case.kwargs or {}), name: WINDOW}
            yield probing.probe(
                declaration, f"kwarg[{name}={WINDOW},{at}]", binding, kwargs=kwargs, has_own_budget=True
            )


def is_of_segments(declaration: Declaration, case: Case) -> bool:
    """Tells whether `case` is a probe with so many rows in segments that these lie in several blocks, and with a budget of its own: with fewer rows it would not say what it is for."""
    return case.has_own_budget and any(case.binding.get(dim) in ROWS for dim in divided(declaration))


def divided(declaration: Declaration) -> list[str]:
    """Returns the dims that are divided into segments: those that offsets, or integers in order from 0 on, are drawn up to."""
    found: set[str] = set()
    for given in tensors(declaration):
        init = given["init"]
        if init["kind"] == "offsets" and isinstance(init["total"], str):
            found.update(expression.names(init["total"]))
        if init["kind"] == "sorted" and given["name"] in probe_indices.bounded(declaration):
            found |= bindings.pointed_into(declaration)
    # One that says how many segments there are makes them no longer.
    found -= counted(declaration).keys()
    return [dim for dim in probing.free(declaration) if dim in found]


def counted(declaration: Declaration) -> dict[str, int]:
    """Returns the dims that say how many segments there are, each with what is added to it to make the number of their ends: 0, or 1 for `B + 1`."""
    found: dict[str, int] = {}
    for given in tensors(declaration):
        last = str(given["shape"][-1]).replace(" ", "") if given["shape"] else ""
        if given["init"]["kind"] in ("offsets", "sorted"):
            for dim in probing.free(declaration):
                if last in (dim, f"{dim}+1", f"1+{dim}"):
                    found[dim] = int(last != dim)
    return found
