"""Measures t2t on this repository: the no-op build against ninja's, one edit to its verdict, and everything cold.

Needs `ninja` and `hyperfine` on the path, and an environment that `uv run t2t build` has made. Works on a copy of the workspace in
a temporary folder. Prints a table; figures of one run are comparable with each other only.

    python benches/workspace.py [--t2t PATH] [--runs N] [--cold]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORKSPACE = ("ops.yaml", "kernels", "assets")


def main() -> None:
    """Runs the measurements and prints them."""
    arguments = parse()
    for tool in ("ninja", "hyperfine"):
        if shutil.which(tool) is None:
            sys.exit(f"error: `{tool}` is not on the path\nhint: `apt-get install ninja-build hyperfine`")
    environment = {**os.environ, "T2T_PYTHON": str(ROOT / ".venv/bin/python")}
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        copy_workspace(workspace, with_results=not arguments.cold)
        rows = []
        if arguments.cold:
            rows.append(("all ops, cold, interpreter", timed([arguments.t2t, "build", "-q"], workspace, environment)))
        build(arguments.t2t, workspace, environment)
        rows += no_op(arguments, workspace, Path(folder) / "ninja", environment)
        rows.append(edit(arguments, workspace, environment))
    for name, text in rows:
        print(f"{name:48} {text}")


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--t2t", default=str(ROOT / ".venv/bin/t2t"), help="the release binary")
    parser.add_argument("--runs", type=int, default=50, help="runs of each command")
    parser.add_argument("--cold", action="store_true", help="build everything from nothing first, and time it")
    return parser.parse_args()


def copy_workspace(to: Path, *, with_results: bool) -> None:
    """Copies what a build reads, and the store unless everything is to be cold."""
    to.mkdir(parents=True)
    for name in WORKSPACE:
        source = ROOT / name
        shutil.copytree(source, to / name) if source.is_dir() else shutil.copy2(source, to / name)
    if with_results and (ROOT / "cache/journal").exists():
        shutil.copytree(ROOT / "cache", to / "cache", ignore=shutil.ignore_patterns("lock", "scratch"))


def build(t2t: str, workspace: Path, environment: dict[str, str]) -> None:
    """Brings the workspace up to date."""
    subprocess.run([t2t, "build", "-q"], cwd=workspace, env=environment, check=True, stdout=subprocess.DEVNULL)


def timed(command: list[str], workspace: Path, environment: dict[str, str]) -> str:
    """Returns how long one run of a command takes, in words."""
    start = time.perf_counter()
    subprocess.run(command, cwd=workspace, env=environment, check=True, stdout=subprocess.DEVNULL)
    return f"{time.perf_counter() - start:.1f} s"


def no_op(
    arguments: argparse.Namespace, workspace: Path, twin: Path, environment: dict[str, str]
) -> list[tuple[str, str]]:
    """Returns the rows of the no-op: t2t's, and ninja's on a graph with as many actions and sources, both in one run of hyperfine."""
    graph = json.loads(
        subprocess.check_output([arguments.t2t, "graph", "--format", "json"], cwd=workspace, env=environment)
    )
    write_ninja(graph, twin, workspace)
    subprocess.run(["ninja", "-C", str(twin)], check=True, stdout=subprocess.DEVNULL)
    report = twin / "report.json"
    commands = [f"{arguments.t2t} build -q", f"ninja -C {twin} --quiet"]
    subprocess.run(
        ["hyperfine", "-N", "--warmup", "5", "--runs", str(arguments.runs), "--export-json", str(report), *commands],
        cwd=workspace, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    ours, theirs = (result["median"] * 1000 for result in json.loads(report.read_text())["results"])
    count = len(graph["actions"])
    return [
        (f"no-op, {count} actions: t2t, median of {arguments.runs}", f"{ours:.2f} ms"),
        (f"no-op, {count} actions: ninja", f"{theirs:.2f} ms"),
        ("no-op: t2t / ninja", f"{ours / theirs:.2f}"),
    ]


def write_ninja(graph: dict[str, list[dict[str, str]]], folder: Path, workspace: Path) -> None:
    """Writes a ninja graph with the same actions and edges, whose first actions read the workspace's sources."""
    folder.mkdir()
    sources = sorted(str(path) for path in (workspace / "kernels").rglob("*.py"))
    needs: dict[str, list[str]] = {action["target"]: [] for action in graph["actions"]}
    for edge in graph["edges"]:
        needs[edge["to"]].append(edge["from"])
    lines = ["rule touch", "  command = touch $out"]
    for target, sources_of in needs.items():
        inputs = [plain(name) for name in sources_of] or sources
        lines.append(f"build {plain(target)}: touch {' '.join(inputs)}")
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")


def plain(target: str) -> str:
    """Returns a target as a file name that ninja needs not escape."""
    return target.replace("/", ".").replace(":", ".")


def edit(arguments: argparse.Namespace, workspace: Path, environment: dict[str, str]) -> tuple[str, str]:
    """Returns the row of one edit of a kernel to the verdict of its check; the interpreter starts anew for each."""
    kernel = workspace / "kernels/softmax/v2_tiling.py"
    text = kernel.read_text()
    taken = []
    for number in range(5):
        kernel.write_text(f"{text}\nEDIT = {number}\n")
        start = time.perf_counter()
        subprocess.run(
            [arguments.t2t, "build", "-q", "softmax/v2_tiling:check"], cwd=workspace, env=environment, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        taken.append(time.perf_counter() - start)
    kernel.write_text(text)
    return (
        "one-line edit of softmax/v2_tiling to its verdict",
        f"{statistics.median(taken):.2f} s, median of {len(taken)}",
    )


if __name__ == "__main__":
    main()
