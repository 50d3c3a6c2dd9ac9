"""The kernels that run on a device while a wrapper is called, by CUPTI in the worker: below torch's layers, and on any thread.

Torch operations that were seen to be dispatched, launches of Triton's that were recorded and what the harness does itself are accounted for. What is launched beside
them was kept from sight. Nothing is counted on the interpreter, or where CUPTI is not there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


def _nothing() -> list[str]:
    return []


_enter: Callable[[], object] = _nothing
_leave: Callable[[], list[str]] = _nothing


@dataclass
class Counted:
    """What ran while kernels were counted."""

    is_known: bool = False
    """Whether anything was counted."""
    symbols: set[str] = field(default_factory=set)
    """The names of all kernels, as the driver has them."""
    unaccounted: list[str] = field(default_factory=list)
    """Those that nothing accounts for, in the order of their names."""


_present: Counted | None = None


@contextlib.contextmanager
def counting(lane: str) -> Iterator[Counted]:
    """Counts the kernels that this process launches, for the length of the context, on the `cuda` lane. What is found is there at its end."""
    global _enter, _leave, _present
    found = Counted()
    if lane != "cuda" or _present is not None:
        yield found
        return
    import t2t_worker

    found.is_known = bool(t2t_worker.count_launches())
    _present = found
    if found.is_known:
        _enter, _leave = t2t_worker.enter_work, t2t_worker.leave_work
    try:
        yield found
    finally:
        _enter, _leave, _present = _nothing, _nothing, None
        symbols, unaccounted = t2t_worker.counted_launches()
        found.symbols = set(symbols)
        found.unaccounted = sorted({*found.unaccounted, *unaccounted})


@contextlib.contextmanager
def accounted() -> Iterator[list[str]]:
    """Accounts for this thread's launches within the context. Yields a list that at the end holds the names of those kernels, without those of an inner such context."""
    leave = _leave
    _enter()
    names: list[str] = []
    try:
        yield names
    finally:
        names += leave()


def launched(names: list[str], compiled: object) -> None:
    """Notes that Triton's launch of the kernel `compiled` launched kernels with these `names`. Those with another name, such as a torch operation in a grid function, are unaccounted."""
    if _present is None or not names:
        return
    ready = compiled.result() if hasattr(compiled, "result") else compiled
    launched_as(names, getattr(getattr(ready, "metadata", None), "name", None))


def launched_as(names: list[str], own: str | None) -> None:
    """Notes that the launch of a kernel of the name `own` launched kernels with these `names`. Those with another name are unaccounted."""
    if _present is not None:
        _present.unaccounted += [name for name in names if name != own]
