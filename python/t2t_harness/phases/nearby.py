"""Shapes that tensors may have beside one of a known shape, the likeliest first.

It does not know which tensor it is asked of, and nothing of names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Length

BASES: tuple[tuple[float, tuple[Length, ...]], ...] = (
    (0.0, ("M", "N")),
    (1.0, ("B", "S", "D")),
    (1.5, ("N",)),
    (1.6, ("B", "H", "S", "D")),
    (3.0, ("B", "C", "H", "W", "D")),
    (3.2, ("B", "N", "N")),
    (3.3, ("N", "N")),
    (3.5, ("M", 4)),
)
"""The shapes that the first input may have, and how unlikely each is."""


def rotary(base: tuple[Length, ...]) -> Iterator[tuple[float, list[Length]]]:
    """Yields the shapes that a table of a rotary embedding may have beside a tensor of the shape `base`."""
    last = base[-1]
    halved: tuple[tuple[float, Length], ...] = ((0.0, f"{last}//2"), (0.3, last))
    for cost, length in halved:
        yield cost, [base[-2] if len(base) > 1 else fresh(base)[0], length]
        yield cost + 0.1, [base[0], length]
        yield cost + 0.2, [fresh(base)[0], length]
        yield cost + 0.25, [*base[:-1], length]
        if len(base) > 3:
            yield cost + 0.25, [base[1], length]
            yield cost + 0.28, [base[0], base[1], length]


def places(base: tuple[Length, ...]) -> Iterator[tuple[float, list[Length]]]:
    """Yields the shapes that a tensor of places may have beside one of the shape `base`."""
    new, other, _ = fresh(base)
    yield 0.0, [base[0]]
    if len(base) > 2:
        yield 0.2, [*base[:-1]]
    yield 0.4, [new]
    yield 0.6, [base[0], new]
    yield 0.8, [*base]
    yield 1.0, [new, other]


def fresh(base: tuple[Length, ...]) -> tuple[str, str, str]:
    """Returns three names that no dim of `base` has."""
    first, second, third, *_ = (name for name in "K L P E R Q".split() if name not in base)
    return first, second, third


def related(base: tuple[Length, ...], *, is_weight: bool) -> Iterator[tuple[float, list[Length]]]:
    """Yields the shapes that a tensor may have beside one of the shape `base`, and how unlikely each is: the same, rows or columns of it, and those that share a dim."""
    first, last, (new, other, third) = base[0], base[-1], fresh(base)
    yield (2.0 if is_weight else 0.0), [*base]
    if len(base) > 1:
        yield (0.0 if is_weight else 1.0), [last]
        yield 1.4, [*base[:-1]]
        yield 1.9, [last, new]
        yield 2.0, [new, last]
        yield 2.05, [last, last]
        yield 2.1, [*base[:-1], new]
    if len(base) > 2:
        yield 1.6, [first]
        yield 1.7, [first, last]
        yield 2.2, [*base[1:]]
        yield 2.2, [*base[:-2], new, last]
        yield 2.3, [*base[-2:]]
        yield 2.4, [*base[:-2], last, new]
        yield 2.6, [first, *base[2:]]
    yield 2.5, [new, *base[1:]]
    yield 2.7, [new]
    yield 2.8, [f"{first}+1", *base[1:]]
    yield 2.9, [*base[:-1], f"2*{last}"]
    yield 3.0, [new, other, *base[1:]]
    yield 3.1, [1]
    if len(base) > 2:
        yield 2.6, [*base, new]
        yield 2.7, [new, *base[1:], other]
    yield 3.2, [first, new, other]
    yield 3.3, [new, other, third]
