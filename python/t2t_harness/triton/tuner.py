"""What the harness uses of Triton's autotuner and of its configurations, as types (triton 3.6). It is imported by type checkers alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Config(Protocol):
    """A configuration."""

    kwargs: dict[str, object]
    """The constexpr arguments that it sets."""
    pre_hook: Callable[[dict[str, object]], object] | None

    def all_kwargs(self) -> dict[str, object]:
        """Returns all arguments that it sets: `kwargs`, and the numbers of warps and stages."""


class Function(Protocol):
    """What an autotuner wraps."""

    __name__: str

    def run(self, *args: object, **kwargs: object) -> object:
        """Launches it."""


class Tuner(Protocol):
    """An autotuned kernel."""

    configs: list[Config]
    cache: dict[tuple[object, ...], Config]
    """The winners, by key."""
    base_fn: Function
    """The kernel itself."""
    fn: Function
    """What it calls."""
    nargs: dict[str, object]
    """The arguments of the present call by position."""
    arg_names: list[str]
    keys: list[str]
    """The arguments that it chooses by."""
