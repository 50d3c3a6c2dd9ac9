"""Other ways in which torch computes the same. Results of unusual values may be right by one of them: how far a NaN spreads depends on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import elementwise
from t2t_harness.cases import inputs as making
from t2t_harness.judging.oracle import Reference

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case


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


MEANS = ("var_mean", "std_mean")
"""Functions whose second output is the mean of what their first one is of."""


def by_sums(declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], right: Reference) -> Reference:
    """Returns `right` with means as sums make them; any other op's as it is. torch updates the mean of a row value by value beside a variance (Welford), so that an infinity leaves NaN unless it is the last one."""
    if elementwise.name_of(declaration) not in MEANS or right.oracle is None:
        return right
    kwargs = making.kwargs_of(declaration, case)
    value = next(iter(given.values()))
    mean = value.mean(dim=kwargs.get("dim"), keepdim=bool(kwargs.get("keepdim")))
    wide = value.double().mean(dim=kwargs.get("dim"), keepdim=bool(kwargs.get("keepdim"))).to(mean.dtype)
    return replace(right, plain={**right.plain, "1": mean}, oracle={**right.oracle, "1": wide})
