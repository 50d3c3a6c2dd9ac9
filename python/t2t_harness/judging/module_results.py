"""Which of a reference's own results, gradients of its parameters and buffers after the call, are asked of a kernel: those of what its module has by the same name, in the same shape and with the same values before the call.

It does not know the values of results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import cases
from t2t_harness.judging import kept, oracle
from t2t_harness.judging.finding import Finding
from t2t_harness.judging.trial import Trial
from t2t_harness.op import module_state

if TYPE_CHECKING:
    import torch


def known(trial: Trial, right: oracle.Reference, tensors: Mapping[str, torch.Tensor]) -> oracle.Reference:
    """Returns `right` without the results of a module that the kernel, whose results are `tensors`, has none of; notes those."""
    asked = [name for name in right.plain if module_state.is_of_module(name)]
    missing = {name for name in asked if not is_there(tensors, name, right)}
    if not missing:
        return right
    trial.lacking |= dict.fromkeys(sorted(missing))
    return replace(right, plain={name: value for name, value in right.plain.items() if name not in missing})


def overwritten(case: cases.Case, right: oracle.Reference, tensors: Mapping[str, torch.Tensor]) -> Finding | None:
    """Returns that the call changed a parameter or a buffer of the kernel's class that the reference leaves as it is, where both began with the same values, or None."""
    if case.is_again and case.weights:
        # They got other values in between.
        return None
    for name in sorted(right.kept):
        began, ended = f"{module_state.BEGAN}{name}", f"{module_state.ENDED}{name}"
        own, after, first = tensors.get(f"a.{began}"), tensors.get(f"a.{ended}"), right.began[began]
        if own is None or own.shape != kept_shape(first) or not raw(own).equal(raw(kept.dense(first))):
            continue
        if after is not None and not (after.shape == own.shape and raw(after).equal(raw(own))):
            return Finding(
                "mutated-input", f"`{name}` of the kernel's class is changed, which the reference leaves as it is"
            )
    return None


def is_there(tensors: Mapping[str, torch.Tensor], name: str, right: oracle.Reference) -> bool:
    """Tells whether the result `name` was kept, in the shape of torch's, and of what began with the values that torch's began with; complex ones are kept as pairs."""
    made, expected, began = tensors.get(f"a.{name}"), right.plain[name], module_state.began_of(name)
    if made is None or made.shape != kept_shape(expected):
        return False
    own, first = tensors.get(f"a.{began}"), right.began.get(began)
    if own is None or first is None or own.shape != kept_shape(first):
        return False
    return raw(own).equal(raw(kept.dense(first)))


def raw(value: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of a dense tensor, on the CPU: what is NaN is compared, too."""
    import torch

    return value.cpu().reshape(-1).view(torch.uint8)


def kept_shape(value: torch.Tensor) -> tuple[int, ...]:
    """Returns the shape in which a result like `value` is kept."""
    return (*value.shape, 2) if value.dtype.is_complex else tuple(value.shape)
