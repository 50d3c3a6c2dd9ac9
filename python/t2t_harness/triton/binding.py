"""Which argument of a kernel has which name, found out once a function and not for each of its launches."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

KEPT = 256
"""So many functions are known at once."""


@dataclass(frozen=True)
class Form:
    """The parameters of a kernel."""

    names: tuple[str, ...]
    """All of them, in order."""
    defaults: Mapping[str, object]
    constexprs: tuple[str, ...]
    """Those that are annotated as `constexpr`."""
    is_plain: bool
    """Whether each may be given by its place and by its name, and no others."""


@functools.lru_cache(KEPT)
def form_of(function: Callable[..., object]) -> Form:
    """Returns the parameters of a Python function."""
    parameters = inspect.signature(function).parameters
    defaults = {name: one.default for name, one in parameters.items() if one.default is not inspect.Parameter.empty}
    constexprs = tuple(name for name, one in parameters.items() if "constexpr" in str(one.annotation))
    is_plain = all(one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for one in parameters.values())
    return Form(tuple(parameters), defaults, constexprs, is_plain)


def known_of(function: Callable[..., object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Returns those of `kwargs` that are parameters of the function: the others, as `num_warps`, are of its launch."""
    names = form_of(function).names
    return {name: value for name, value in kwargs.items() if name in names}


def given_of(
    function: Callable[..., object], args: tuple[object, ...], known: Mapping[str, object]
) -> dict[str, object]:
    """Returns the arguments of a call by name, in the order of the parameters, those that are not given at their defaults, and no others.

    Raises TypeError where more are given than the function has, or one twice.
    """
    given = _placed(form_of(function), args, known)
    if given is None:
        bound = inspect.signature(function).bind_partial(*args, **known)
        bound.apply_defaults()
        given = dict(bound.arguments)
    return given


def called_with(
    function: Callable[..., object], args: tuple[object, ...], known: Mapping[str, object]
) -> dict[str, object]:
    """Returns `given_of` a call that must be whole. Raises Python's own TypeError where it is not."""
    form = form_of(function)
    given = _placed(form, args, known)
    return (
        given if given is not None and len(given) == len(form.names) else inspect.getcallargs(function, *args, **known)
    )


def _placed(form: Form, args: tuple[object, ...], known: Mapping[str, object]) -> dict[str, object] | None:
    """Returns the arguments by name where that is simple, else None: then Python binds them, or says what is wrong."""
    names = form.names
    if not form.is_plain or len(args) > len(names) or not known.keys().isdisjoint(names[: len(args)]):
        return None
    given = {**form.defaults, **dict(zip(names, args, strict=False)), **known}
    return {name: given[name] for name in names if name in given}
