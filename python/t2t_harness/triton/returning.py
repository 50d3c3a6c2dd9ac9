"""Ends a call of kernel code that does not return, so that a compile does not wait for its deadline: the check tells what is wrong with it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from typing import Any

PATIENCE_S = 60.0
"""How long a call may take in which nothing is compiled. On tensors without values a wrapper is over within seconds."""

TICKS = 12
"""So often in that time it is looked whether it is over."""


class Endless(BaseException):
    """The call had not returned. No error of any kernel: nothing but what set the limit may catch it."""


@contextlib.contextmanager
def awaited() -> Iterator[None]:
    """Raises Endless in the context once `PATIENCE_S` have gone by in which Triton compiled nothing. Code that catches it is asked again.

    It is for the main thread, and the only user of SIGALRM there. What hangs outside of Python is left to the deadline.
    """
    from triton.runtime import jit

    compile_ = jit.JITFunction._do_compile
    since, compiling = time.monotonic(), 0

    def do_compile(self: Any, *args: Any) -> Any:
        nonlocal since, compiling
        compiling += 1
        try:
            return compile_(self, *args)
        finally:
            compiling -= 1
            since = time.monotonic()

    def look(_number: int, _frame: object) -> None:
        if compiling == 0 and time.monotonic() - since > PATIENCE_S:
            raise Endless(f"not over after {PATIENCE_S:g} s in which nothing was compiled")

    earlier = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S / TICKS, PATIENCE_S / TICKS)
    jit.JITFunction._do_compile = do_compile
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
        jit.JITFunction._do_compile = compile_
