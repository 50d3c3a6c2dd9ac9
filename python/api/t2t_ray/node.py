"""What runs on a node: `t2t perform` over the bundle of one action, with the blobs that the node lacks.

A worker of Ray performs many actions one after another. It keeps one `t2t perform serve`, in which torch is imported once, for as long as they have the same device.
Ray carries this module to the node by value, so it takes nothing but Python's own library there. A node has to have t2t, as a program, and a Python with
torch: `$T2T_BIN` and `$T2T_PYTHON` of the node name them, else `t2t` beside the Python of Ray's worker or on the PATH, and that Python.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

WORDS = 4000
"""How much of what t2t says on standard error is told, in characters."""

KEPT = "_t2t_kept"
"""The name in `sys.modules` under which a worker keeps its server."""


def remotely(bundle: str, of: int, jobs: int | None, refs: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Perform an action in a worker of Ray, on a node with so many devices. `refs` has a list of one reference by digest: Ray does not follow those by itself, so a node fetches only
    what it lacks."""
    import ray

    numbers = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
    share = (int(numbers[0]), of) if numbers and numbers[0].isdigit() and int(numbers[0]) < of else None

    def fetch(digests: list[str]) -> dict[str, bytes]:
        known = [digest for digest in digests if digest in refs]
        return dict(zip(known, ray.get([refs[digest][0] for digest in known]), strict=True))

    return perform(bundle, share, jobs, fetch)


def perform(
    bundle: str, share: tuple[int, int] | None, jobs: int | None, fetch: Callable[[list[str]], Mapping[str, bytes]]
) -> dict[str, Any]:
    """Perform the action of `bundle`; `fetch` gives the blobs of digests, as far as they were sent. `share` is which of how many devices it has: it runs on that part of the cores.

    Returns `exit`, `document`, `said`, `result` (bytes or None), and `missing`: digests that the node lacks and that were not sent. Then nothing ran.
    """
    with tempfile.TemporaryDirectory(prefix="t2t-") as folder:
        place = Path(folder)
        (place / "bundle.json").write_text(bundle)
        (place / "blobs").mkdir()
        server = Server.of(share, jobs)
        lacking = server.ask({"lacks": folder})
        if lacking["exit"] != 0:
            return {**lacking, "document": None, "result": None, "missing": []}
        wanted = lacking["document"]
        sent = fetch(wanted)
        for digest, blob in sent.items():
            (place / "blobs" / digest).write_bytes(blob)
        if missing := [digest for digest in wanted if digest not in sent]:
            return {"missing": missing}
        result = place / "result"
        told = server.ask({"run": {"folder": folder, "result": str(result)}})
        found = result.read_bytes() if result.exists() else None
        return {**told, "result": found, "missing": []}


class Server:
    """A process `t2t perform serve` of this worker, which ends when the worker does."""

    def __init__(self, key: tuple[Any, ...], share: tuple[int, int] | None, jobs: int | None) -> None:
        self.key = key
        self.words = tempfile.TemporaryFile()  # noqa: SIM115 (`end` closes it)
        environment = {**os.environ, "T2T_PYTHON": os.environ.get("T2T_PYTHON") or sys.executable}
        slots = [] if jobs is None else ["--jobs", str(jobs)]
        command = [binary(), "perform", "serve", *slots, "--parent", str(os.getpid())]
        with on_cores(share):
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words, text=True
            )

    @staticmethod
    def of(share: tuple[int, int] | None, jobs: int | None) -> Server:
        """Return the one that runs if it has the same device, cores and environment, else a new one in its place."""
        key = (share, jobs, tuple(sorted(os.environ.items())))
        # A module that travels by value may be there twice. The worker has this name once.
        kept: Any = sys.modules.setdefault(KEPT, ModuleType(KEPT))
        server: Server | None = getattr(kept, "server", None)
        if server is not None and (server.key != key or server.process.poll() is not None):
            server.end()
            server = None
        if server is None:
            server = kept.server = Server(key, share, jobs)
        return server

    def ask(self, line: dict[str, Any]) -> dict[str, Any]:
        """Return what it answers: `exit`, `document` and `said`. Of one that ended meanwhile it is how it ended, and its last words."""
        ask, told = self.process.stdin, self.process.stdout
        assert ask is not None and told is not None
        with contextlib.suppress(BrokenPipeError):
            ask.write(json.dumps(line) + "\n")
            ask.flush()
        try:
            answer: dict[str, Any] = json.loads(told.readline())
        except ValueError:
            exit = self.process.wait()
            self.words.seek(max(0, self.words.seek(0, os.SEEK_END) - WORDS))
            return {"exit": exit, "document": None, "said": self.words.read().decode(errors="replace")}
        return {**answer, "said": answer["said"][-WORDS:]}

    def end(self) -> None:
        """End it: it has nothing to do when its input ends."""
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()
        self.words.close()


def facts() -> dict[str, Any]:
    """Return what t2t says of this node: `document`, or None and in `said` why it says nothing."""
    try:
        command = [binary(), "perform", "facts"]
        told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return {"document": json.loads(told.stdout), "said": ""}
    except ValueError:
        first = next((line for line in told.stderr.splitlines() if line.strip()), "it said nothing")
        return {"document": None, "said": f"`t2t perform facts` ended with exit code {told.returncode}: {first}"}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"document": None, "said": str(error)}


def binary() -> str:
    """Return the program t2t of this node. Raises FileNotFoundError where there is none."""
    named = os.environ.get("T2T_BIN")
    beside = Path(sys.executable).parent / "t2t"
    found = named or (str(beside) if beside.exists() else shutil.which("t2t"))
    if found is None:
        raise FileNotFoundError(f"there is no t2t on this node: looked at $T2T_BIN, {beside}, the PATH")
    return found


class on_cores:
    """Runs what is started meanwhile on a part of the cores of this process: of so many devices, each has as many. Two devices of a node would share cores otherwise."""

    def __init__(self, share: tuple[int, int] | None) -> None:
        self.all = sorted(os.sched_getaffinity(0))
        number, of = share or (0, 1)
        first, end = len(self.all) * number // of, len(self.all) * (number + 1) // of
        self.own = self.all[first:end] or self.all

    def __enter__(self) -> None:
        os.sched_setaffinity(0, self.own)

    def __exit__(self, *_: object) -> None:
        os.sched_setaffinity(0, self.all)
