"""Measures t2t on generated workspaces of many ops, whose actions are trivial, against ninja and make on the same graph in one run.

The binary is the one that ships. `--python` is an interpreter that speaks the worker's protocol and answers at once, so that probing, harness,
templates, records and logs cost what they cost. Each op has four kernel files of about 2 KB. Per size it prints, of t2t and its peers, the median of a
no-op build and of a build of one edited kernel, in turns, and the peak memory of either; of t2t also the time from an edit to the first action started,
and how long the interpreter takes to start and answer, and the time from a save to the last line of its round in `t2t watch`, beside its peers on the same edits. Figures of one run are
comparable with each other only.

    python benches/scale.py [--t2t PATH] [--before PATH] [--ops 10 1000 10000] [--runs N] [--keep FOLDER] [--out FILE]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAND_IN = ROOT / "tests/it/fake_python"
ANALYSIS = ROOT / "tests/it/samples/analysis.json"
INTERPRETER = """#!/bin/bash
echo "${{EPOCHREALTIME/[.,]/}}" > "${{0%/*}}/started"
exec {python} -IS "${{0%/*}}/answers.py" "$@"
"""
"""What t2t starts: it leaves the moment of its start, which is that of the first stale action, in microseconds of the clock."""
ANSWERS = """
import hashlib, json, sys
from pathlib import Path

STAND_IN = str(Path(__file__).with_name("python"))
sys.path.insert(0, "{stand_in}")
import stand_in as server

analysis = json.loads(Path("{analysis}").read_text())
server.ANSWERS["analyze:analyze"] = lambda call: server.passed({{"analysis": analysis}})
server.note = lambda line: None
server.Call.read_marks = lambda call, variant: {{}}
server.Call.code = lambda call: hashlib.sha256(call.text(call.variant).encode()).hexdigest()
make_archive, archive = server.make_archive, Path(__file__).with_name("archive")


def make_archive_once(path, stages, code):
    # What packs archives is not imported again for each edit: the peers' commands are as trivial.
    if not archive.exists():
        make_archive(archive, stages, code)
    path.write_bytes(archive.read_bytes())


server._thread.start_new_thread = lambda run, request: run(*request)
server.main()
"""
"""The tests' interpreter: with an analysis that the log template can show, no log of its own, no parsing of kernels and no threads."""
VARIANTS = ("v1_baseline", "v2_tiling", "v3_coalesced", "v4_optimized")
LINES = 30
"""Lines of a kernel file that make it about 2 KB."""


def main() -> None:
    """Generates each workspace, measures, and prints a line of figures a size."""
    arguments = parse()
    kept = arguments.keep
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(kept or temporary)
        rows: list[dict[str, object]] = [startup(arguments.t2t)]
        rows += [measure(arguments, base / str(count), count) for count in arguments.ops]
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(rows, indent=2) + "\n")
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--t2t", default=str(ROOT / ".venv/bin/t2t"), help="the release binary")
    parser.add_argument(
        "--before", help="another release binary, whose no-ops and edits are measured in turns with those of the first"
    )
    parser.add_argument("--ops", type=int, nargs="+", default=[10, 1000, 10000], help="how many ops each workspace has")
    parser.add_argument("--runs", type=int, default=21, help="runs of each no-op")
    parser.add_argument("--edits", type=int, default=9, help="edits of a kernel")
    parser.add_argument("--keep", help="a folder in which the workspaces are kept, and found again")
    parser.add_argument("--out", help="a JSON file for the figures")
    return parser.parse_args()


def measure(arguments: argparse.Namespace, folder: Path, count: int) -> dict[str, object]:
    """Returns the figures of one size, times in ms and memory in MB."""
    workspace, twin = folder / "t2t", folder / "peers"
    environment = environment_of(folder)
    row: dict[str, object] = {"ops": count}
    if not (workspace / "ops.yaml").exists():
        generate(workspace, folder / "environment", count)
        write_peers(twin, workspace, count)
    build = [arguments.t2t, "build", "-q"]
    started = time.perf_counter()
    subprocess.run(build, cwd=workspace, env=environment, check=True, stdout=subprocess.DEVNULL)
    row["t2t first (s)"] = round(time.perf_counter() - started, 2)
    commands = {"t2t": (build, workspace, environment)}
    workspaces = [workspace]
    if arguments.before:
        commands["before"] = another(arguments.before, folder / "before", count)
        workspaces.append(commands["before"][1])
    for name, options in (("ninja", ["--quiet"]), ("make", ["-s"])):
        if path := program(name):
            commands[name] = ([path, *options], twin, {"PATH": os.environ["PATH"]})
            silently(*commands[name])
    row |= no_ops(commands, arguments.runs)
    row["interpreter start (ms)"] = interpreter_start(Path(environment["T2T_PYTHON"]))
    row |= edits(commands, workspaces, Path(environment["T2T_PYTHON"]).with_name("started"), arguments.edits)
    del commands["t2t"]
    commands.pop("before", None)
    watch = [arguments.t2t, "watch", "-q"]
    return row | saves(watch, workspace, environment, commands, arguments.edits)


def environment_of(folder: Path) -> dict[str, str]:
    """Returns the variables for t2t in the workspace that was generated in `folder`."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "T2T_PYTHON": str(folder / "environment/bin/python"),
        "CUDA_VISIBLE_DEVICES": "",
    }


def another(t2t: str, folder: Path, count: int) -> tuple[list[str], Path, dict[str, str]]:
    """Returns the command of another binary, with its folder and its environment: a workspace of its own, which is built. Two binaries know nothing of each other's answers."""
    workspace = folder / "t2t"
    if not (workspace / "ops.yaml").exists():
        generate(workspace, folder / "environment", count)
    environment = environment_of(folder)
    build = [t2t, "build", "-q"]
    silently(build, workspace, environment)
    return build, workspace, environment


def program(name: str) -> str | None:
    """Returns the program itself, where the first of that name on the path is a script that starts it, as of pyenv or of an older wheel."""
    for folder in os.environ["PATH"].split(os.pathsep):
        found = shutil.which(name, path=folder)
        if found and Path(found).read_bytes()[:4] == b"\x7fELF":
            return found
    wheel = importlib.util.find_spec(name)
    if wheel is None or wheel.origin is None:
        return None
    return shutil.which(name, path=str(Path(wheel.origin).parent / "data/bin"))


def interpreter_start(python: Path, runs: int = 11) -> float:
    """Returns the median time, in ms, from the start of the interpreter to its hello: what no build that runs anything in it can do without."""
    asks = {"kind": "interpreter", "harness": None, "preload": ["torch"], "later": [], "asked": [], "fork_after": None}
    hello = {"hello": asks}
    body, times = json.dumps(hello).encode(), []
    for _ in range(runs):
        ours, theirs = socket.socketpair()
        begun = time.perf_counter()
        with ours, subprocess.Popen([str(python), "-c", ""], stdin=theirs.fileno()) as process:
            theirs.close()
            ours.sendall(struct.pack(">I", len(body)) + body)
            if not ours.recv(1):
                raise RuntimeError(f"{python} does not answer")
            times.append((time.perf_counter() - begun) * 1000)
            process.kill()
    return round(statistics.median(times), 2)


def generate(workspace: Path, environment: Path, count: int) -> None:
    """Writes a workspace of `count` ops and the environment of the interpreter that answers for it."""
    chance = random.Random(7)
    workspace.mkdir(parents=True)
    lines = ["version: 1", "defaults:", f"  variants: [{', '.join(VARIANTS)}]", "  dtypes: [float32]", "ops:"]
    for number in range(count):
        name = f"op{number:05d}"
        lines += [f"  {name}:", "    torch: softmax", "    inputs: {input: [M, N]}", "    kwargs: {dim: -1}"]
        (workspace / "kernels" / name).mkdir(parents=True)
        for variant in VARIANTS:
            (workspace / "kernels" / name / f"{variant}.py").write_text(kernel(name, variant, chance))
    (workspace / "ops.yaml").write_text("\n".join(lines) + "\n")
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python").write_text(INTERPRETER.format(python=Path(sys.executable).resolve()))
    (environment / "bin/answers.py").write_text(ANSWERS.format(stand_in=STAND_IN, analysis=ANALYSIS))
    (environment / "bin/python").chmod(0o755)
    (environment / "site-packages").mkdir()
    (environment / "site-packages/versions.json").write_text(json.dumps({"torch": "2.11.0", "triton": "3.6.0"}))


def kernel(name: str, variant: str, chance: random.Random) -> str:
    """Returns a kernel file of about 2 KB."""
    body = [f"    x{line} = tl.load(x + {chance.randrange(1 << 30)}, mask=i < n)" for line in range(LINES)]
    return "\n".join(
        [f'"""{name}, {variant}."""', "import triton", "import triton.language as tl", "", "", "@triton.jit",
         "def kernel(x, i, n):", *body, "", "", f"def triton_{name}(input):", "    return input", ""]
    )  # fmt: skip


def write_peers(twin: Path, workspace: Path, count: int) -> None:
    """Writes the same graph for ninja and make: 15 actions an op and a summary, each making a file that says nothing."""
    twin.mkdir(parents=True)
    edges: list[tuple[str, list[str]]] = []
    for number in range(count):
        name = f"op{number:05d}"
        edges += edges_of(name, str(workspace / "kernels" / name))
    edges.append(("out/summary", [f"out/op{number:05d}.log" for number in range(count)]))
    ninja = ["rule touch", "  command = : > $out"]
    ninja += [f"build {out}: touch {' '.join(needs)}" for out, needs in edges]
    (twin / "build.ninja").write_text("\n".join(ninja) + "\n")
    make = ["MAKEFLAGS += -rR", ".SUFFIXES:", "all: out/summary"]
    make += [f"{out}: {' '.join(needs)}\n\t: > $@" for out, needs in edges]
    (twin / "Makefile").write_text("\n".join(make) + "\n")
    (twin / "out").mkdir()


def edges_of(name: str, kernels: str) -> list[tuple[str, list[str]]]:
    """Returns the 15 actions of an op: what each makes and what it needs."""
    out = f"out/{name}"
    edges = [(f"{out}.analyze", [str(ROOT / "Cargo.toml")])]
    for variant in VARIANTS:
        edges.append((f"{out}.{variant}.compile", [f"{kernels}/{variant}.py", f"{out}.analyze"]))
        edges.append((f"{out}.{variant}.check", [f"{out}.{variant}.compile"]))
        edges.append((f"{out}.{variant}.bench", [f"{out}.{variant}.check"]))
    edges.append((f"{out}.select", [f"{out}.{variant}.bench" for variant in VARIANTS]))
    edges.append((f"{out}.log", [f"{out}.select"]))
    return edges


def no_ops(commands: Mapping[str, tuple[list[str], Path, dict[str, str]]], runs: int) -> dict[str, object]:
    """Returns the median time and the peak memory of each command, run in turns."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    memory: dict[str, float] = {}
    for _ in range(runs):
        for name, (command, folder, environment) in commands.items():
            begun = time.perf_counter()
            subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
            times[name].append((time.perf_counter() - begun) * 1000)
    if timer := shutil.which("time"):
        memory = {name: peak(timer, *command) for name, command in commands.items()}
    row: dict[str, object] = {f"{name} no-op (ms)": round(statistics.median(of), 2) for name, of in times.items()}
    return row | {f"{name} (MB)": round(of, 1) for name, of in memory.items()}


def peak(timer: str, command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Returns the peak memory of one run in MB. GNU time starts it: a process counts what the one that started it held."""
    told = subprocess.run(
        [timer, "-f", "%M", *command], cwd=folder, env=environment, check=True, text=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    return int(told.stderr.split()[-1]) / 1024


def edits(
    commands: Mapping[str, tuple[list[str], Path, dict[str, str]]], workspaces: list[Path], mark: Path, runs: int
) -> dict[str, object]:
    """Returns, of each command, the median time in ms from its start after one kernel was edited to its end, and the peak memory of one such run; of t2t also the
    time to the moment when the interpreter is started for the first stale action. All get the same edits, in turns."""
    files = [edited(workspace) for workspace in workspaces]
    texts = [file.read_text() for file in files]
    started: list[float] = []
    ended: dict[str, list[float]] = {command: [] for command in commands}
    peaks: dict[str, float] = {}
    for number in range(runs + 1):
        for file, text in zip(files, texts, strict=True):
            file.write_text(f"{text}\nEDIT = {time.time_ns()}{number}\n")
        for command, (words, folder, environment) in commands.items():
            if number == runs:
                if timer := shutil.which("time"):
                    peaks[command] = peak(timer, words, folder, environment)
                continue
            begun = time.time_ns()
            silently(words, folder, environment)
            ended[command].append((time.time_ns() - begun) / 1e6)
            if command == "t2t":
                started.append(int(mark.read_text()) / 1e3 - begun / 1e6)
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    for words, folder, environment in commands.values():
        silently(words, folder, environment)
    row: dict[str, object] = {"t2t edit, first action (ms)": round(statistics.median(started), 2)}
    row |= {f"{command} edit (ms)": round(statistics.median(of), 2) for command, of in ended.items()}
    return row | {f"{command} edit (MB)": round(of, 1) for command, of in peaks.items()}


def saves(
    watch: list[str],
    workspace: Path,
    environment: dict[str, str],
    peers: Mapping[str, tuple[list[str], Path, dict[str, str]]],
    runs: int,
) -> dict[str, object]:
    """Returns the median time in ms from a save of one kernel to the line with which the watch says that all is built, and that of each peer from its start after the same
    edit to its end. The first save is left out: it warms the servers."""
    file = edited(workspace)
    text = file.read_text()
    taken: dict[str, list[float]] = {"t2t watch": [], **{peer: [] for peer in peers}}
    with subprocess.Popen(watch, cwd=workspace, env=environment, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout
        until_built(watching.stdout)
        for number in range(runs + 1):
            # Servers and editors rest between saves.
            time.sleep(0.5)
            begun = time.time_ns()
            file.write_text(f"{text}\nSAVE = {begun}{number}\n")
            until_built(watching.stdout)
            taken["t2t watch"].append((time.time_ns() - begun) / 1e6)
            for peer, (words, folder, of_peer) in peers.items():
                begun = time.time_ns()
                silently(words, folder, of_peer)
                taken[peer].append((time.time_ns() - begun) / 1e6)
        watching.send_signal(signal.SIGINT)
    file.write_text(text)
    figures = {name: round(statistics.median(of[1:]), 2) for name, of in taken.items()}
    return {f"{name} save (ms)": of for name, of in figures.items()}


def until_built(lines: Iterable[str]) -> None:
    """Reads up to the line that ends a round."""
    if not any(line.startswith("fresh ") for line in lines):
        raise RuntimeError("t2t watch has ended")


def edited(workspace: Path) -> Path:
    """Returns the kernel that is edited."""
    name = sorted(path.name for path in (workspace / "kernels").iterdir())[-1]
    return workspace / "kernels" / name / "v2_tiling.py"


def silently(command: list[str], folder: Path | None = None, environment: dict[str, str] | None = None) -> None:
    """Runs a command, which must succeed, and throws away what it prints."""
    subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def startup(t2t: str, runs: int = 101) -> dict[str, object]:
    """Returns the median times, in ms, of `t2t --version` and of `true`, run in turns."""
    times: dict[str, list[float]] = {"t2t --version": [], "true": []}
    for _ in range(runs):
        for name, command in (("t2t --version", [t2t, "--version"]), ("true", [shutil.which("true") or "true"])):
            begun = time.perf_counter()
            silently(command)
            times[name].append((time.perf_counter() - begun) * 1000)
    return {f"{name} (ms)": round(statistics.median(of), 2) for name, of in times.items()}


if __name__ == "__main__":
    main()
