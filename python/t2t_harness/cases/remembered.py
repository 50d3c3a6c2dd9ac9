"""Remembers what is asked again and again of one declaration: the cases of a check are derived from a dozen of its properties, each hundreds of times."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from t2t_harness.boundary.documents import Declaration

T = TypeVar("T", list[str], dict[str, int], dict[str, "int | None"])


def of_declaration(function: Callable[[Declaration], T]) -> Callable[[Declaration], T]:
    """Returns `function`, which depends on its declaration alone, with a memory of its last answer. Each caller gets a copy, which it may change.

    The declaration is recognized by its identity: nothing changes one that it was given.
    """
    last: tuple[Declaration, T] | None = None

    @functools.wraps(function)
    def remembered(declaration: Declaration) -> T:
        nonlocal last
        # Read once: another thread may ask meanwhile.
        known = last
        if known is None or known[0] is not declaration:
            known = last = (declaration, function(declaration))
        return known[1].copy()

    return remembered
