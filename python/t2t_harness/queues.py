"""Whether kernel code needs more than one of its device's queues.

To start CUDA takes the driver, which serves one process after the other, half the time where all streams of a process share one queue
(`CUDA_DEVICE_MAX_CONNECTIONS`, CUDA C++ Programming Guide, environment variables). Most wrappers use no stream but the caller's, and a check measures nothing. So a check first
calls the wrapper in a process with one queue. Code that makes another stream of torch's, or launches on one, is told so by an exception; whatever it makes of
that, the reply asks for a call in a process that has them all. torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"
"""The variable that says how many a process has (src/engine/ready.rs)."""

AGAIN: Mapping[str, Any] = {"outcome": "again", "class": None, "cites": False, "documents": {}, "files": {}}
"""The reply that asks to be called again (src/engine/perform/step.rs)."""


class Wanted(BaseException):
    """Code of a kernel uses another stream than the caller's. No error of its own: nothing but what set the limit may catch it."""


_limits: list[list[bool]] = []
"""Whether another stream was wanted, in the context that sets the limit."""


def in_one(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Returns the phase function so that it replies `AGAIN` in a process with one queue where another stream is wanted, whatever the kernel's code makes of that."""

    @functools.wraps(function)
    def limited(request: Mapping[str, Any]) -> dict[str, Any]:
        if request["lane"] != "cuda" or os.environ.get(QUEUES) != "1":
            return function(request)
        with limit() as wanted:
            try:
                reply = function(request)
            except BaseException:
                if not wanted:
                    raise
        return dict(AGAIN) if wanted else reply

    return limited


@contextlib.contextmanager
def limit() -> Iterator[list[bool]]:
    """Raises Wanted, in the context, where code makes another stream; yields a list that is not empty from then on."""
    import torch

    wanted: list[bool] = []
    stream: Any = torch.cuda.Stream
    external: Any = torch.cuda.ExternalStream
    make, take = stream.__new__, external.__new__

    def making(cls: Any, *args: Any, **kwargs: Any) -> Any:
        # With an id it is a stream that is there, as the present one is when it is asked for.
        if "stream_id" not in kwargs:
            want()
        return make(cls, *args, **kwargs)

    def taking(cls: Any, *args: Any, **kwargs: Any) -> Any:
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
