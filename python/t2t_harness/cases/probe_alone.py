"""Probes in which one thing alone differs that is else as all the rest is: how gradients lie that flow in, an input that is zero throughout, rows that are one row or lie further apart, dims that are all of one length. They take no other's place. Nothing here makes values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, elementwise, probe_marks, probe_values, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

FLOW = "flow"
"""What a case is called in which the gradients that flow into the outputs lie otherwise than the inputs do."""

EXPANDED = "expanded"
"""What a case is called, and the layout, of inputs that are one row, or one image, repeated."""

ZERO = "zero"
"""What a case is called, and the values, of an input that is zero throughout."""

ONLY = "only"
"""What a case is called in which one value alone is not finite."""

NUMBERS = {"one-nan": "nan", "one-inf": "inf", "one-negative-inf": "-inf"}
"""Kind of values → what it is called."""

FIRST = "first-nan"
"""The values of an input whose first place is NaN."""

FIRSTS = 3
"""So many inputs have it, each in a case of its own."""

OPPOSED = "opposed"
"""What a case is called, and the values, of two inputs of other signs."""

PRODUCTS = 3
"""So many inputs are looked at for two that are multiplied."""

INPUTS = 4
"""So many inputs are zero throughout, each in a case of its own."""

APARTS = 16
"""So many inputs lie apart from each other."""

SQUARE = {2: 12, 3: 6, 4: 4}
"""The length that all of so many dims have at once."""


def alone(declaration: Declaration, limit: int) -> Iterator[Case]:
    """Yields all of them; no input has more than `limit` elements."""
    yield from flows(declaration)
    yield from expanded(declaration)
    yield from zero(declaration)
    yield from small(declaration)
    yield from number(declaration)
    yield from first(declaration)
    yield from opposed(declaration)
    yield from square(declaration, limit)
    yield from apart(declaration)


def apart(declaration: Declaration) -> Iterator[Case]:
    """Yields cases in which some inputs are parts of larger tensors and the others are dense, so that of any two one is and the other is not: what takes one's strides for the other's is right where all lie alike."""
    # Between the elements of a vector there is memory where they are strided alone.
    least = 2 if "strided" in cases.edges_off(declaration) else 1
    names = [given["name"] for given in tensors(declaration) if len(given["shape"]) >= least][:APARTS]
    several = [
        [name for place, name in enumerate(names) if place >> bit & 1] for bit in range((len(names) - 1).bit_length())
    ]
    # A wrapper that asks for dense rows may ask some inputs to lie alike, too, and refuse those.
    alone = [[name] for name in names if [name] not in several] if least == 2 else []
    for found in several + alone:
        of, small = cases.JOINED.join(found), probing.tiny(declaration)
        yield probing.probe(declaration, f"{cases.APART}[{of}]", small, layout=cases.APART, of=of, has_own_budget=True)


def flows(declaration: Declaration) -> Iterator[Case]:
    """Yields, for an op that is checked backward, a case in which one element flows into all places of an output, as into what a sum is of, one in which what flows in is transposed, and one in which its rows are parts of longer ones, as behind a concatenation. Inputs are dense, and say nothing of it."""
    if not declaration["backward"]:
        return
    is_wide = any(len(given["shape"]) >= 2 for given in tensors(declaration))
    for layout in (cases.ONE, "transposed", cases.APART) if is_wide else (cases.ONE, cases.APART):
        found = probing.probe(declaration, f"{FLOW}[{layout}]", probing.rows(declaration), flows=layout)
        yield replace(found, has_own_budget=True)


def expanded(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which floating inputs are one row, or one image, repeated by a stride of zero. What random ops draw is tested at other lengths."""
    is_wide = any(len(given["shape"]) >= 2 for given in tensors(declaration))
    if is_wide and cases.may_be_expanded(declaration) and not declaration.get("random"):
        yield probing.probe(declaration, EXPANDED, probing.tiny(declaration), layout=EXPANDED, has_own_budget=True)


def zero(declaration: Declaration) -> Iterator[Case]:
    """Yields cases in which one of several floating inputs is zero throughout: norms, sums and scales of nothing else divide. Not where zero meets all other numbers element by element."""
    floating = probing.of_values(declaration)
    if elementwise.shows_anywhere(declaration) and probe_values.pairs(declaration, probing.rows(declaration)):
        return
    for name in floating[:INPUTS] if len(floating) > 1 else ():
        found = probing.probe(declaration, f"{ZERO}[{name}]", probing.tiny(declaration), values=ZERO, of=name)
        yield replace(probing.forward(declaration, found), has_own_budget=True)


def small(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which all of several floating inputs are small: a norm of all of them, or a sum, is small in no other one. Not of ops that work element by element."""
    if len(probing.of_values(declaration)) > 1 and not elementwise.shows_anywhere(declaration):
        tiny = probing.tiny(declaration)
        yield probing.probe(declaration, "small[all]", tiny, values="small", of=cases.ALL, has_own_budget=True)


def number(declaration: Declaration) -> Iterator[Case]:
    """Yields cases in which one value of the first floating input is NaN, inf or -inf, and no other: what asks for any of them may ask for one of them. Not of ops that work element by element, which have them among others."""
    floating = [] if elementwise.shows_anywhere(declaration) else probing.of_values(declaration)
    # A query that is infinite leaves no key any weight: torch has zeros there, and most kernels NaN.
    is_open = not probing.hides(declaration) and not probe_marks.is_attention(declaration)
    for values, word in NUMBERS.items() if floating and is_open else ():
        found = probing.probe(
            declaration, f"{ONLY}[{floating[0]}={word}]", probing.tiny(declaration), values=values, of=floating[0]
        )
        yield replace(probing.forward(declaration, found), has_own_budget=True)


def first(declaration: Declaration) -> Iterator[Case]:
    """Yields, where there are integers that may point into floating inputs, cases in which the first place of one of these is NaN: lanes that a mask leaves out often read it, and multiply it by zero."""
    floating = [given for given in tensors(declaration) if given["name"] in probing.of_values(declaration)]
    points = any("int" in str(given["dtype"]) and given["shape"] for given in tensors(declaration))
    for given in floating[:FIRSTS] if points and declaration.get("reference") else ():
        word = f"{ONLY}[{given['name']}=first]"
        found = probing.probe(declaration, word, probing.tiny(declaration), values=FIRST, of=given["name"])
        yield replace(probing.forward(declaration, found), has_own_budget=True)


def opposed(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which the first of two inputs that have a dim in common, as of a product, is below zero throughout and the other above it: what keeps the largest of some sums of products may begin with zero."""
    if elementwise.shows_anywhere(declaration):
        return
    names = probing.of_values(declaration)
    known = [given for given in tensors(declaration) if given["name"] in names and given["init"]["kind"] == "normal"]
    wide = [given for given in known if len(given["shape"]) > 1]
    for one, other in combinations(wide[:PRODUCTS], 2):
        if one["shape"][-1] in other["shape"]:
            both = cases.JOINED.join((one["name"], other["name"]))
            small = probing.tiny(declaration)
            found = probing.probe(declaration, f"{OPPOSED}[{both}]", small, values=OPPOSED, of=both)
            yield replace(probing.forward(declaration, found), has_own_budget=True)
            return


def square(declaration: Declaration, limit: int) -> Iterator[Case]:
    """Yields a case in which all dims have one length: what is told by its length alone may be another thing of that length."""
    dims = probing.loose(declaration)
    if len(dims) > 1:
        length = SQUARE.get(len(dims), min(SQUARE.values()))
        lengths = dict.fromkeys(dims, length)
        yield from probing.budgeted(probing.shape(declaration, "shape", lengths, length, limit, dims))
