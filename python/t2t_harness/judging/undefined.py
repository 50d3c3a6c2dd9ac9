"""Results that a reference in Python says nothing of: what it makes NaN of where its formula has no value, and what counts for nothing.

A formula in torch's functions makes NaN of `inf - inf` and of `0 · inf`, in its forward pass or in what autograd makes of that. torch's own functions are defined there by torch; what somebody wrote in a few of them is not: a kernel
of another formula has a number there, or an infinity. torch is imported only inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, eights, probe_hidden, reference_code
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


def known(
    declaration: Declaration,
    case: cases.Case,
    judged: comparing.Judged,
    name: str,
    right: oracle.Reference,
    device: str,
) -> tuple[comparing.Judged, oracle.Reference] | None:
    """Returns what the result `name` of an edge is judged by where the reference, written in Python, has NaN and the kernel has none; None where that leaves all as it is, or the reference raises.

    Where the reference has NaN, too, with a number in the place of each NaN of the inputs, that comes of infinities, of inputs or of what overflows: any result is right. Where it has one and the same number whatever stands for each NaN, as behind
    a mask in an attention that multiplies by weights of zero, that number is right, too.
    """
    plain, made = right.plain[name], judged.made[name]
    if case.kind != "edge" or not declaration.get("reference") or not plain.dtype.is_floating_point:
        return None
    if made.shape != plain.shape or not (where := plain.isnan() & ~made.isnan()).any():
        return None
    if reference_code.writes_nan(declaration) and _is_finite(judged.given):
        # It says where there is no value, as where a window holds too few.
        return None
    try:
        one, low, high = (
            oracle.reference(declaration, case, _numbered(judged.given, number), device) for number in NUMBERS
        )
        anything = where & one.plain[name].isnan()
        # An infinity hides a larger number, as it does in a maximum, and no NaN.
        least, most = _narrow(low.plain[name]), _narrow(high.plain[name])
        same = where & (least == most) & most.isfinite()
    except (oracle.Refused, KeyError):
        return None
    if not (anything | same).any():
        return None
    wide = right.oracle
    if wide is not None and high.oracle is not None:
        wide = {**wide, name: high.oracle[name].where(same, wide[name])}
    number = replace(right, plain={**right.plain, name: high.plain[name].where(same, plain)}, oracle=wide)
    return _but(replace(judged, right=number.plain), name, anything), number


def decided_by_nan(
    declaration: Declaration,
    case: cases.Case,
    judged: comparing.Judged,
    name: str,
    right: oracle.Reference,
    device: str,
) -> comparing.Judged | None:
    """Returns `judged` where the result `name` of an edge counts as right wherever the reference, written in Python, has a number that depends on what stands for a NaN of the inputs: it has compared a NaN with something, which nobody asked it to. None where that leaves all as it is, or the reference raises.

    Where what does not count is NaN, any result is right there: the reference reads it. Elsewhere a NaN is, and any integer; not of booleans, nor where the reference asks for NaN by name.
    """
    plain, made = right.plain[name], judged.made[name]
    if case.kind != "edge" or not declaration.get("reference") or made.shape != plain.shape:
        return None
    is_hidden = case.values in probe_hidden.SHOWN
    if _has_no_nan(judged.given) or (not is_hidden and asks_for_nan(declaration)):
        return None
    where = ~_narrow(plain).isnan()
    if not is_hidden and plain.dtype.is_floating_point:
        where &= _narrow(made).isnan()
    if not where.any() or (not is_hidden and str(plain.dtype) == "torch.bool"):
        return None
    depends = where & False
    try:
        for number in NUMBERS:
            other = oracle.reference(declaration, case, _numbered(judged.given, number), device).plain[name]
            depends |= where & (_narrow(other) != _narrow(plain))
    except (oracle.Refused, KeyError):
        return None
    return _but(judged, name, depends) if depends.any() else None


def asks_for_nan(declaration: Declaration) -> bool:
    """Tells whether the code of the op's reference asks which numbers are NaN, or finite, or writes one."""
    return reference_code.writes_nan(declaration) or not ASKING.isdisjoint(reference_code.names_called(declaration))


ASKING = frozenset(
    "isnan isfinite isinf isposinf isneginf nan_to_num nan_to_num_ nansum nanmean nanmedian nanquantile fmax fmin".split()
)
"""What asks for NaN, or is defined beside it, by name."""


def _has_no_nan(given: Mapping[str, torch.Tensor]) -> bool:
    floating = (value for value in given.values() if value.dtype.is_floating_point)
    return not any(bool(_narrow(value).isnan().any()) for value in floating)


def _narrow(value: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of float8 as one of float32, of whose numbers torch answers more; any other as it is."""
    return value.float() if value.dtype.is_floating_point and value.dtype.itemsize == 1 else value


def _is_finite(given: Mapping[str, torch.Tensor]) -> bool:
    floating = (value for value in given.values() if value.dtype.is_floating_point)
    return all(bool(_narrow(value).isfinite().all()) for value in floating)


def _but(judged: comparing.Judged, name: str, where: torch.Tensor) -> comparing.Judged:
    made, right = judged.made[name], judged.right[name]
    if made.shape != right.shape:
        return judged
    return replace(judged, made={**judged.made, name: right.to(made.dtype).where(where, made)})


def _large(dtype: torch.dtype) -> float:
    """Returns a number of a type that is larger than all that is drawn, and of which no product with another one is infinite: among small ones the largest of a row may be another element."""
    import torch

    return math.sqrt(torch.finfo(dtype).max)


NUMBERS: tuple[Callable[[torch.dtype], float], ...] = (lambda _: NUMBER, lambda dtype: -_large(dtype), _large)
"""What stands for a NaN, by its type, one after the other."""


def _numbered(given: Mapping[str, torch.Tensor], number: Callable[[torch.dtype], float]) -> dict[str, torch.Tensor]:
    """Returns the inputs with the number of their type in the place of each NaN, in tensors that lie as they do."""

    def filled(value: torch.Tensor) -> torch.Tensor:
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype in eights.EIGHTS:
            wide = value.float()
            return value.detach().clone().copy_(wide.masked_fill(wide.isnan(), number(value.dtype)))
        if dtype not in cases.FLOATING:
            return value
        return value.detach().clone().masked_fill_(value.isnan(), number(value.dtype))

    return {name: filled(value) for name, value in given.items()}
