"""Probes of two inputs of different types, of which torch takes the wider one. It makes no values, and imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases, elementwise, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

WIDE = "float32"
"""The wider type."""

NARROW = ("float16", "bfloat16")
"""Types that hold less: the first of them that is declared is beside it."""


MASKS = ("attn_mask",)
"""Inputs that are booleans or numbers that are added."""


TURNED = "turned"
"""What a case is called that comes in another dtype first."""


def turned(declaration: Declaration) -> Iterator[Case]:
    """Yields two cases of lengths that no other has, in the second dtype and then in the first: what a wrapper keeps of a shape may be of the type that it was made in. They take no other's place."""
    first, *others = declaration["dtypes"]
    dims = probing.loose(declaration)
    if not others or not dims or "shapes" in cases.edges_off(declaration):
        return
    binding = probing.bound(declaration, dict(zip(reversed(dims), (14, 13), strict=False)), 1)
    if bindings.is_possible(declaration, binding):
        for dtype in (others[0], first):
            yield probing.probe(declaration, TURNED, binding, dtype=dtype, has_own_budget=True)


def added_masks(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which a mask that is declared to be of booleans has numbers, which torch adds. It takes no other's place."""
    dtype = declaration["dtypes"][0]
    for given in tensors(declaration) if declaration.get("torch") else ():
        if given["name"] in MASKS and given["dtype"] == "bool":
            word = f"{cases.MIXED}[{given['name']}={dtype}]"
            small = probing.tiny(declaration)
            case = probing.probe(declaration, word, small, dtypes={given["name"]: dtype}, has_own_budget=True)
            yield probing.forward(declaration, case)


def mixed(declaration: Declaration) -> Iterator[Case]:
    """Yields cases in which one of two inputs has a narrower type than the other, of torch's functions that work element by element, where both types are declared. They take no other's place."""
    narrow = next((dtype for dtype in declaration["dtypes"] if dtype in NARROW), None)
    # What is written over keeps its type, and a gradient has that of its input.
    is_open = not (declaration["mutates"] or declaration["backward"] or declaration.get("random"))
    if (
        narrow is None
        or WIDE not in declaration["dtypes"]
        or not is_open
        or not elementwise.is_elementwise(declaration)
    ):
        return
    inputs = tensors(declaration)
    names = [given["name"] for given in inputs if given["dtype"] is None and cases.random_floats(given, WIDE)]
    others = [given for given in inputs if given["name"] not in names]
    is_of_two = len(names) == 2 and all(given["dtype"] == "bool" for given in others)
    for name in reversed(names) if is_of_two else ():
        word = f"{cases.MIXED}[{name}={narrow}]"
        small = probing.tiny(declaration)
        yield probing.probe(declaration, word, small, dtype=WIDE, dtypes={name: narrow}, has_own_budget=True)
