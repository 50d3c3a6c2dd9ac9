"""Results that were computed, or kept, in a narrower type than torch's: every element shows it, and no tolerance does. torch is imported only inside functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from t2t_harness.judging import comparing, form, oracle
from t2t_harness.judging.finding import Finding
from t2t_harness.judging.trial import Trial

if TYPE_CHECKING:
    import torch

    from t2t_harness.cases import cases

NARROWED = 8
"""So many elements that a narrower type does not hold tell that torch's result is of the wider one."""


def to_single(trial: Trial, tensors: Mapping[str, torch.Tensor], right: oracle.Reference) -> Finding | None:
    """Returns that a result of float64 was computed in float32, which all its elements show and no tolerance does, or None."""
    import torch

    def is_wide(value: torch.Tensor) -> torch.Tensor:
        return value.isfinite() & (value != value.float().double())

    for name, expected in right.plain.items():
        if expected.dtype != torch.float64 or form.is_after(name) or comparing.is_ignored(trial.declaration, name):
            continue
        if int(is_wide(expected).sum()) >= NARROWED and not is_wide(tensors[f"a.{name}"]).any():
            called = oracle.result_name(trial.declaration, right, name)
            what = f"{called}: " if called else ""
            return Finding(
                "mismatch",
                f"{what}every element is a number of float32, torch's are of float64: it is computed in float32",
            )
    return None


def to_half(
    trial: Trial, case: cases.Case, tensors: Mapping[str, torch.Tensor], right: oracle.Reference
) -> Finding | None:
    """Returns that a result of float32, in a case of a type of 16 bits, was rounded to that type, which all its elements show and no tolerance does, or None: a state that is summed up over many calls would stand still."""
    import torch

    if case.dtype not in ("float16", "bfloat16"):
        return None
    narrow = getattr(torch, case.dtype)

    def is_wide(value: torch.Tensor) -> torch.Tensor:
        return value.isfinite() & (value != value.to(narrow).float())

    for name, expected in right.plain.items():
        if expected.dtype != torch.float32 or comparing.is_ignored(trial.declaration, name):
            continue
        if int(is_wide(expected).sum()) >= NARROWED and not is_wide(tensors[f"a.{name}"]).any():
            called = oracle.result_name(trial.declaration, right, name)
            what = f"{called}: " if called else ""
            words = f"every element is a number of {case.dtype}, torch's are of float32: it is rounded to that"
            return Finding("mismatch", f"{what}{words}")
    return None
