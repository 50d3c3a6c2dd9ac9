"""Probes of two inputs of different types, of which torch takes the wider one. It makes no values, and imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases, elementwise, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import changed, tensors

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


TURNED_LENGTHS = ((14, 13), (14, 2, 13))
"""Its lengths from the last dim on, of three dims or fewer, and of more; others are 1. What is kept may be of a dim in the middle, and the same in all types where that is 1."""


def turned(declaration: Declaration) -> Iterator[Case]:
    """Yields two cases of lengths that no other has, in the second dtype and then in the first: what a wrapper keeps of a shape may be of the type that it was made in. They take no other's place."""
    first, *others = declaration["dtypes"]
    dims = probing.loose(declaration)
    if not others or not dims or "shapes" in cases.edges_off(declaration):
        return
    binding = probing.bound(declaration, dict(zip(reversed(dims), TURNED_LENGTHS[len(dims) > 3], strict=False)), 1)
    if bindings.is_possible(declaration, binding):
        for dtype in (others[0], first):
            yield probing.probe(declaration, TURNED, binding, dtype=dtype, has_own_budget=True)


LATER = "later"
"""What a case is called that comes after another one of the same lengths."""

EXCHANGED = (6, 10)
"""Lengths of two dims that are exchanged: their product, and how many elements there are, stay the same."""


def later(declaration: Declaration) -> Iterator[Case]:
    """Yields cases of lengths that no other has, each after one that differs in something else than lengths: without optional inputs and then with them, without a gradient and then with it, with two lengths and then with these exchanged. What a wrapper keeps of a call may be kept by too little. They take no other's place."""
    dims = probing.loose(declaration)
    if not dims or "shapes" in cases.edges_off(declaration):
        return
    optional = tuple(str(given["name"]) for given in tensors(declaration) if given.get("optional"))
    pairs: list[tuple[str, tuple[int, int], dict[str, object]]] = []
    if optional:
        pairs.append(("without", (18, 11), {"absent": optional}))
    if declaration["backward"]:
        pairs.append(("no-gradient", (22, 9), {"asks": cases.NOBODY}))
    for word, lengths, first in pairs:
        binding = probing.bound(declaration, dict(zip(reversed(dims), lengths, strict=False)), 1)
        if bindings.is_possible(declaration, binding):
            yield probing.probe(declaration, f"{LATER}[{word}]", binding, has_own_budget=True, **first)
            yield probing.probe(declaration, f"{LATER}[after-{word}]", binding, has_own_budget=True)
    for one, other in zip(dims, dims[1:], strict=False):
        for lengths in (EXCHANGED, EXCHANGED[::-1]):
            binding = probing.bound(declaration, dict(zip((one, other), lengths, strict=True)), probing.NARROW)
            if bindings.is_possible(declaration, binding):
                word = f"{LATER}[{one}={binding[one]},{other}={binding[other]}]"
                yield probing.probe(declaration, word, binding, has_own_budget=True)


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
    is_open = not (changed(declaration) or declaration["backward"] or declaration.get("random"))
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
