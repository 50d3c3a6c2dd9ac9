"""A case of each input in float8 in which all its finite numbers meet: a kernel that takes their bits apart may lose those that are drawn seldom. torch is imported only inside functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, drawing, eights, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, TensorInput

EVERY = "every"
"""The values of a case in which an input in float8 has all finite numbers of its type."""

LENGTHS = (67, 5, 2)
"""Lengths with room for all of them."""


def every(declaration: Declaration) -> Iterator[Case]:
    """Yields a case of a few rows for each input in float8 that has random values, and dims."""
    for given in tensors(declaration):
        is_random = given["dtype"] in eights.EIGHTS and cases.random_floats(given, given["dtype"] or "")
        if is_random and given["shape"]:
            lengths = probing.rows(declaration, LENGTHS)
            found = probing.probe(declaration, f"{EVERY}[{given['name']}]", lengths, values=EVERY, of=given["name"])
            yield probing.forward(declaration, found)


def with_every(given: TensorInput, values: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of the shape and dtype of `values` in which each finite number of the input's float8 comes after the other, as far as it may hold them as it is declared. Neighbours in a row differ in size and sign."""
    low, high = drawing.allowed(given)
    known = eights.finite(str(given["dtype"])).to(values.device)
    known = known[(known >= low) & (known <= high)]
    if values.numel() == 0 or known.numel() == 0:
        return values
    # A step without a common factor goes through all of them, whatever their number.
    step = 97 if known.numel() % 97 else 89
    count = values.numel()
    places = [(place * step) % known.numel() for place in range(min(count, known.numel()))]
    repeated = known[places].repeat(-(-count // len(places)))[:count]
    return repeated.reshape(values.shape).to(values.dtype)
