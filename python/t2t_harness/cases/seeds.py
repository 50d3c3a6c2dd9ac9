"""The runs of an op that draws random numbers: which there are, and the seed of each. torch is imported only inside functions."""

from __future__ import annotations

import hashlib
import random as random_numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case

ENOUGH = 1 << 15
"""Elements of one case, of all its seeds together, after which no more seeds are run."""

FEWEST, MOST = 3, 15
"""Seeds beside the first with which a declared case is run, at least and at most."""


def is_random(declaration: Declaration) -> bool:
    """Tells whether the op is declared as random."""
    return declaration.get("random") is not None


def labels(declaration: Declaration, case: Case, elements: int) -> list[str]:
    """Returns the runs of a declared case with other seeds than the first: fewer the larger its inputs are. One with an argument at another value has the fewest."""
    if not is_random(declaration):
        return []
    if case.is_probe and case.kwargs is not None:
        return [f"s{number}" for number in range(1, FEWEST + 1)]
    if case.kind != "declared":
        return []
    count = min(max(ENOUGH // max(elements, 1), FEWEST), MOST)
    return [f"s{number}" for number in range(1, count + 1)]


def is_of_other_seed(label: str) -> bool:
    """Tells whether a run is one of `labels`."""
    return label.startswith("s")


def seed_of(case: Case, label: str) -> int:
    """Returns the seed of a run: those that are no `labels` have the same."""
    number = label if is_of_other_seed(label) else "s0"
    # Each odd one is the next number after the one before it: a kernel may make what it draws of the sum of its seed and a place.
    count = int(number.removeprefix("s"))
    text = "\0".join(("seed", case.name, f"s{count - count % 2}", case.salt)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "little") % ((1 << 31) - 1) + count % 2


def seeded(declaration: Declaration, kwargs: Mapping[str, object], seed: int) -> dict[str, object]:
    """Returns `kwargs` of a wrapper with the seed under its declared name, where it takes one; else torch's generators
    are seeded."""
    random = declaration.get("random")
    name = None if random is None else random.get("seed")
    if name is not None:
        return {**kwargs, name: seed}
    if is_random(declaration):
        import torch

        torch.manual_seed(seed)
        # A wrapper may draw the seed of its kernel by Python's generator.
        random_numbers.seed(seed)
    return dict(kwargs)
