"""Whether kernel code needs more than one of its device's queues.

The driver serves one process after the other. It starts CUDA in half the time if all streams of a process share one queue
(`CUDA_DEVICE_MAX_CONNECTIONS`; CUDA Programming Guide, environment variables). Different streams then wait for each other, but most wrappers use only
the caller's. So a wrapper is first called in a process with one queue. Code that makes another stream of torch's, or launches on one, meets an
exception. Whatever it makes of that, the reply asks for a call in a process with all queues. torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common, Reply

Asked = TypeVar("Asked", bound="Common")
"""The request of a phase."""

QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"
"""The variable that says how many a process has (src/engine/ready.rs)."""

AGAIN: Reply = {"outcome": "again", "class": None, "cites": False, "documents": {}, "files": {}}
"""The reply that asks to be called again (src/engine/perform/step.rs)."""


class Wanted(BaseException):
    """Code of a kernel uses another stream than the caller's. No error of its own: nothing but what set the limit may catch it."""


_limits: list[list[bool]] = []
"""Whether another stream was wanted, in the context that sets the limit."""


def in_one(function: Callable[[Asked], Reply]) -> Callable[[Asked], Reply]:
    """Returns the phase function so that it replies `AGAIN` where it raises Wanted, or code that it calls does in a process with one queue, whatever that code makes of it."""

    @functools.wraps(function)
    def limited(request: Asked) -> Reply:
        try:
            with kept_to_one(request["lane"]):
                return function(request)
        except Wanted:
            return AGAIN.copy()

    return limited


@contextlib.contextmanager
def kept_to_one(lane: str) -> Iterator[None]:
    """Raises Wanted, in the context and at its end, where code wants another stream than the caller's and the process has one queue of its device."""
    if lane != "cuda" or os.environ.get(QUEUES) != "1":
        yield
        return
    with limit() as wanted:
        try:
            yield
        except BaseException:
            if not wanted:
                raise
    if wanted:
        raise Wanted


@contextlib.contextmanager
def limit() -> Iterator[list[bool]]:
    """Raises Wanted, in the context, where code makes another stream; yields a list that is not empty from then on."""
    import torch

    wanted: list[bool] = []
    stream: Any = torch.cuda.Stream
    external: Any = torch.cuda.ExternalStream
    make, take = stream.__new__, external.__new__

    def making(cls: object, *args: object, **kwargs: object) -> object:
        # With an id it is a stream that is there, as the present one is when it is asked for.
        if "stream_id" not in kwargs:
            want()
        return make(cls, *args, **kwargs)

    def taking(cls: object, *args: object, **kwargs: object) -> object:
        want()
        return take(cls, *args, **kwargs)

    _limits.append(wanted)
    stream.__new__ = making
    external.__new__ = taking
    try:
        yield wanted
    finally:
        stream.__new__ = make
        external.__new__ = take
        _limits.remove(wanted)


def want() -> None:
    """Says that another stream than the caller's is used. Raises Wanted where there is a limit."""
    if _limits:
        _limits[-1].append(True)
        raise Wanted
