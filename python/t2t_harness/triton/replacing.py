"""What a launch on the interpreter replaces in `triton.language`, found out once for all launches that replace the same.

Triton sets and resets some two hundred attributes one by one for each launch, which takes as long as a small kernel does. Here a module's are set at once, and only a class's
one by one. Triton is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Change = tuple[Any, str, Any]
"""A module or class, the name of an attribute, and its value before."""

MISSING = object()
"""Stands for an attribute that a module or class does not have itself."""


@dataclass
class Replacement:
    """The attributes of one module or class that a launch replaces."""

    owner: Any
    names: list[str]
    own: list[Any]
    """The value of each without a launch; MISSING where there is none."""
    during: list[Any]
    """The value of each while a launch runs."""

    def is_untouched(self) -> bool:
        """Tells whether all attributes have their own values: a kernel's file may have set others."""
        values = current(self.owner, self.names)
        if values == self.own:
            return True
        # What a class inherited, Triton leaves it as its own.
        return [getattr(self.owner, name, MISSING) for name in self.names] == self.own

    def replace(self) -> None:
        """Sets the values that a launch needs."""
        self._set(self.during)

    def restore(self) -> None:
        """Sets the attributes' own values again."""
        self._set(self.own)

    def _set(self, values: list[Any]) -> None:
        if inspect.ismodule(self.owner) and MISSING not in values:
            vars(self.owner).update(zip(self.names, values, strict=True))
            return
        for name, value in zip(self.names, values, strict=True):
            if value is not MISSING:
                setattr(self.owner, name, value)
            elif name in vars(self.owner):
                delattr(self.owner, name)


class Replacements:
    """The replacements of all launches of a process."""

    def __init__(self) -> None:
        self.known: dict[frozenset[int], list[Replacement]] = {}
        """By the parts of `triton.language` that a kernel sees."""

    @contextlib.contextmanager
    def for_parts(self, parts: frozenset[int], patch: Callable[[], Any]) -> Iterator[None]:
        """Has replaced, for the length of the context, what `patch` replaces for a kernel that sees the `parts`.

        `patch` returns Triton's scope of its changes. It is called for the first of such launches, and wherever an attribute is not as it was then.
        """
        known = self.known.get(parts)
        if known is not None and all(one.is_untouched() for one in known):
            for one in known:
                one.replace()
            try:
                yield
            finally:
                for one in known:
                    one.restore()
            return
        scope = patch()
        try:
            if known is None:
                self.known[parts] = by_owner(scope._changes)
            yield
        finally:
            scope.restore()


def by_owner(changes: list[Change]) -> list[Replacement]:
    """Returns the `changes`, which are made, with what each attribute is now. Of several changes of an attribute the first one says what it was."""
    found: dict[int, Replacement] = {}
    firsts: dict[int, dict[str, Any]] = {}
    for owner, name, before in changes:
        found.setdefault(id(owner), Replacement(owner, [], [], []))
        firsts.setdefault(id(owner), {}).setdefault(name, before)
    for key, one in found.items():
        one.names = [*firsts[key]]
        one.during = current(one.owner, one.names)
        # Triton has its own mark for what was not there.
        one.own = [MISSING if is_mark(before) else before for before in firsts[key].values()]
    return [*found.values()]


def is_mark(value: Any) -> bool:
    """Tells whether a value is Triton's mark of a missing attribute."""
    from triton.runtime import interpreter

    return value is interpreter._MISSING


def current(owner: Any, names: list[str]) -> list[Any]:
    """Returns the values that a module or class itself has for `names`."""
    own = vars(owner)
    return [own.get(name, MISSING) for name in names]
