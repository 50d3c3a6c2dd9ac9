"""What probes are made with: the dims that may have other lengths, shapes that fit, and the inputs that may have other values. Nothing here makes values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import arguments_compared, bindings, cases, drawing, elementwise
from t2t_harness.cases.cases import Case
from t2t_harness.cases.remembered import of_declaration
from t2t_harness.op import single
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from typing import TypeGuard

    from t2t_harness.boundary.documents import Declaration, TensorInput

CAUSAL = "is_causal"
"""A flag that says something of blocks, and is tried where there is more than one of them."""


NARROW = 2
"""The length of the dims that are not tried, in a shape where one is."""


LONG = (1031, 517, 259, 131)
"""Lengths of a long dim; the first that fits is used. Primes, which no block divides."""


def probe(declaration: Declaration, word: str, binding: Mapping[str, int], **more: Any) -> Case:
    """Returns the case `edge/WORD/DTYPE`, in the first dtype where `more` says nothing else."""
    dtype = more.pop("dtype", declaration["dtypes"][0])
    return Case(f"edge/{word}/{dtype}", "edge", dtype, dict(binding), is_probe=True, **more)


def forward(declaration: Declaration, case: Case) -> Case:
    """Returns `case`, of an op that is checked backward without gradients: those are a convention where the case has a corner, NaN or ties. It takes no other's place there."""
    return replace(case, asks=cases.NOBODY, has_own_budget=True) if declaration["backward"] else case


def is_forward(case: Case) -> bool:
    """Tells whether a probe is one that `forward` took the gradients of."""
    return case.asks == cases.NOBODY and case.has_own_budget


@of_declaration
def free(declaration: Declaration) -> list[str]:
    """Returns the dims whose lengths may be other ones, in the order in which the inputs name them, those first that say how many segments there are. One that has the same length in all sizes is among them, where `dims` does not fix it."""
    own = bindings.own_lengths(declaration)
    stated = declaration.get("fixed")
    loose = [dim for dim, length in own.items() if length is None or (stated is not None and dim not in stated)]
    counting = bindings.segments(declaration)
    # How many segments there are is no length of a row.
    named = sorted((dim for dim in bindings.dims(declaration) if dim in loose), key=lambda dim: dim not in counting)
    return [*named, *(dim for dim in loose if dim not in named)]


@of_declaration
def held(declaration: Declaration) -> dict[str, int]:
    """Returns the dims that have one length in all cases, with it."""
    loose = free(declaration)
    own = bindings.own_lengths(declaration)
    return {dim: length for dim, length in own.items() if length is not None and dim not in loose}


@of_declaration
def by_chance(declaration: Declaration) -> list[str]:
    """Returns the dims that have the same length in all sizes, though `dims` does not fix them."""
    own = bindings.own_lengths(declaration)
    return [dim for dim in free(declaration) if own[dim] is not None]


@of_declaration
def loose(declaration: Declaration) -> list[str]:
    """Returns the dims whose lengths differ from size to size, in the order of `free`."""
    chance = by_chance(declaration)
    return [dim for dim in free(declaration) if dim not in chance]


def bound(declaration: Declaration, lengths: Mapping[str, int], others: int) -> dict[str, int]:
    """Returns the lengths of all dims, of which those that are free and not in `lengths` have `others`, and none has 1 where that edge is off."""
    if "one" in cases.edges_off(declaration):
        others = max(others, NARROW)
    own, chance = bindings.own_lengths(declaration), by_chance(declaration)
    rest = {dim: (others if length is None else length) for dim, length in own.items()}
    found = {**rest, **{dim: length for dim, length in lengths.items() if dim in own or dim in chance}}
    return bindings.stepped(declaration, found)


def fits(declaration: Declaration, binding: Mapping[str, int], limit: int) -> bool:
    """Tells whether there are lengths, and no input has more than `limit` elements."""
    return bindings.is_possible(declaration, binding) and bindings.largest(declaration, binding) <= limit


def sizes(declaration: Declaration) -> Iterator[Mapping[str, int]]:
    """Yields the sizes that are measured, on devices where the lane runs smaller ones."""
    yield from declaration["sizes"].values()
    yield from (declaration.get("measured") or {}).values()


def budgeted(found: Iterable[Case]) -> Iterator[Case]:
    """Yields the cases with a budget of their own."""
    yield from (replace(case, has_own_budget=True) for case in found)


def long(
    declaration: Declaration, dim: str, lengths: Sequence[int], limit: int, others: int = NARROW
) -> Iterator[Case]:
    """Yields a shape with the first of `lengths` for `dim` that fits."""
    for length in lengths:
        found = list(shape(declaration, "shape", {dim: length}, others, limit, (dim,)))
        if found:
            yield from found
            return


def shape(
    declaration: Declaration, word: str, lengths: Mapping[str, int], others: int, limit: int, shown: Sequence[str]
) -> Iterator[Case]:
    """Yields the shape with these `lengths`, if it fits; `shown` are the dims in its name."""
    binding = bound(declaration, lengths, others)
    if fits(declaration, binding, limit):
        named = ",".join(f"{dim}={binding[dim]}" for dim in shown)
        yield probe(declaration, f"{word}[{named}]", binding, values="ends")


def of_values(declaration: Declaration) -> list[str]:
    """Returns the names of the inputs that other values are tried in: floating ones with dims, drawn at random, that are no probabilities."""
    if cases.has_probabilities(declaration):
        return []
    inputs = [given for given in tensors(declaration) if len(given["shape"]) > 0]
    return [given["name"] for given in inputs if cases.random_floats(given, declaration["dtypes"][0])]


FEW = (0, 1, 2)
"""Whole numbers at which functions often decide."""


def numbers(declaration: Declaration, given: TensorInput) -> list[float]:
    """Returns the numbers among the op's arguments, the first whole ones, those less them, and both ends of the range of a uniform input, that an input may hold as it is declared, if a float32 holds them: a kernel may have no other numbers."""
    told: list[object] = [*(declaration.get("kwargs") or {}).values(), *elementwise.defaults(declaration).values()]
    told += FEW
    told += [one for value in told if isinstance(value, (list, tuple)) for one in value]
    told += [single.rounded(value) for value in arguments_compared.decided(declaration)]
    # A threshold is met by what is rounded to the input's type.
    own = declaration.get("kwargs") or {}
    met = [value for name, value in own.items() if arguments_compared.is_met(declaration, name)]
    told += [single.rounded(value) for value in met if isinstance(value, float)]
    plain = [float(value) for value in told if is_plain(value) and abs(value) < 1 << 24]
    low, high = drawing.allowed(given)
    both = dict.fromkeys(sign * value for value in plain for sign in (1.0, -1.0))
    held = [value for value in both if low <= value <= high and value == single.rounded(value)]
    ends = (single.rounded(end) for end in (low, high) if math.isfinite(end))
    return list(dict.fromkeys((*held, *ends)))


def alike(declaration: Declaration) -> list[str]:
    """Returns the names of the inputs of `of_values` that have the shape of the first one of them."""
    names = of_values(declaration)
    shapes = {given["name"]: given["shape"] for given in tensors(declaration)}
    return [name for name in names if shapes[name] == shapes[names[0]]]


MEETING = 67
"""So many elements of two inputs, or a few less, have all pairs of special numbers."""


def of_pairs(declaration: Declaration, small: Mapping[str, int]) -> dict[str, int]:
    """Returns the lengths `small`, or where they are those of a vector, others with as many elements as there are pairs of special numbers."""
    return dict(small) if bindings.largest(declaration, small) >= MEETING else rows(declaration, (MEETING,))


def is_plain(value: object) -> TypeGuard[float]:
    """Tells whether `value` is a number, and no truth value."""
    return type(value) in (int, float)


def hides(declaration: Declaration) -> bool:
    """Tells whether torch may let a hidden NaN through. Its attention on CPUs adds the mask, one of booleans too, and so does its attention on devices for inputs that its fused kernels refuse."""
    is_masked = any(given["dtype"] == "bool" for given in tensors(declaration))
    return declaration["kwargs"].get(CAUSAL) is True or (
        is_masked and "attention" in str(declaration.get("torch") or "")
    )


def rows(declaration: Declaration, lengths_of: Sequence[int] = (19, 5, 2)) -> dict[str, int]:
    """Returns lengths for a case of a few rows, from the last dim on."""
    dims = free(declaration)
    lengths = dict(zip(reversed(dims), lengths_of, strict=False))
    if counting := bindings.segments(declaration):
        # Segments have several rows each.
        divided = [dim for dim in dims if dim in bindings.pointed_into(declaration)]
        lengths |= {dim: SEGMENTED[place % len(SEGMENTED)] for place, dim in enumerate(divided)}
        lengths |= dict.fromkeys(counting, 3)
    return bound(declaration, {dim: length for dim, length in lengths.items() if dim not in by_chance(declaration)}, 2)


SEGMENTED = (13, 19)
"""Lengths of dims that are divided into segments, in a case of a few of them."""


@of_declaration
def tiny(declaration: Declaration) -> dict[str, int]:
    """Returns the lengths of `rows`, or those of other edges, with two of what these have one of, where they have fewer elements."""
    few, edge = rows(declaration), bindings.small_lengths(declaration)
    edge |= {dim: NARROW for dim in free(declaration) if edge.get(dim) == 1}
    edge = bindings.stepped(declaration, edge)
    is_smaller = bindings.is_possible(declaration, edge) and bindings.largest(declaration, edge) < bindings.largest(
        declaration, few
    )
    return edge if is_smaller else few
