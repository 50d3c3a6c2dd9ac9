"""Results that a reference in Python says nothing of: what it makes NaN of where its formula has no value, and what counts for nothing.

A formula in torch's functions makes NaN of `inf - inf` and of `0 · inf`, in its forward pass or in what autograd makes of that. torch's own functions are defined there by torch; what somebody wrote in a few of them is not: a kernel
of another formula has a number there, or an infinity. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, probe_hidden
from t2t_harness.judging import comparing, oracle
from t2t_harness.op import module_state

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration

GRADIENTS = ("grad.", module_state.GRADIENT)
"""What the names of gradients begin with."""

NUMBER = 0.5
"""What stands for a NaN where the reference is asked what it makes of all else."""


def but_unsaid(declaration: Declaration, case: cases.Case, judged: comparing.Judged, name: str) -> comparing.Judged:
    """Returns `judged` where the result `name` counts as right wherever the reference, written in Python, has NaN: of any result in a case in which what does not count is NaN, since the reference says there that it counts; of a gradient in each edge, since autograd multiplies by zero what the forward pass left out."""
    if case.kind != "edge" or not declaration.get("reference") or name not in judged.made:
        return judged
    right = judged.right[name]
    is_unsaid = case.values in probe_hidden.SHOWN or name.startswith(GRADIENTS)
    return _but(judged, name, right.isnan()) if is_unsaid and right.dtype.is_floating_point else judged


def but_of_infinities(
    declaration: Declaration, case: cases.Case, judged: comparing.Judged, name: str, device: str
) -> comparing.Judged | None:
    """Returns `judged` where the result `name` of an edge counts as right wherever the reference, written in Python, has NaN, and has it, too, if each NaN of the inputs is a number: it comes of infinities then, of inputs or of what overflows. None where that is nowhere, or the reference raises."""
    right, made = judged.right[name], judged.made[name]
    if case.kind != "edge" or not declaration.get("reference") or not right.dtype.is_floating_point:
        return None
    if made.shape != right.shape or not (where := right.isnan() & ~made.isnan()).any():
        return None
    try:
        other = oracle.reference(declaration, case, _numbered(judged.given), device).plain[name]
    except (oracle.Refused, KeyError):
        return None
    where &= other.isnan()
    return _but(judged, name, where) if where.any() else None


def _but(judged: comparing.Judged, name: str, where: torch.Tensor) -> comparing.Judged:
    made, right = judged.made[name], judged.right[name]
    if made.shape != right.shape:
        return judged
    return replace(judged, made={**judged.made, name: right.to(made.dtype).where(where, made)})


def _numbered(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the inputs with a number in the place of each NaN, in tensors that lie as they do."""
    return {
        name: value.detach().clone().masked_fill_(value.isnan(), NUMBER) if value.dtype.is_floating_point else value
        for name, value in given.items()
    }
