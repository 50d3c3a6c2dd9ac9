"""Which kernel serves a call, and how it is called."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

Wrapper = Callable[..., Any]


def named(module: str, entry: str) -> Wrapper:
    """Returns what `entry` is in `module`, which is imported: with a dot before its name from this package."""
    found: Any = importlib.import_module(module, __package__)
    for part in entry.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


@functools.cache
def load(module: str, entry: str) -> Wrapper:
    """Returns the wrapper `entry` of `module`, which is imported with the first call."""
    return named(module, entry)


def call(wrapper: Wrapper, inputs: Mapping[str, Any], others: Mapping[str, Any]) -> Any:
    """Returns what `wrapper` returns: inputs go by name where it has parameters of all their names, else by position."""
    if set(inputs) <= _named(wrapper):
        return wrapper(**inputs, **others)
    return wrapper(*inputs.values(), **others)


@functools.cache
def _named(wrapper: Wrapper) -> frozenset[str]:
    try:
        parameters = inspect.signature(wrapper).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    return frozenset(one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))


def only(op: str, name: str, given: object, known: object) -> None:
    """Raises ValueError where an argument that the kernel does not take has another value than the one it was checked with."""
    if isinstance(given, tuple):
        given = list(given)
    if type(given) is not type(known) or given != known:
        raise ValueError(f"the kernel of `{op}` computes `{name}={known!r}` alone, got {given!r}")


def choice(on: Mapping[str, str], chosen: str, inputs: Iterable[object]) -> str:
    """Returns the variant that was chosen on the device of the first tensor, by its name; `chosen` where none is known of it."""
    if not on:
        return chosen
    for value in inputs:
        tensor = value[0] if isinstance(value, list | tuple) and value else value
        if isinstance(tensor, torch.Tensor):
            return on.get(_name(tensor.device.index or 0), chosen) if tensor.device.type == "cuda" else chosen
    return chosen


@functools.cache
def _name(index: int) -> str:
    return torch.cuda.get_device_name(index)
