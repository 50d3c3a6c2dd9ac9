"""What a launch on the interpreter replaces in `triton.language`, found out once for all launches that replace the same.

Triton sets and resets some two hundred attributes one by one for each launch, which takes as long as a small kernel does. Here a module's are set at once, and only a class's
one by one. Triton is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
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

    def __post_init__(self) -> None:
        self.is_class = inspect.isclass(self.owner)
        self.values = operator.itemgetter(*self.names, *self.names[:1])
        self.wanted = (*self.during, *self.during[:1])
        self.usual = (*self.own, *self.own[:1])

    def is_known(self) -> bool:
        """Tells whether all attributes have their own values, or in a class those that a launch left: a kernel's file may have set others."""
        return self.is_replaced() if self.is_class and self.is_replaced() else self.is_untouched()

    def is_replaced(self) -> bool:
        """Tells whether all attributes have the values that a launch needs."""
        return self.has(self.wanted)

    def has(self, values: tuple[Any, ...]) -> bool:
        """Tells whether the module or class itself has these values, in the order of the names, the first one once more."""
        try:
            return bool(self.values(vars(self.owner)) == values)
        except KeyError:
            return False

    def is_untouched(self) -> bool:
        """Tells whether all attributes have their own values."""
        if self.has(self.usual):
            return True
        values = current(self.owner, self.names)
        if values == self.own:
            return True
        # What a class inherited, Triton leaves it as its own.
        return [getattr(self.owner, name, MISSING) for name in self.names] == self.own

    def replace(self) -> None:
        """Sets the values that a launch needs."""
        if not (self.is_class and self.is_replaced()):
            self._set(self.during)

    def restore(self) -> None:
        """Sets the attributes' own values again."""
        self._set(self.own)

    def _set(self, values: list[Any]) -> None:
        if not self.is_class and MISSING not in values:
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

        `patch` returns Triton's scope of its changes. It is called for the first of such launches, and wherever an attribute is not as it was then. Classes stay as a launch leaves them: each change
        of one costs Python what it knows of it, and nothing but a kernel calls what is replaced there.
        """
        known = self.known.get(parts)
        if known is not None and all(one.is_known() for one in known):
            for one in known:
                one.replace()
            try:
                yield
            finally:
                for one in known:
                    if not one.is_class:
                        one.restore()
            return
        self.leave()
        scope = patch()
        try:
            if known is None:
                self.known[parts] = by_owner(scope._changes)
            yield
        finally:
            scope.restore()

    def leave(self) -> None:
        """Restores the classes that launches left as they needed them."""
        for one in chain.from_iterable(self.known.values()):
            if one.is_class and one.is_replaced():
                one.restore()


def by_owner(changes: list[Change]) -> list[Replacement]:
    """Returns the `changes`, which are made, with what each attribute is now. Of several changes of an attribute the first one says what it was."""
    owners: dict[int, Any] = {}
    firsts: dict[int, dict[str, Any]] = {}
    for owner, name, before in changes:
        owners[id(owner)] = owner
        firsts.setdefault(id(owner), {}).setdefault(name, before)
    # Triton has its own mark for what was not there.
    return [
        Replacement(
            owners[key],
            [*own],
            [MISSING if is_mark(before) else before for before in own.values()],
            current(owners[key], [*own]),
        )
        for key, own in firsts.items()
    ]


def is_mark(value: Any) -> bool:
    """Tells whether a value is Triton's mark of a missing attribute."""
    from triton.runtime import interpreter

    return value is interpreter._MISSING


def current(owner: Any, names: list[str]) -> list[Any]:
    """Returns the values that a module or class itself has for `names`."""
    own = vars(owner)
    return [own.get(name, MISSING) for name in names]
