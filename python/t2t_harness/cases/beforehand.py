"""Inputs of a check's cases that a child draws while it waits for its request.

They are made of a declaration and a case alone, so what was drawn serves the same case of the same declaration: once, since a call may write to it. torch is imported only by what
draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from t2t_harness.cases import inputs
from t2t_harness.cases.cases import Case

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration

MOST_BYTES = 32 << 20
"""The most bytes that are drawn."""

_declaration: Declaration | None = None
"""What all that was drawn belongs to."""

_drawn: dict[str, tuple[Case, dict[str, torch.Tensor]]] = {}
"""Inputs by the name of their case."""


def draw(declaration: Declaration, listed: Sequence[Case]) -> Iterator[str]:
    """Draws the inputs of cases on the CPU, one after the other, until there are `MOST_BYTES`; yields the name of each. What was drawn before is forgotten."""
    global _declaration
    _drawn.clear()
    _declaration, room = declaration, MOST_BYTES
    for case in listed:
        made = inputs.make_inputs(declaration, case)
        room -= sum(value.untyped_storage().nbytes() for value in made.values())
        if room < 0:
            return
        _drawn[case.name] = (case, made)
        yield case.name


def keep_for(declaration: Declaration) -> None:
    """Forgets what was drawn for another declaration. What was drawn for an equal one is for this very one from now on."""
    global _declaration
    if declaration != _declaration:
        _drawn.clear()
    _declaration = declaration


def taken(declaration: Declaration, case: Case, device: str) -> dict[str, torch.Tensor] | None:
    """Returns the inputs of a case that were drawn for this very declaration, which are the caller's; None where there are none."""
    if device != "cpu" or declaration is not _declaration:
        return None
    known, made = _drawn.pop(case.name, (None, None))
    return made if known == case else None
