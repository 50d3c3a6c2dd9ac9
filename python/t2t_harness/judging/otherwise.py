"""Other ways in which torch computes the same. Results of unusual values may be right by one of them: how far a NaN spreads depends on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, called_with, cases, elementwise
from t2t_harness.judging import autograd, oracle
from t2t_harness.judging.oracle import Reference

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case


def is_asked(declaration: Declaration, case: Case, class_: str | None, device: str) -> bool:
    """Tells whether a result that is wrong beside torch's own in `case` may be right by another way: where it has NaN or infinities in other places, of undeclared values, and on a device in each edge case that the CPU computes soon, since some of torch's functions for a device differ there from those for the CPU."""
    if case.kind != "edge":
        return False
    is_odd = class_ == "nan" and case.values != "declared"
    is_soon = cases.elements(declaration, case) <= bindings.reach_limit("cuda")
    return is_odd or (device != "cpu" and is_soon)


def references(
    declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], device: str
) -> Iterator[Reference]:
    """Yields torch's results for `given`, which are on the CPU, by each other way that there is: as they come where `device` is another one, by the formula of attention or of distances, and with means by sums."""
    ways = (by_formula,) if device == "cpu" else (contextlib.nullcontext, by_formula)
    for way in ways:
        try:
            with way():
                other = by_differences(declaration, case)
                right = oracle.reference(declaration, other, given, flows=flows_of(device))
        except (oracle.Refused, RuntimeError, KeyError, ValueError):
            continue
        yield right
        if (summed := by_sums(declaration, case, given, right)) is not None:
            yield summed


@contextlib.contextmanager
def by_formula() -> Iterator[None]:
    """Has torch compute attention as its formula says, in matrix products: its faster ways differ in how far a NaN spreads, by length."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        yield


def by_differences(declaration: Declaration, case: Case) -> Case:
    """Returns the case in which torch computes distances of many points as it does those of few, by differences; any other op's as it is. By products it has NaN where a distance is infinite."""
    if elementwise.name_of(declaration) != "cdist":
        return case
    kwargs = declaration["kwargs"] if case.kwargs is None else case.kwargs
    return replace(case, kwargs={**kwargs, "compute_mode": "donot_use_mm_for_euclid_dist"})


def flows_of(device: str) -> oracle.Flows:
    """Returns the gradients that flow into outputs on the CPU where they are drawn on `device`: other generators draw other values."""

    def flows(outputs: Sequence[object], case: Case) -> dict[int, torch.Tensor]:
        import torch

        there = [
            torch.empty_like(one, device=device).requires_grad_(one.requires_grad)
            if isinstance(one, torch.Tensor)
            else one
            for one in outputs
        ]
        return {position: value.cpu() for position, value in autograd.upstream_gradients(there, case).items()}

    return flows


MEANS = ("var_mean", "std_mean")
"""Functions whose second output is the mean of what their first one is of."""


def by_sums(
    declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], right: Reference
) -> Reference | None:
    """Returns `right` with means as sums make them, None for any other op. torch updates the mean of a row value by value beside a variance (Welford), so that an infinity leaves NaN; on the CPU not where it is the last one."""
    if elementwise.name_of(declaration) not in MEANS or right.oracle is None:
        return None
    kwargs = called_with.kwargs_of(declaration, case)
    value = next(iter(given.values()))
    mean = value.mean(dim=kwargs.get("dim"), keepdim=bool(kwargs.get("keepdim")))
    wide = value.double().mean(dim=kwargs.get("dim"), keepdim=bool(kwargs.get("keepdim"))).to(mean.dtype)
    return replace(right, plain={**right.plain, "1": mean}, oracle={**right.oracle, "1": wide})
