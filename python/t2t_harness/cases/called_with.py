"""The arguments that a wrapper is called with in a case. torch is imported nowhere."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import cases, seeds
from t2t_harness.op import declaration as declared

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration


def kwargs_of(declaration: Declaration, case: cases.Case) -> dict[str, Any]:
    """Returns the keyword arguments of `case` as torch takes them."""
    return declared.bind_kwargs(declaration["kwargs"] if case.kwargs is None else case.kwargs, case.binding)


def call_arguments(
    callable_: Callable[..., Any],
    declaration: Declaration,
    case: cases.Case,
    inputs: Mapping[str, Any],
    label: str = "a",
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments that the wrapper `callable_` is called with: positional and by keyword.

    Inputs go by keyword if the wrapper's parameters have all their names, else by position in declared order; kwargs by
    keyword. A list of tensors is one input; one that the case leaves out is None. A wrapper of a random op has the seed of
    the run `label`.
    """
    named = named_arguments(declaration, case, inputs, label)
    arguments = {name: named[name] for name in declared.arguments(declaration, inputs)}
    kwargs = {name: value for name, value in named.items() if name not in arguments}
    if _takes(callable_, arguments):
        return (), {**arguments, **kwargs}
    return tuple(arguments.values()), kwargs


def named_arguments(
    declaration: Declaration, case: cases.Case, inputs: Mapping[str, Any], label: str
) -> dict[str, Any]:
    """Returns all that a wrapper may be called with, by name: inputs, kwargs, and of a random op the seed of the run
    `label`, by which torch's generators are seeded where the op has no name for it."""
    # A case may have another number in the place of one among the inputs.
    known = {**declared.arguments(declaration, inputs), **kwargs_of(declaration, case)}
    return seeds.seeded(declaration, known, seeds.seed_of(case, label))


def _takes(callable_: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    named = _named_once(callable_) if isinstance(callable_, FunctionType) else _named(callable_)
    return named is not None and set(inputs) <= named


def _named(callable_: Callable[..., Any]) -> set[str] | None:
    """Returns the parameters that may be given by name; None where Python knows none."""
    try:
        parameters = inspect.signature(callable_).parameters.values()
    except (TypeError, ValueError):
        return None
    return {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}


_named_once = functools.lru_cache(16)(_named)
"""The same, of functions: asked once for each, and not for each case."""
