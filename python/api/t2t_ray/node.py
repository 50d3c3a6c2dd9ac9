"""What runs on a node: `t2t perform` over the bundle of one action, with the blobs that the node lacks.

Ray carries this module to the node by value, so it takes nothing but Python's own library there. A node has to have t2t, as a program, and a Python with
torch: `$T2T_BIN` and `$T2T_PYTHON` of the node name them, else `t2t` beside the Python of Ray's worker or on the PATH, and that Python.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

WORDS = 4000
"""How much of what t2t says on standard error is told, in characters."""


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
        lacking = run(["lacks", folder])
        if lacking.returncode != 0:
            return ended(lacking, None)
        wanted = lacking.stdout.split()
        sent = fetch(wanted)
        for digest, blob in sent.items():
            (place / "blobs" / digest).write_bytes(blob)
        if missing := [digest for digest in wanted if digest not in sent]:
            return {"missing": missing}
        result = place / "result"
        with on_cores(share):
            slots = [] if jobs is None else ["--jobs", str(jobs)]
            performed = run(["run", folder, str(result), *slots])
        return ended(performed, result)


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a part of `t2t perform`, which ends when this process does."""
    environment = {**os.environ, "T2T_PYTHON": os.environ.get("T2T_PYTHON") or sys.executable}
    command = [binary(), "perform", *arguments, "--parent", str(os.getpid())]
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def binary() -> str:
    """Return the program t2t of this node. Raises FileNotFoundError where there is none."""
    named = os.environ.get("T2T_BIN")
    beside = Path(sys.executable).parent / "t2t"
    found = named or (str(beside) if beside.exists() else shutil.which("t2t"))
    if found is None:
        raise FileNotFoundError(f"there is no t2t on this node: looked at $T2T_BIN, {beside}, the PATH")
    return found


def ended(process: subprocess.CompletedProcess[str], result: Path | None) -> dict[str, Any]:
    """Return how `t2t perform` ended."""
    try:
        document = json.loads(process.stdout)
    except ValueError:
        document = None
    found = result.read_bytes() if result is not None and result.exists() else None
    said = process.stderr[-WORDS:]
    return {"exit": process.returncode, "document": document, "said": said, "result": found, "missing": []}


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
