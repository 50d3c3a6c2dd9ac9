"""Probes of values that are rounded after a division by another input: each quotient lies in the middle of two whole numbers. Nothing here makes values, but for those of such a case."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_compared, cases, drawing, probe_hidden, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, TensorInput

SCALED = "scaled-halves"
"""The values of such a case: of an input that is drawn from a range above zero powers of two in that range, and of the first input halves of these."""

SCALES = 2
"""So many inputs are taken for scales, each in a case of its own."""


def halves(declaration: Declaration) -> Iterator[Case]:
    """Yields, for an op that rounds to whole numbers, cases in which the first input is halves of another one, as of the scales of its rows: whether halves are rounded up or to even, and before or after a zero point is added, shows there alone. They take no other's place."""
    names = probing.of_values(declaration)
    if declaration.get("random") or not arguments_compared.rounds(declaration):
        return
    held = [given for given in tensors(declaration) if given["name"] in names]
    for value in held[:1]:
        for scale in [given for given in tensors(declaration) if is_scale(given, value)][:SCALES]:
            word = f"halves[{value['name']},{scale['name']}]"
            both = cases.JOINED.join((scale["name"], value["name"]))
            small = probing.rows(declaration)
            found = probing.probe(declaration, word, small, values=SCALED, of=both, has_own_budget=True)
            yield probing.forward(declaration, found)


def is_scale(given: TensorInput, value: TensorInput) -> bool:
    """Tells whether an input may be the scale of another: above zero throughout, with a power of two in its range, and one element for each of the other's, or for all."""
    low, high = drawing.allowed(given)
    is_plain = given["dtype"] is None or given["dtype"] in cases.FLOATING
    is_drawn = given["init"]["kind"] == "uniform" and 0 < low <= high < math.inf
    if not is_drawn or not is_plain or given.get("list") is not None or low > 2.0 ** math.floor(math.log2(high)):
        return False
    return is_single(given) or probe_hidden.is_of(given, value)


def is_single(given: TensorInput) -> bool:
    """Tells whether an input has one element."""
    return all(length == 1 for length in given["shape"])


def with_halves(declaration: Declaration, case: Case, dense: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the scale and the values that a case of scaled halves speaks of, by name; `dense` has all inputs with their own. Nothing where the case leaves out one of them."""
    scale, value = str(case.of).split(cases.JOINED)
    if scale not in dense or value not in dense:
        return {}
    inputs = {given["name"]: given for given in tensors(declaration)}
    low, high = drawing.allowed(inputs[scale])
    least, most = math.ceil(math.log2(low)), math.floor(math.log2(high))
    powers = dense[scale].double().log2().round().clamp(least, most).exp2()
    own, shape = ([str(dim) for dim in inputs[name]["shape"]] for name in (scale, value))
    wide = powers.reshape(()) if is_single(inputs[scale]) else probe_hidden.spread(powers, own, shape)
    found = ((dense[value].double() / wide).floor() + 0.5) * wide
    return {scale: powers.to(dense[scale].dtype), value: found.to(dense[value].dtype)}
