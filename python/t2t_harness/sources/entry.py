"""What is loaded as the entry of a variant, or called as an op, as a type. It is imported by type checkers alone."""

from __future__ import annotations

from typing import Protocol


class Entry(Protocol):
    """A function, a class, or anything else that can be called."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Calls it."""
