"""Probes of the dtypes after the first: a long dim, layouts, other values and other arguments, for which kernels have code of their own. Nothing here makes values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases, probe_arguments, probe_meetings, probe_values, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

HALVES = ("float16", "bfloat16")
"""Types in which a sum of many positive numbers loses what a sum in float32 keeps."""

COUNTED = 271
"""A length to which bfloat16 does not count."""

BEYOND = 4099
"""A length to which a type of 16 bits does not count."""

SECOND = 4
"""So many arguments are tried in each dtype but the first, if there is room."""


def further(request: VariantRequest, limit: int) -> Iterator[Case]:
    """Yields, for each dtype but the first, a long last dim, and the kinds of edges that only the first one has otherwise."""
    declaration = request["op"]
    dims = probing.loose(declaration)
    for dtype in declaration["dtypes"][1:]:
        small = probing.tiny(declaration)
        ranks = [len(given["shape"]) for given in tensors(declaration)]
        for dim in dims[-1:]:
            yield from probing.budgeted(of_length(declaration, dim, dtype, limit))
        for dim in dims[-1:] if dtype in HALVES else ():
            beyond = probing.bound(declaration, {dim: BEYOND}, 1)
            if probing.fits(declaration, beyond, limit):
                yield probing.probe(declaration, f"shape[{dim}={BEYOND}]", beyond, dtype=dtype, values="ends")
        if any(rank >= 1 for rank in ranks):
            yield probing.probe(declaration, "strided", small, dtype=dtype, layout="strided")
        if any(rank >= 2 for rank in ranks):
            yield probing.probe(declaration, "transposed", small, dtype=dtype, layout="transposed")
        if declaration["broadcast"] and len(ranks) >= 2 and ranks[1] >= 1:
            yield probing.probe(declaration, "broadcast", small, dtype=dtype, broadcast=True)
        yield from of_dtype(request, dtype, small)
        for dim in dims[:-1][:1]:
            yield from of_length(declaration, dim, dtype, limit)


def counted(declaration: Declaration, limit: int) -> Iterator[Case]:
    """Yields, for bfloat16, or for the first type of 16 bits where the op has none of it, a case of each dim but the last, of three or more, that is longer than bfloat16 counts to: places may be numbers of that type. They take no other's place."""
    halves = sorted(
        (dtype for dtype in declaration["dtypes"] if dtype in HALVES), key=lambda dtype: dtype != "bfloat16"
    )
    if max((len(given["shape"]) for given in tensors(declaration)), default=0) < 3:
        return
    for dtype in halves[:1]:
        for dim in probing.loose(declaration)[:-1]:
            binding = probing.bound(declaration, {dim: COUNTED}, 1)
            if probing.fits(declaration, binding, limit):
                word = f"{cases.COUNTED}[{dim}={binding[dim]}]"
                yield probing.probe(declaration, word, binding, dtype=dtype, values="ends", has_own_budget=True)


def of_length(declaration: Declaration, dim: str, dtype: str, limit: int) -> Iterator[Case]:
    """Yields the cases of `dtype` in which `dim` alone is long, if they fit: of a type of 16 bits one of positive values, too."""
    binding = probing.bound(declaration, {dim: probing.LONG[0]}, 1)
    if probing.fits(declaration, binding, limit):
        named = f"{dim}={probing.LONG[0]}"
        yield probing.probe(declaration, f"shape[{named}]", binding, dtype=dtype)
        if dtype in HALVES and probing.of_values(declaration):
            yield probing.probe(
                declaration, f"positive[{named}]", binding, dtype=dtype, values="positive", of=cases.ALL
            )


def has_another_word(declaration: Declaration, case: Case) -> bool:
    """Tells whether one argument alone is another word than the op's: a kernel has code of its own for each, and for each dtype."""
    changed = list(probe_meetings.difference(declaration, case).values())
    return len(changed) == 1 and isinstance(changed[0], str)


def of_dtype(request: VariantRequest, dtype: str, small: Mapping[str, int]) -> Iterator[Case]:
    """Yields, for a dtype that is not the first, other values, nothing to compute, and other arguments."""
    declaration = request["op"]
    if any(cases.random_floats(given, dtype) for given in tensors(declaration)):
        kinds = ("equal-rows",) if cases.has_probabilities(declaration) else ("large", "equal-rows")
        for kind in kinds:
            yield probing.probe(declaration, kind, small, dtype=dtype, values=kind)
        names = probing.of_values(declaration) if dtype in HALVES else []
        for name, kind in product(names[:1], ("small", "offset")):
            yield probing.probe(declaration, f"{kind}[{name}]", small, dtype=dtype, values=kind, of=name)
        for name in names[:1]:
            # What keeps a divisor from zero may itself be zero in a narrower type.
            zeros = probing.probe(declaration, f"zeros[{name}]", small, dtype=dtype, values="zeros", of=name)
            yield probing.forward(declaration, replace(zeros, has_own_budget=True))
    yield from probe_values.limits_of(declaration, dtype, small)
    asked = list(probe_arguments.kwargs(request))
    words = [case for case in asked if has_another_word(declaration, case)]
    others = [case for case in asked if case not in words]
    # In one all that is known of differs at once: a dtype has code of its own for what it takes to be declared.
    most = max(asked, key=lambda case: len(probe_meetings.difference(declaration, case)), default=None)
    beside = [case for case in (most, *words[:2]) if case is not None]
    further = [case for case in others[:SECOND] if case is not most]
    for case in [*further, *(replace(case, has_own_budget=True) for case in beside)]:
        yield replace(case, name=case.name.rpartition("/")[0] + f"/{dtype}", dtype=dtype)
    loose = probing.free(declaration)
    if loose:
        yield probing.probe(declaration, "empty", {**small, bindings.emptied(declaration, loose): 0}, dtype=dtype)
