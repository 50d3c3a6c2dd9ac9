"""What is right for the cases of an op, remembered by a judge that stays on a device: the variants of an op are judged one after the other, on the same inputs.

Inputs that a child prepared are read anew for each variant. Nothing is remembered where a judge does not stay.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, inputs
from t2t_harness.faults import memory
from t2t_harness.judging import footprint, oracle, taken

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import JudgeRequest

REMEMBERED = 64
"""One part of so many of the device's memory is what is remembered at most."""

Known = dict[str, tuple[dict[str, "torch.Tensor"], oracle.Reference]]

_known: dict[str, Known] = {}
"""Op → case → its inputs and what is right. Of one op at most."""


def of(request: JudgeRequest, case: cases.Case, device: str) -> tuple[dict[str, torch.Tensor], oracle.Reference]:
    """Returns the inputs of `case` on `device` and what is right. They may be another judgement's, too, and must not be changed.

    Raises oracle.Refused where torch refuses the case.
    """
    if device != "cuda" or request["prepared"] is not None:
        return made(request, case, device)
    op = json.dumps(request["op"], sort_keys=True)
    if op not in _known:
        _known.clear()
    known = _known.setdefault(op, {})
    name = json.dumps(case.facts(), sort_keys=True)
    if name in known:
        return known[name]
    found = made(request, case, device)
    if is_little(device):
        known[name] = found
    return found


def made(request: JudgeRequest, case: cases.Case, device: str) -> tuple[dict[str, torch.Tensor], oracle.Reference]:
    """Returns the inputs of `case` and what is right, made now. Raises oracle.Refused where torch refuses the case, or needs too much memory for a probe."""
    given = inputs.inputs_of(request["op"], case, device, request["prepared"])
    if (elements := footprint.too_large(request["op"], case, given)) is not None:
        raise oracle.Refused(f"what is right has a tensor of {elements:,} elements on the way, too many for a probe")
    home = taken.shapes_of(request["op"], case, given) if device == "cuda" else None
    right = oracle.reference(request["op"], case, given, device)
    if home is not None and home != taken.shapes(right):
        raise oracle.Refused("torch's results on the CPU have other shapes than on the device")
    return given, right


def is_little(device: str) -> bool:
    """Tells whether this process holds little enough of the device to keep it."""
    import torch

    return torch.cuda.memory_allocated(device) <= memory.part_of_device(REMEMBERED)
