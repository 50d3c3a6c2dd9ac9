"""Fills Triton's cache in several processes at once, so that the one that needs the kernels finds them.

Forks cost more than they save if there are few kernels, and their number is known only at the end. So a process starts alone. If that takes longer
than its `PATIENCE_S`, it starts again with forks.

The Python part of Triton's compiler holds the interpreter's lock, so they are processes. All forks go through the same launches; each compiles what
no other has begun, and skips the rest. The process itself does what they cannot compile, and all reporting: it goes through the launches once more,
alone and in order, and so reports the same as without forks.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from t2t_harness.triton import launching

PR_SET_PDEATHSIG = 1

PATIENCE_S = 1.0
"""How long a process compiles by itself. To begin anew costs about a tenth of a second, beside the forks."""


class Slow(BaseException):
    """There is more to compile than one process has patience for. No error of any kernel: nothing but what set the limit may catch it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises Slow, in the context, where a launch asks for what no earlier one had once the time is over."""
    end = time.monotonic() + seconds

    def is_over(_: launching.Compilation) -> bool:
        if time.monotonic() > end:
            raise Slow
        return False

    with launching.before_compiling(is_over):
        yield


Walk = Callable[[list[str]], None]
"""Goes through all launches, and adds Triton's hashes of what it compiled to the list."""


def fill(walk: Walk, processes: int) -> set[str]:
    """Runs `walk` in as many forks as `processes`, waits for them, and returns Triton's hashes of what they compiled; nothing for one process.

    What a fork raises ends that fork alone. They end with this process.
    """
    if processes < 2:
        return set()
    with tempfile.TemporaryDirectory() as claims, brood() as running:
        for _ in range(processes):
            receiver, sender = os.pipe()
            parent = os.getpid()
            process = os.fork()
            if process == 0:
                live(walk, Path(claims), sender, parent)
            os.close(sender)
            running[process] = receiver
        return gathered(running)


@contextlib.contextmanager
def brood() -> Iterator[dict[int, int]]:
    """Yields an empty table for forks, process id → the pipe with its report; at the end kills and reaps those that are still in it."""
    running: dict[int, int] = {}
    try:
        yield running
    finally:
        for process, receiver in running.items():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(receiver)


def gathered(running: dict[int, int]) -> set[str]:
    """Waits for all forks, takes them off the table and returns their reports."""
    told: set[str] = set()
    for process, receiver in list(running.items()):
        with os.fdopen(os.dup(receiver), "rb") as pipe, contextlib.suppress(ValueError):
            told.update(json.loads(pipe.read()))
        os.waitpid(process, 0)
        os.close(running.pop(process))
    return told


def live(walk: Walk, claims: Path, sender: int, parent: int) -> None:
    """Is the life of a fork: walks, tells what it compiled, and ends. Returns never."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            keep_signals_in()
            hashes: list[str] = []
            with claiming(claims), contextlib.suppress(BaseException):
                walk(hashes)
            with os.fdopen(sender, "wb") as pipe:
                pipe.write(json.dumps(hashes).encode())
    finally:
        os._exit(0)


def keep_signals_in() -> None:
    """Keeps kernel code in this fork from ending the process that forked it, where the worker can."""
    with contextlib.suppress(ImportError):
        from t2t_worker import keep_signals_in as keep_in

        keep_in()


@contextlib.contextmanager
def claiming(folder: Path) -> Iterator[None]:
    """Makes Triton skip, for the length of the context, each launch that another process has begun to compile: it then returns None.

    A launch is claimed by the first who makes a file of its name in `folder`.
    """

    def is_taken(compilation: launching.Compilation) -> bool:
        try:
            (folder / hashlib.sha256(compilation.name.encode()).hexdigest()).touch(exist_ok=False)
        except FileExistsError:
            return True
        return False

    with launching.before_compiling(is_taken):
        yield
