"""Probes of numbers of few bits in all inputs at once: what is computed of some is equal to what is computed of others, and is decided there as the reference decides it.

torch is imported only inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_away, arguments_known, cases, declared_inputs, probe_indices, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration

COARSE = "coarse"
"""What a case is called, and the values."""

MANY = (67, 11, 3)
"""Lengths there, from the last dim on: few pairs are equal by chance, and a row is longer than a block of 64."""

MOST = 2
"""Floating inputs are at most so many steps from zero."""

ALIKE = 4
"""An input whose largest number is smaller than that of another by more than so many times has a step of its own."""

INTEGERS = 5
"""Integers are so many in a row, zero in the middle of them, or first where none is below it."""

WITH = 6
"""So many arguments meet such inputs."""


def coarse(declaration: Declaration, others: Sequence[Case]) -> Iterator[Case]:
    """Yields, for a reference in Python that draws nothing, a case in which all inputs are such numbers, and those of `others` in which a flag is the other one, or an argument is left out. They take no other's place."""
    is_open = declaration.get("reference") and not declaration.get("random")
    if not is_open or not (probing.of_values(declaration) or whole(declaration) or segmented(declaration)):
        return
    found = probing.probe(declaration, f"{COARSE}[all]", probing.rows(declaration, MANY), values=COARSE, of=cases.ALL)
    yield replace(probing.forward(declaration, found), has_own_budget=True)
    own, count, has_segments = declaration["kwargs"], 0, bool(segmented(declaration))
    for case in others:
        changed = case.kwargs or {}
        names = arguments_away.changed_names(declaration, changed)
        # Of segments some are empty, where a number may be the result.
        is_flag = len(names) == 1 and (has_segments or all(isinstance(changed[name], bool) for name in names))
        is_plain = case.values == "declared" and case.layout is None and not names & {*arguments_known.DIMS}
        if count < WITH and is_plain and (is_flag or (not names and len(changed) < len(own))):
            count += 1
            label = case.name.removeprefix("edge/kwarg[").rsplit("]/", 1)[0]
            more = replace(found, name=f"edge/kwarg[{label},{COARSE}]/{case.dtype}", kwargs=changed)
            yield replace(probing.forward(declaration, more), has_own_budget=True)


def whole(declaration: Declaration) -> list[str]:
    """Returns the names of the inputs of integers that are drawn between two numbers, zero among them."""
    drawn = [given for given in tensors(declaration) if given["init"]["kind"] == "randint" and given["shape"]]
    known = ((given["name"], probe_indices.span(given)) for given in drawn)
    return [name for name, span in known if span is not None and 0 in span]


def segmented(declaration: Declaration) -> list[str]:
    """Returns the names of the offsets among the inputs."""
    return [given["name"] for given in tensors(declaration) if given["init"]["kind"] == "offsets"]


def with_coarse(declaration: Declaration, case: Case, dense: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the inputs that become such numbers: floating ones multiples of a power of two, the same one for all that are about as large; integers some about zero; offsets so few different ones that some segments are empty. None is beyond what is declared."""
    import torch

    given = {one["name"]: one for one in tensors(declaration) if one["name"] in dense}
    floating = {
        name: value
        for name, value in dense.items()
        if value.is_floating_point() and value.numel() > 0 and is_drawn(given[name]["init"]["kind"])
    }
    largest = {name: float(value.double().abs().amax()) for name, value in floating.items()}
    most = max(largest.values(), default=0.0)
    found: dict[str, torch.Tensor] = {}
    for name, value in floating.items():
        own = most if largest[name] * ALIKE > most else largest[name]
        if 0 < own < math.inf:
            step = 2.0 ** math.floor(math.log2(own / MOST))
            levels = value.double().div(step).round().clamp(-MOST, MOST)
            found[name] = levels.mul(step).to(value.dtype)
    for name in segmented(declaration):
        if name in dense and dense[name].numel() > 0:
            # Two different ones between the ends: some segment is empty.
            step = int(dense[name].max()) // 2 + 1
            found[name] = dense[name].div(step, rounding_mode="floor").mul(step)
    for name in whole(declaration):
        if name in dense and not dense[name].is_floating_point() and dense[name].dtype != torch.bool:
            span = probe_indices.span(given[name])
            least = -(INTEGERS // 2) if span is not None and span.start < 0 else 0
            found[name] = (dense[name].long().remainder(INTEGERS) + least).to(dense[name].dtype)
    kept = {name: declared_inputs.within(given[name], case, value) for name, value in found.items()}
    return {name: declared_inputs.in_order(given[name], case, value) for name, value in kept.items()}


def is_drawn(kind: str) -> bool:
    """Tells whether inputs of this kind of `init` are drawn at random, each number alone or in order."""
    return kind in ("normal", "uniform", "sorted")
