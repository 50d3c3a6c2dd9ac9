"""Other values of an argument at which a comparison in the code of a reference comes out otherwise than at the declared one: there it computes something else.

Code is read and never run. It knows no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_compared, arguments_refused

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

GROUPS = (1, 4, 3)
"""Whole numbers, beside the next one, for an argument that is declared below zero: it is off there, or stands for a length."""


def turns(declaration: Declaration, name: str, value: object) -> bool:
    """Tells whether a comparison of the op's argument `name` with a number in the code of its reference comes out otherwise at `value` than as it is declared. False for a function of torch's, for what is no number, or where the file cannot be read."""
    own = declaration["kwargs"].get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isinstance(own, int | float):
        return False
    return any(
        arguments_refused.holds(node, name, own) is not arguments_refused.holds(node, name, value)
        for node in arguments_compared.comparisons(declaration, name)
    )


def is_off(declaration: Declaration, name: str) -> bool:
    """Tells whether the argument `name` of a reference in Python is declared as a whole number below zero that stands for no number of its own, since the code compares it with a constant."""
    own = declaration["kwargs"].get(name)
    asked = arguments_compared.comparisons(declaration, name) if type(own) is int and own < 0 else []
    return any(arguments_refused.holds(node, name, own) is not None for node in asked)
