"""A stand-in for Ray, for tests: a cluster whose nodes are processes of this machine, as `$FAKE_RAY/nodes.json` says at every moment.

A node is `{"id", "name", "gpus", "environment"}`, with `"cpus"` if it has not 2, and `"labels"` if it has some, which an action that takes a device has to select. `fails` is why it fails whatever it is to run; what runs on one that is `frozen` never ends. Both tell their facts.
`$FAKE_RAY/ray.log` has a line for each start of a driver, for each blob that is sent, for each node that is asked for its facts, and for each action: `open ADDRESS`,
`put LENGTH`, `ask NODE`, `run NODE`, or `run on cores of NODE`. Where there is a file `refuses`, it says why there is
no cluster; where there is a file `cut`, what is cancelled goes on.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ray.exceptions import RayError

HERE = Path(os.environ["FAKE_RAY"])
LOCK = threading.Lock()

NODE = """
import pickle, sys
from t2t_ray import node
asked, ended = sys.argv[1:]
with open(asked, "rb") as file:
    asked = pickle.load(file)
if asked is None:
    result = node.facts()
else:
    bundle, jobs, blobs = asked
    result = node.perform(bundle, None, jobs, lambda digests: {name: blobs[name] for name in digests if name in blobs})
with open(ended, "wb") as file:
    pickle.dump(result, file)
"""
"""What the process of a node runs."""


def note(line: str) -> None:
    """Add a line to the log."""
    with LOCK, open(HERE / "ray.log", "a") as file:
        file.write(line + "\n")


def init(address: str, **_: Any) -> None:
    """Join the cluster."""
    note(f"open {address}")
    refuses = HERE / "refuses"
    if refuses.exists():
        raise RuntimeError(refuses.read_text())


def shutdown() -> None:
    """Leave the cluster."""


def rows() -> list[dict[str, Any]]:
    """Return what is written of the nodes."""
    found: list[dict[str, Any]] = json.loads((HERE / "nodes.json").read_text())
    return found


def nodes() -> list[dict[str, Any]]:
    """Return the nodes as Ray tells them."""

    def told(row: dict[str, Any]) -> dict[str, Any]:
        has = {"CPU": float(row.get("cpus", 2)), "GPU": float(row["gpus"])}
        place = {"NodeID": row["id"], "NodeManagerAddress": row["name"]}
        return {**place, "Alive": True, "Resources": has, "Labels": row.get("labels", {})}

    return [told(row) for row in rows()]


def put(blob: bytes) -> bytes:
    """Return a reference to bytes: here, themselves."""
    note(f"put {len(blob)}")
    return blob


class Ref:
    """What a node does: an action, or telling its facts where it is `asked` nothing."""

    def __init__(self, node: str, asked: tuple[str, int | None, dict[str, bytes]] | None) -> None:
        self.ended: Future[dict[str, Any]] = Future()
        self.process: subprocess.Popen[bytes] | None = None
        note(f"{'ask' if asked is None else 'run' if asked[1] is None else 'run on cores of'} {node}")
        row = next((row for row in rows() if row["id"] == node), None)
        if row is None or ("fails" in row and asked is not None):
            self.ended.set_exception(RayError("no such node" if row is None else row["fails"]))
        elif asked is None or not row.get("frozen"):
            folder = Path(tempfile.mkdtemp(dir=HERE))
            (folder / "asked").write_bytes(pickle.dumps(asked))
            command = [sys.executable, "-c", NODE, str(folder / "asked"), str(folder / "ended")]
            self.process = subprocess.Popen(command, env={**os.environ, **row["environment"]})
            threading.Thread(target=self.wait, args=[folder / "ended"], daemon=True).start()

    def wait(self, ended: Path) -> None:
        """Wait for the process of the node."""
        assert self.process is not None
        self.process.wait()
        try:
            self.ended.set_result(pickle.loads(ended.read_bytes()))
        except OSError:
            self.ended.set_exception(RayError("the worker died"))

    def future(self) -> Future[dict[str, Any]]:
        """Return what tells the end."""
        return self.ended


def cancel(ref: Ref, force: bool) -> None:
    """End an action as Ray does: its worker is killed."""
    assert force
    if ref.process is not None and not (HERE / "cut").exists():
        ref.process.kill()


class remote:
    """A function that nodes run."""

    def __init__(self, function: Callable[..., Any], where: Any = None) -> None:
        self.function, self.where = function, where

    def options(self, **options: Any) -> remote:
        """Return it with the node that is to run it."""
        takes = options["num_gpus"], options["num_cpus"]
        assert options["max_retries"] == 0 and takes in (
            [(0, 0)] if self.function.__name__ == "facts" else [(1, 0), (0, 2)]
        )
        where = options["scheduling_strategy"]
        labels = [row.get("labels", {}) for row in rows() if row["id"] == where.node_id]
        assert takes != (1, 0) or not labels or options.get("label_selector", {}) == labels[0]
        return remote(self.function, where)

    def remote(self, *asked: Any) -> Ref:
        """Have it run."""
        if not asked:
            return Ref(self.where.node_id, None)
        bundle, of, jobs, refs = asked
        assert of > 0
        return Ref(self.where.node_id, (bundle, jobs, {digest: ref[0] for digest, ref in refs.items()}))
