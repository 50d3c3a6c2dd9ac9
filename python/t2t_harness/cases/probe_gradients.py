"""Probes of a backward pass: which inputs ask for gradients, into which outputs gradients flow, what was changed before, and whether it runs twice. Nothing here makes values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import changed, tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

TWICE = "gradients-twice"
"""The case whose backward pass runs twice: what is written over in the first pass is not asked for where the gradient that comes in may be."""

CHANGED = "gradients-changed"
"""The case whose outputs are changed in place before the backward pass."""

ALONE = 6
"""So many inputs ask for a gradient alone, each in a case."""


def gradients(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which no gradient is asked for, some in which one input alone asks for one, the first ones or the last of several, one whose outputs are changed in place before the backward pass, and one whose backward pass runs twice."""
    if not declaration["backward"]:
        return
    inputs = [given for given in tensors(declaration) if given.get("list") is None]
    names = [given["name"] for given in inputs if (given["dtype"] or declaration["dtypes"][0]) in cases.FLOATING]
    names = [name for name in names if name in asked] if (asked := declared_asking(declaration)) else names
    small = probing.rows(declaration)
    yield probing.probe(declaration, "gradients-off", small, asks=cases.NOBODY)
    for name in dict.fromkeys((names[0], names[-1], *names[1 : ALONE - 1])) if len(names) > 1 else ():
        yield probing.probe(declaration, f"gradients[{name}]", small, asks=(name,), has_own_budget=True)
    if len(names) > 2:
        # What comes first in a network asks for none.
        word = f"gradients[without-{names[0]}]"
        yield probing.probe(declaration, word, small, asks=tuple(names[1:]), has_own_budget=True)
    compared = [place for place, how in enumerate(declaration.get("outputs") or ()) if how["compare"] == "close"]
    for place in compared[:ALONE] if len(compared) > 1 else ():
        # A backward pass may take the gradient of another output for granted.
        yield probing.probe(declaration, f"gradients-of[{place}]", small, uses=(place,), has_own_budget=True)
    if not changed(declaration):
        if not declaration.get("random"):
            yield probing.probe(declaration, CHANGED, small, is_changed=True, has_own_budget=True)
        # What may write over its inputs may do so in the backward pass, which then has no second one.
        yield probing.probe(declaration, TWICE, small, is_twice=True, has_own_budget=True)


def declared_asking(declaration: Declaration) -> list[str]:
    """Returns the inputs that ops.yaml has ask for a gradient."""
    return [given["name"] for given in tensors(declaration) if given.get("requires_grad")]
