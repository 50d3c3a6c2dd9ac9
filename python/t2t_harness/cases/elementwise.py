"""Which of torch's functions make each element of a result from one element of each input, and which of these are there to be exact where others lose all digits.

torch tells the first of its own operations. It is imported only inside functions.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

EXACT = frozenset(
    "log1p expm1 erf erfc erfcx sinh asinh arcsinh atanh arctanh sin tan asin arcsin atan arctan hypot xlog1py".split()
)
"""Functions whose small results are as exact as large ones, relative to their size: a formula that adds 1 first has none of their digits."""

ROUNDED = frozenset(
    "mul multiply div divide true_divide square sqrt rsqrt reciprocal exp exp2 sigmoid expit silu abs neg relu clamp maximum minimum fmax fmin where amax amin max min clone".split()
)
"""Functions whose results torch rounds once or a few times, or only copies: small ones have all digits in any formula, unless a narrow type was on the way."""

RESTS = frozenset("remainder fmod floor_divide".split())
"""Functions that torch computes without rounding: a quotient that was rounded first loses all digits of the rest of a large number."""

MULTIPLYING = frozenset("prod cumprod".split())
"""Functions of products of rows. torch's on CPUs multiplies in float64."""

TAILED = frozenset("sigmoid expit silu exp exp2 ndtr erfc erfcx".split())
"""Functions that approach zero, and of which the formula that all write keeps the digits there."""

LARGEST = frozenset("argmax argmin amax amin max min aminmax cummax cummin".split())
"""Functions of rows that look for the largest or smallest number."""

ORDERING = LARGEST | frozenset("sort msort argsort topk kthvalue median mode unique unique_consecutive".split())
"""Functions of rows that decide which number is larger, or equal. Some kernels count small integers in a table."""

SUMMING = frozenset("sum cumsum prod cumprod".split())
"""Functions of rows that take integers for numbers, whatever their size."""

TELLING = frozenset("isin bucketize searchsorted count_nonzero equal".split())
"""Functions that compare integers, or ask whether they are zero, and no row of which is a place."""

UNTAGGED = frozenset(("floor_divide", "isclose"))
"""Functions that work element by element, of which torch does not say so."""

TABLED = frozenset("unique unique_consecutive mode".split())
"""Functions of integers that kernels answer from a table, where the declared ones are few."""

GROWING = ("shift", "pow", "lcm", "ldexp", "polygamma")
"""What is in the names of functions for which large integers mean something else than small ones, or nothing."""


def name_of(declaration: Declaration) -> str:
    """Returns the last part of the name of torch's function, in lower case and without the mark of one that writes over its input; nothing for a reference."""
    return "" if declaration.get("reference") else str(declaration["torch"]).rpartition(".")[2].rstrip("_").lower()


def is_elementwise(declaration: Declaration) -> bool:
    """Tells whether the op is known to work element by element."""
    return name_of(declaration) in UNTAGGED or any(_overloads(name_of(declaration)))


def shows_anywhere(declaration: Declaration) -> bool:
    """Tells whether what one number makes is the same wherever it is, and whatever is beside it: the op works element by element, and no gradients are compared. Where a few are NaN
    or infinite among others, rows of them then show nothing more. `max` and `min` have a form for rows, too."""
    return is_elementwise(declaration) and not declaration["backward"] and name_of(declaration) not in LARGEST


def is_exact(declaration: Declaration) -> bool:
    """Tells whether small results of the op are to be exact relative to their size."""
    return name_of(declaration) in EXACT | ROUNDED


def leaves_a_rest(declaration: Declaration) -> bool:
    """Tells whether the op is a quotient without its fraction, or what is left of one: torch rounds no step of it, so that it is exact for any inputs, and for numbers as the tested dtype holds them."""
    return name_of(declaration) in RESTS


def multiplies(declaration: Declaration) -> bool:
    """Tells whether the op multiplies all numbers of a row: a long product is zero in one type and a number in another, which tells what an infinite factor makes of it."""
    return name_of(declaration) in MULTIPLYING


def has_tails(declaration: Declaration) -> bool:
    """Tells whether results of the op approach zero without losing digits."""
    return name_of(declaration) in TAILED


def reduces_integers(declaration: Declaration) -> bool:
    """Tells whether the op takes integers in rows for numbers, whatever their size."""
    return name_of(declaration) in LARGEST | SUMMING


def takes_large_integers(declaration: Declaration) -> bool:
    """Tells whether an integer of any size may stand in the place of each integer of the op's inputs."""
    name = name_of(declaration)
    return name in LARGEST | TELLING or (is_elementwise(declaration) and not any(word in name for word in GROWING))


def orders(declaration: Declaration) -> bool:
    """Tells whether the op decides which number is larger, or equal."""
    return name_of(declaration) in ORDERING | TELLING


def takes_numbers(declaration: Declaration) -> bool:
    """Tells whether integers of the op's inputs are numbers and no places, however few they are declared to be."""
    is_tabled = name_of(declaration) in TABLED
    return (orders(declaration) and not is_tabled) or takes_large_integers(declaration)


def defaults(declaration: Declaration) -> dict[str, float]:
    """Returns the numbers that torch takes for arguments of an elementwise op that are left out, by name."""
    found: dict[str, float] = {}
    for overload in _overloads(name_of(declaration)):
        for argument in overload._schema.arguments:
            value = argument.default_value if argument.has_default_value() else None
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found.setdefault(argument.name, value)
    return found


@functools.cache
def _overloads(name: str) -> list[Any]:
    """Returns torch's elementwise operations of that name."""
    import torch

    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
    overloads = [getattr(packet, one) for one in packet.overloads()] if packet is not None else []
    return [one for one in overloads if torch.Tag.pointwise in one.tags]
