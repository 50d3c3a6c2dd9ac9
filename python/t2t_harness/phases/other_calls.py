"""Calls of a wrapper, and what is done to its inputs, around the call that is observed.

torch is imported only inside functions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import calling, cases, inputs
from t2t_harness.judging import autograd
from t2t_harness.triton import stage

if TYPE_CHECKING:
    import torch

    from t2t_harness.phases.called import Bench

BETWEEN = 1 << 20
"""What the seed of the inputs of a call between a forward pass and its backward pass is away from the case's own."""


def update(bench: Bench, case: cases.Case, given: dict[str, torch.Tensor]) -> None:
    """Has the inputs `given` of a case hold other values, in place: what a wrapper keeps of a tensor is not what is in it then."""
    import torch

    other = inputs.make_inputs(bench.request["op"], cases.updated(case), "cuda" if bench.lane == "cuda" else "cpu")
    with torch.no_grad():
        for name, value in given.items():
            value.copy_(other[name])
    bench.synchronize()


def call_between(bench: Bench, case: cases.Case, device: str, label: str) -> None:
    """Calls the wrapper on other inputs: a forward pass that keeps what its backward pass needs where the next call writes shows by that."""
    other = inputs.make_inputs(bench.request["op"], replace(case, seed=case.seed + BETWEEN), device)
    wrapper, args, kwargs = calling.arranged(bench.entry, bench.request, case, autograd.with_gradients(other), label)
    with stage.pretending(bench.lane):
        wrapper(*args, **kwargs)
        bench.finish()
