"""Measures how long it takes to get back what was built before: records and logs of t2t, and of DVC and Turborepo as many outputs on the same graph.

Two revisions of a workspace are built: between them every kernel and every declaration differs, so that no action of one stands in the other. Then,
tool by tool:

- back: the sources of the other revision are put back, as a checkout does, and all outputs are removed; the tool brings everything back;
- again: the outputs alone are removed.

Nothing may run in either, which is counted: t2t by its events, the peers by lines that their actions write. t2t answers with the tests' interpreter, as in
`scale.py`; the peers' actions write a few bytes. DVC has a `dvc.yaml` an op, which is much faster for it than one for all; `dvc checkout` is timed beside
`dvc repro`, though it checks no sources: its lock files are put back with the sources. Turborepo runs without its daemon and with as many tasks at once as
there are cores; its first builds, which are not measured, start a script where npm would be, which runs the same commands without starting Node 15 times an op.
The tools take turns, so that a machine that others use is as busy for each. With `--returns` t2t then goes back and forth that often, and is measured again. Export and import of t2t's results are timed at the end. Figures of one run are
comparable with each other only.

    python benches/restore.py [--t2t PATH] [--ops 63] [--runs N] [--peers dvc turbo] [--returns N] [--tools FOLDER] [--keep FOLDER] [--out FILE]

DVC is installed from PyPI into `--tools`, Turborepo from npm, where they are not there yet. A tool that cannot be had is left out, and the reason said.
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scale import ROOT, VARIANTS, generate, peak

DVC, TURBO = "dvc==3.67.1", "turbo@2.11.11"
REVISIONS = ("one", "two")
ACTION = """#!/bin/sh
# OUT IN...: writes what its inputs come to, and says that it ran.
out=$1; shift
mkdir -p "$(dirname "$out")"
cat "$@" | cksum > "$out"
echo "$out" >> "{log}"
"""


NPM = """#!/bin/sh
# run TASK: what `npm run` does of a package's script, without starting Node. It prints the two lines that npm does.
task="{tasks}/$(basename "$PWD")/$2"
printf '\\n> %s@0.0.0 %s\\n> %s\\n\\n' "$(basename "$PWD")" "$2" "$(cat "$task")"
exec sh "$task"
"""


class Missing(Exception):
    """A tool that cannot be had, and why."""


class Subject:
    """A tool and its workspace."""

    name: str
    folder: Path

    def command(self) -> list[str]:
        """Returns the command that brings everything up to date."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Returns the environment of the command."""
        return {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}

    def put(self, revision: str) -> None:
        """Puts the sources of a revision in their places."""
        raise NotImplementedError

    def remove_outputs(self) -> None:
        """Removes what was made outside the tool's cache."""
        raise NotImplementedError

    def ran(self, act: Callable[[], None]) -> int:
        """Returns how many actions ran while `act` did."""
        raise NotImplementedError

    def made(self) -> int:
        """Returns how many outputs there are."""
        raise NotImplementedError

    def building(self) -> dict[str, str]:
        """Returns the environment of the first builds."""
        return self.environment()

    def run(self, environment: Mapping[str, str] | None = None) -> None:
        """Runs the command."""
        told = subprocess.run(
            self.command(), cwd=self.folder, env=environment or self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )  # fmt: skip
        if told.returncode:
            sys.exit(f"error: {self.name} ended with {told.returncode}:\n{told.stdout[-2000:]}")


class T2t(Subject):
    """t2t, whose outputs are logs."""

    name = "t2t"

    def __init__(self, folder: Path, count: int, t2t: str) -> None:
        self.folder, self.base, self.t2t, self.count = folder / "workspace", folder, t2t, count
        if not (self.folder / "ops.yaml").exists():
            generate(self.folder, folder / "environment", count)
            self.kernels = {path: path.read_text() for path in self.folder.glob("kernels/*/*.py")}
            (folder / "sources.json").write_text(json.dumps({str(path): text for path, text in self.kernels.items()}))
        stored: dict[str, str] = json.loads((folder / "sources.json").read_text())
        self.kernels = {Path(path): text for path, text in stored.items()}
        self.ops = (self.folder / "ops.yaml").read_text().replace("dim: 0", "dim: -1")

    def command(self) -> list[str]:
        return [self.t2t, "build", "-q", "--device", "cpu", "--events", str(self.base / "events.jsonl")]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "T2T_PYTHON": str(self.base / "environment/bin/python")}

    def put(self, revision: str) -> None:
        for path, text in self.kernels.items():
            path.write_text(f"{text}\nREVISION = '{revision}'\n")
        dim = "-1" if revision == REVISIONS[0] else "0"
        (self.folder / "ops.yaml").write_text(self.ops.replace("dim: -1", f"dim: {dim}"))

    def remove_outputs(self) -> None:
        shutil.rmtree(self.folder / "logs", ignore_errors=True)

    def ran(self, act: Callable[[], None]) -> int:
        act()
        lines = (self.base / "events.jsonl").read_text().splitlines()
        tally: dict[str, int] = json.loads(lines[-1])["tally"]
        return tally["ran"]

    def made(self) -> int:
        return sum(1 for _ in (self.folder / "logs").iterdir())


class Peer(Subject):
    """What the peers have in common: sources and actions. Each op has a folder."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count, self.log = folder / "workspace", count, folder / "ran.log"
        self.is_new = not self.folder.exists()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.action = folder / "action"
        self.action.write_text(ACTION.format(log=self.log))
        self.action.chmod(0o755)

    def op_folders(self) -> list[Path]:
        """Returns the folders of the ops."""
        return [self.folder / f"kernels/op{number:05d}" for number in range(self.count)]

    def put(self, revision: str) -> None:
        for folder in self.op_folders():
            folder.mkdir(parents=True, exist_ok=True)
            body = "".join(f"    x{line} = tl.load(x + {line})\n" for line in range(60))
            for variant in VARIANTS:
                (folder / f"{variant}.py").write_text(f"# {folder.name} {variant} {revision}\n{body}")
            (folder / "spec.yaml").write_text(f"{folder.name} {revision}\n")

    def edges(self) -> list[tuple[str, str, list[str]]]:
        """Returns the 15 actions of an op: name, output, inputs."""
        edges = [("analyze", "out/analyze", ["spec.yaml"])]
        for variant in VARIANTS:
            short = variant[:2]
            edges.append((f"compile-{short}", f"out/compile-{short}", [f"{variant}.py", "out/analyze"]))
            edges.append((f"check-{short}", f"out/check-{short}", [f"out/compile-{short}"]))
            edges.append((f"bench-{short}", f"out/bench-{short}", [f"out/check-{short}"]))
        benches = [f"out/bench-{variant[:2]}" for variant in VARIANTS]
        edges.append(("select", "out/select", benches))
        edges.append(("log", "out/log", ["out/select", "out/analyze"]))
        return edges

    def remove_outputs(self) -> None:
        for folder in [*self.op_folders(), self.folder / "summary"]:
            shutil.rmtree(folder / "out", ignore_errors=True)

    def ran(self, act: Callable[[], None]) -> int:
        self.log.write_text("")
        act()
        return len(self.log.read_text().splitlines())

    def made(self) -> int:
        return sum(1 for folder in self.op_folders() for _ in (folder / "out").glob("[!.]*"))

    def commit(self) -> None:
        """Makes a repository of the workspace, as both peers want."""
        for command in (
            ["git", "init", "-q", "-b", "main", "."],
            ["git", "add", "-A"],
            ["git", "-c", "user.email=a@b", "-c", "user.name=x", "commit", "-qm", "one"],
        ):
            subprocess.run(command, cwd=self.folder, check=True)


class Dvc(Peer):
    """DVC, which looks at everything and takes outputs from its run cache."""

    name = "DVC, dvc repro"

    def __init__(self, folder: Path, count: int, dvc: str) -> None:
        super().__init__(folder, count)
        self.dvc = dvc
        if self.is_new:
            self.put(REVISIONS[0])
            self.declare()
            subprocess.run(["git", "init", "-q", "-b", "main", "."], cwd=self.folder, check=True)
            for command in (["init", "-q"], ["config", "core.analytics", "false"]):
                subprocess.run([dvc, *command], cwd=self.folder, env=self.environment(), check=True)

    def declare(self) -> None:
        """Writes the stages of each op, and the summary's."""
        for folder in self.op_folders():
            lines = ["stages:"]
            for name, out, needs in self.edges():
                lines += [f"  {name}:", f"    cmd: {self.action} {out} {' '.join(needs)}"]
                lines += [f"    deps: [{', '.join(needs)}]", f"    outs: [{out}]"]
            (folder / "dvc.yaml").write_text("\n".join(lines) + "\n")
        (self.folder / "summary").mkdir()
        logs = [f"../kernels/{folder.name}/out/log" for folder in self.op_folders()]
        stage = ["stages:", "  summary:", f"    cmd: {self.action} out/summary {' '.join(logs)}"]
        stage += [f"    deps: [{', '.join(logs)}]", "    outs: [out/summary]"]
        (self.folder / "summary/dvc.yaml").write_text("\n".join(stage) + "\n")

    def command(self) -> list[str]:
        return [self.dvc, "repro", "-q", "--all-pipelines"]

    def kept(self, revision: str) -> Path:
        """Returns the file that keeps the lock files of a revision."""
        return self.log.parent / f"locks-{revision}.json"

    def keep_locks(self, revision: str) -> None:
        """Keeps the lock files of a revision, which has just been built."""
        locks = [folder / "dvc.lock" for folder in [*self.op_folders(), self.folder / "summary"]]
        self.kept(revision).write_text(json.dumps({str(path): path.read_text() for path in locks}))

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "DVC_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1"}


class DvcCheckout(Dvc):
    """DVC, told that the lock files are right: it only puts outputs back. It works in the workspace of `Dvc`."""

    name = "DVC, dvc checkout"

    def command(self) -> list[str]:
        return [self.dvc, "checkout", "-q"]

    def put(self, revision: str) -> None:
        super().put(revision)
        for path, text in json.loads(self.kept(revision).read_text()).items():
            Path(path).write_text(text)


class Turbo(Peer):
    """Turborepo, a package an op."""

    name = "Turborepo"

    def __init__(self, folder: Path, count: int, turbo: str) -> None:
        super().__init__(folder, count)
        self.turbo, self.beside = turbo, folder
        if self.is_new:
            self.put(REVISIONS[0])
            self.declare()
            self.commit()

    def declare(self) -> None:
        """Writes the packages, their lock file and the tasks."""
        of = {out: name for name, out, _ in self.edges()}
        scripts = {name: f"{self.action} {out} {' '.join(needs)}" for name, out, needs in self.edges()}
        tasks: dict[str, Mapping[str, Sequence[str]]] = {}
        for name, out, needs in self.edges():
            inputs = [need for need in needs if need not in of] or ["package.json"]
            tasks[name] = {"dependsOn": [of[need] for need in needs if need in of], "inputs": inputs, "outputs": [out]}
        tasks["summary"] = {"dependsOn": ["^log"], "inputs": ["package.json"], "outputs": ["out/summary"]}
        names = [folder.name for folder in self.op_folders()]
        packages: dict[str, object] = {"": {"name": "root", "workspaces": ["kernels/*", "summary"]}}
        plain = {"version": "0.0.0", "private": True}
        for name in names:
            (self.folder / "kernels" / name / "package.json").write_text(
                json.dumps({"name": name, **plain, "scripts": scripts})
            )
            packages[f"kernels/{name}"] = {"name": name, "version": "0.0.0"}
            packages[f"node_modules/{name}"] = {"resolved": f"kernels/{name}", "link": True}
        logs = " ".join(f"../kernels/{name}/out/log" for name in names)
        summary = {"scripts": {"summary": f"{self.action} out/summary {logs}"}}
        needs_all = {"dependencies": dict.fromkeys(names, "*")}
        (self.folder / "summary").mkdir()
        (self.folder / "summary/package.json").write_text(
            json.dumps({"name": "summary", **plain, **summary, **needs_all})
        )
        packages["summary"] = {"version": "0.0.0", **needs_all}
        packages["node_modules/summary"] = {"resolved": "summary", "link": True}
        root = {"name": "root", "private": True, "packageManager": "npm@10.8.2", "workspaces": ["kernels/*", "summary"]}
        lock = {"name": "root", "lockfileVersion": 3, "requires": True, "packages": packages}
        for name, value in (("package.json", root), ("package-lock.json", lock), ("turbo.json", {"tasks": tasks})):
            (self.folder / name).write_text(json.dumps(value, indent=1))
        (self.folder / ".gitignore").write_text("out/\n.turbo/\nnode_modules/\n")
        self.stand_in({**dict.fromkeys(names, scripts), "summary": summary["scripts"]})

    def stand_in(self, scripts: Mapping[str, Mapping[str, str]]) -> None:
        """Writes what stands in for npm while the first builds run, with the scripts of each package."""
        for name, tasks in scripts.items():
            (self.beside / "tasks" / name).mkdir(parents=True)
            for task, command in tasks.items():
                (self.beside / "tasks" / name / task).write_text(command + "\n")
        (self.beside / "bin").mkdir()
        (self.beside / "bin/npm").write_text(NPM.format(tasks=self.beside / "tasks"))
        (self.beside / "bin/npm").chmod(0o755)

    def building(self) -> dict[str, str]:
        environment = self.environment()
        return {**environment, "PATH": f"{self.beside / 'bin'}:{environment['PATH']}"}

    def command(self) -> list[str]:
        tasks = ["run", "summary", f"--concurrency={os.cpu_count() or 2}", "--no-daemon", "--output-logs=errors-only"]
        return [self.turbo, *tasks]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "TURBO_TELEMETRY_DISABLED": "1", "DO_NOT_TRACK": "1", "NO_COLOR": "1"}


def main() -> None:
    """Builds both revisions with each tool, measures, and prints a table."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(arguments.keep or temporary).absolute()
        subjects = [*peers(arguments, base), T2t(base / "t2t", arguments.ops, arguments.t2t)]
        for subject in subjects:
            build_both(subject, base)
        rows = measure(subjects, arguments.runs)
        rows["t2t"] |= returned(subjects[-1], arguments.returns, arguments.runs)
        rows["t2t"] |= carried(arguments.t2t, subjects[-1], base)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(rows, indent=2) + "\n")
    for name, row in rows.items():
        print(f"{name:20} " + "  ".join(f"{what} {value}" for what, value in row.items()))


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--t2t", default=str(ROOT / ".venv/bin/t2t"), help="the release binary")
    parser.add_argument("--ops", type=int, default=63, help="how many ops; each has 15 actions")
    parser.add_argument("--runs", type=int, default=3, help="runs of each figure")
    parser.add_argument("--peers", nargs="*", default=["dvc", "turbo"], choices=["dvc", "turbo"])
    parser.add_argument(
        "--returns", type=int, default=0, help="how often t2t goes back and forth before it is measured again"
    )
    parser.add_argument("--tools", help="a folder in which the peers are installed, and found again")
    parser.add_argument("--keep", help="a folder in which the workspaces are kept, and found again")
    parser.add_argument("--out", help="a JSON file for the figures")
    return parser.parse_args()


def peers(arguments: argparse.Namespace, base: Path) -> list[Subject]:
    """Returns the peers that can be had."""
    tools, found = Path(arguments.tools or base / "tools").absolute(), list[Subject]()
    for peer in arguments.peers:
        try:
            if peer == "dvc":
                program = dvc(tools)
                found.append(Dvc(base / "dvc", arguments.ops, program))
                found.append(DvcCheckout(base / "dvc", arguments.ops, program))
            else:
                found.append(Turbo(base / "turbo", arguments.ops, turbo(tools)))
        except Missing as missing:
            print(f"{peer} is left out: {missing}", file=sys.stderr)
    return found


def dvc(tools: Path) -> str:
    """Returns the program, installed if need be."""
    folder = tools / "dvc"
    if not (folder / "bin/dvc").exists():
        install([sys.executable, "-m", "venv", str(folder)])
        install([str(folder / "bin/python"), "-m", "pip", "install", "-q", DVC])
    return str(folder / "bin/dvc")


def turbo(tools: Path) -> str:
    """Returns the program, installed if need be."""
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("there is no npm")
    folder = tools / "turbo"
    program = folder / "node_modules/@turbo/linux-64/bin/turbo"
    if not program.exists():
        program = folder / "node_modules/.bin/turbo"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        install([npm, "install", "--silent", "--prefix", str(folder), TURBO])
    return str(program)


def install(command: list[str]) -> None:
    """Runs a command of an installation."""
    told = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if told.returncode:
        raise Missing(f"`{' '.join(command)}`: {told.stdout.strip()[-300:]}")


def build_both(subject: Subject, base: Path) -> None:
    """Builds the two revisions."""
    marker = base / f"{subject.name}.built"
    if marker.exists() or isinstance(subject, DvcCheckout):
        return
    for revision in REVISIONS:
        begun = time.perf_counter()
        subject.put(revision)
        subject.run(subject.building())
        if isinstance(subject, Dvc):
            subject.keep_locks(revision)
        print(f"{subject.name}: revision {revision} built in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    marker.write_text("")


def measure(subjects: Sequence[Subject], runs: int) -> dict[str, dict[str, object]]:
    """Returns by tool the median times in seconds, the peak memory in MB, and how many outputs came back. The tools take turns."""
    back: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    again: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    for number in range(runs + 1):
        for subject in subjects:
            subject.put(REVISIONS[number % 2])
            subject.remove_outputs()
            taken = timed(subject)
            subject.remove_outputs()
            taken_again = timed(subject)
            # The first only brings the tool to a known state.
            if number:
                back[subject.name].append(taken)
                again[subject.name].append(taken_again)
            print(f"{subject.name}: {taken:.3f} {taken_again:.3f}, load {os.getloadavg()[0]:.0f}", file=sys.stderr)
    rows: dict[str, dict[str, object]] = {}
    timer = shutil.which("time")
    for subject in subjects:
        name = subject.name
        rows[name] = {
            "back (s)": round(statistics.median(back[name]), 3),
            "again (s)": round(statistics.median(again[name]), 3),
            "back, t2t's share": f"1/{statistics.median(back[name]) / statistics.median(back['t2t']):.1f}",
            "outputs": expected_outputs(subject),
        }
        if timer:
            subject.put(REVISIONS[runs % 2 ^ 1])
            subject.remove_outputs()
            rows[name]["MB"] = round(peak(timer, subject.command(), subject.folder, subject.environment()))
    return rows


def returned(subject: Subject, returns: int, runs: int) -> dict[str, object]:
    """Returns the median time of the last `runs` of so many returns, in seconds, and of the first as many."""
    taken = list[float]()
    for number in range(returns):
        subject.put(REVISIONS[number % 2])
        subject.remove_outputs()
        taken.append(timed(subject))
    if not taken:
        return {}
    return {
        f"{returns} returns (s)": f"{statistics.median(taken[:runs]):.3f} to {statistics.median(taken[-runs:]):.3f}"
    }


def expected_outputs(subject: Subject) -> int:
    """Returns how many outputs a whole build has: 15 an op, or a log an op and the summary's."""
    if isinstance(subject, T2t):
        return subject.count + 1
    return 15 * len(subject.op_folders()) if isinstance(subject, Peer) else 0


def timed(subject: Subject) -> float:
    """Returns how long the command takes. It may run nothing, and brings all outputs back."""
    taken, outputs = 0.0, expected_outputs(subject)

    def act() -> None:
        nonlocal taken
        begun = time.perf_counter()
        subject.run()
        taken = time.perf_counter() - begun

    if ran := subject.ran(act):
        sys.exit(f"error: {subject.name} ran {ran} actions, and was to run none")
    if (made := subject.made()) != outputs:
        sys.exit(f"error: {subject.name} brought {made} outputs back, of {outputs}")
    return taken


def carried(t2t: str, subject: Subject, base: Path) -> dict[str, object]:
    """Returns how long export and import of all results take, in seconds, with their peak memory in MB."""
    archive, timer = base / "results.t2t", shutil.which("time")
    clone = base / "clone"
    shutil.rmtree(clone, ignore_errors=True)
    shutil.copytree(subject.folder, clone, ignore=shutil.ignore_patterns("cache", "logs"))
    row: dict[str, object] = {}
    for name, folder in (("export", subject.folder), ("import", clone)):
        command = [t2t, "cache", name, str(archive)]
        begun = time.perf_counter()
        subprocess.run(command, cwd=folder, env=subject.environment(), check=True, stdout=subprocess.DEVNULL)
        row[f"{name} (s)"] = round(time.perf_counter() - begun, 2)
        if timer:
            row[f"{name} (MB)"] = round(peak(timer, command, folder, subject.environment()))
    row["archive (MB)"] = round(archive.stat().st_size / 1e6, 1)
    return row


if __name__ == "__main__":
    main()
