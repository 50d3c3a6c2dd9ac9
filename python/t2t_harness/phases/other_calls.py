"""Calls of a wrapper, and what is done to its inputs, around the call that is observed.

torch is imported only inside functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import calling, cases, declared_inputs, inputs
from t2t_harness.judging import autograd
from t2t_harness.triton import stage

if TYPE_CHECKING:
    import torch

    from t2t_harness.phases.called import Bench
    from t2t_harness.sources.entry import Entry

BETWEEN = 1 << 20
"""What the seed of the inputs of a call between a forward pass and its backward pass is away from the case's own."""


def as_given(
    call: Callable[[], object], given: Mapping[str, torch.Tensor], mutates: Sequence[str]
) -> Callable[[], object]:
    """Returns `call`, before which each time the inputs that it changes, those that `mutates` names, have the values that they have now."""
    import torch

    changed = {name: value for name, value in given.items() if name in mutates}
    values = {name: value.detach().clone() for name, value in changed.items()}

    def again() -> object:
        with torch.no_grad():
            for name, value in changed.items():
                declared_inputs.filled(value, values[name])
        return call()

    return again if changed else call


def update(bench: Bench, case: cases.Case, given: dict[str, torch.Tensor]) -> None:
    """Has the inputs `given` of a case hold other values, in place: what a wrapper keeps of a tensor is not what is in it then."""
    import torch

    other = inputs.make_inputs(bench.request["op"], cases.updated(case), "cuda" if bench.lane == "cuda" else "cpu")
    with torch.no_grad():
        for name, value in given.items():
            value.copy_(other[name])
    autograd.recorded_anew(given)
    bench.synchronize()


def call_between(bench: Bench, case: cases.Case, device: str, label: str, wrapper: Entry) -> None:
    """Calls the wrapper, of a class the same instance, on other inputs: a forward pass that keeps what its backward pass needs where the next call writes shows by that."""
    other = inputs.make_inputs(bench.request["op"], replace(case, seed=case.seed + BETWEEN), device)
    asking = autograd.with_gradients(other, cases.asking(bench.request["op"], case), bench.request["op"]["mutates"])
    again, args, kwargs = arranged(bench, case, asking, label, wrapper)
    with stage.pretending(bench.lane):
        again(*args, **kwargs)
        bench.finish()


def arranged(
    bench: Bench, case: cases.Case, given: dict[str, torch.Tensor], label: str, wrapper: Entry
) -> calling.Arranged:
    """Returns the wrapper and its arguments for the inputs `given`: of a class the same instance as `wrapper`."""
    entry = getattr(wrapper, "__self__", wrapper) if inspect.isclass(bench.entry) else bench.entry
    return calling.arranged(entry, bench.request, case, given, label)


def call_first(bench: Bench, case: cases.Case, device: str, label: str, wrapper: Entry) -> None:
    """Calls an instance as `case` has it called before: with other values, and with other lengths where it says so."""
    first = cases.first(case)
    given = inputs.make_inputs(bench.request["op"], first, device)
    again, args, kwargs = arranged(bench, first, given, label, wrapper)
    again(*args, **kwargs)
