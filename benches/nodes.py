"""Measures what `t2t build --on` costs t2t itself for each action that a node of a cluster performs, in a workspace of many ops.

The nodes are processes of this machine, started by the stand-in for Ray of the tests, with the stand-in for Python: what they take is not t2t's. Measured is the CPU time of the
process of t2t, in two builds of the same workspace, of few ops and of many: the difference, over the number of actions that it is for, and the largest memory of each. A last build
runs nothing, and must not have asked the cluster.

    cargo build --release
    python benches/nodes.py [--t2t PATH] [--ops N] [--few N] [--many N]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

OP = """\
  {name}:
    torch: softmax
    inputs: {{input: [M, N]}}
    kwargs: {{dim: -1}}
    variants: [v1]
    bench: {{sizes: {{small: [16, 16]}}}}
"""

KERNEL = """\
import torch
import triton
import triton.language as tl

NUMBER = {number}


def triton_{name}(input, dim):
    return None
"""

GOAL_MS = 10.0
"""What an action may cost, submission and result together."""


class Built(NamedTuple):
    """A build."""

    cpu_s: float
    """CPU time of the process of t2t, without those that it started."""
    memory_mib: int
    """Its largest resident memory."""
    wall_s: float


def main() -> None:
    """Runs the builds and prints what they took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--t2t", default=str(ROOT / "target/release/t2t"), help="the release binary")
    parser.add_argument("--ops", type=int, default=1000, help="ops of the workspace")
    parser.add_argument("--few", type=int, default=10, help="ops of the first build")
    parser.add_argument("--many", type=int, default=110, help="ops of the second")
    arguments = parser.parse_args()
    if arguments.few + arguments.many > arguments.ops:
        parser.error("the two builds have no op in common: --few and --many together are at most --ops")
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder), str(Path(arguments.t2t).absolute()), arguments.ops)
        few = cluster.build(range(arguments.few))
        many = cluster.build(range(arguments.few, arguments.few + arguments.many))
        opened = cluster.count("open")
        again = cluster.build(range(arguments.few + arguments.many))
        if cluster.count("open") != opened:
            sys.exit("error: a build that runs nothing asked the cluster")
    each = 1e3 * (many.cpu_s - few.cpu_s) / (arguments.many - arguments.few)
    for name, built in (("few", few), ("many", many), ("nothing to run", again)):
        print(f"{name:16} {built.cpu_s:.2f} s of CPU, {built.memory_mib} MiB, {built.wall_s:.1f} s")
    verdict = "met" if each < GOAL_MS else "missed"
    print(
        f"an op more, with an analysis here and a check on a node: {each:.1f} ms of CPU; the goal of {GOAL_MS:.0f} ms is {verdict}"
    )


class Cluster:
    """A workspace, and two nodes of two devices each."""

    def __init__(self, folder: Path, t2t: str, ops: int) -> None:
        self.folder, self.t2t = folder, t2t
        self.workspace, self.ray = folder / "workspace", folder / "ray"
        self.ray.mkdir()
        for number in range(ops):
            file = self.workspace / "kernels" / f"op{number}" / "v1.py"
            file.parent.mkdir(parents=True)
            file.write_text(KERNEL.format(number=number, name=f"op{number}"))
        declared = "".join(OP.format(name=f"op{number}") for number in range(ops))
        (self.workspace / "ops.yaml").write_text(f"version: 1\nops:\n{declared}")
        for place in ("python", "one/python", "two/python"):
            install(folder / place)
        (self.ray / "nodes.json").write_text(json.dumps([self.node("one"), self.node("two")]))

    def node(self, name: str) -> dict[str, object]:
        """Returns a node as the stand-in for Ray reads it."""
        place = self.folder / name
        environment = {"T2T_NODE": place / "node", "T2T_PYTHON": place / "python/bin/python", "T2T_BIN": self.t2t}
        told = {variable: str(value) for variable, value in environment.items()}
        return {"id": f"id-{name}", "name": name, "gpus": 2, "environment": told}

    def build(self, numbers: range) -> Built:
        """Checks these ops on the nodes, and returns what that took. Exits where the build fails."""
        modules = [str(ROOT / "tests/it/fake_ray"), str(ROOT / "python/api")]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "T2T_PYTHON": str(self.folder / "python/bin/python"),
            "T2T_BYTECODE": "",
            "T2T_RAY_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(modules),
            "PYTHONDONTWRITEBYTECODE": "1",
            "FAKE_RAY": str(self.ray),
        }
        targets = [f"op{number}:check" for number in numbers]
        command = [self.t2t, "build", "--device", "cpu", "--on", "ray://head:10001", *targets]
        log, began = self.folder / "log", time.monotonic()
        with log.open("w") as told:
            process = subprocess.Popen(command, cwd=self.workspace, env=environment, stdout=told, stderr=told)
            cpu_s, memory_mib = 0.0, 0
            while process.poll() is None:
                cpu_s, memory_mib = looked_at(process.pid, cpu_s, memory_mib)
                time.sleep(0.01)
        if process.returncode:
            sys.exit(f"error: the build failed\n{log.read_text()}")
        return Built(cpu_s, memory_mib, time.monotonic() - began)

    def count(self, start: str) -> int:
        """Returns how often the stand-in for Ray logged a line that starts so."""
        lines = (self.ray / "ray.log").read_text().splitlines()
        return sum(line.startswith(start) for line in lines)


def install(folder: Path) -> None:
    """Puts the stand-in for Python into a folder."""
    for name in ("bin", "site-packages"):
        (folder / name).mkdir(parents=True)
    (folder / "bin/python").symlink_to(ROOT / "tests/it/fake_python/server.py")
    (folder / "site-packages/versions.json").write_text(json.dumps({"torch": "2.11.0", "triton": "3.6.0"}))


def looked_at(process: int, cpu_s: float, memory_mib: int) -> tuple[float, int]:
    """Returns the CPU time of a process so far, in seconds, and its largest memory, in MiB; what was known of it where it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return cpu_s, memory_mib
    ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
    memory = pages * os.sysconf("SC_PAGE_SIZE") >> 20
    # One that has just ended has none.
    return max(cpu_s, ticks / os.sysconf("SC_CLK_TCK")), max(memory_mib, memory)


if __name__ == "__main__":
    main()
