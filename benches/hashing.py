"""Measures how fast t2t hashes what lies in a store, by `t2t cache verify`, against b3sum, sha256sum and `cat` on the same files in the same run.

Three stores are made, each of artifacts that no record names, which `verify` reads and hashes all the same: one long file, a few long ones, and many
of the length that artifacts have most often. All of it lies in memory (it has just been written and is read once before), so that the figure is the
hashing's and not the disk's; `cat` into /dev/null says how fast the bytes can be had at all. The subjects take turns. Beside the time that passed stands
the time of all cores, which a machine that others use leaves as it is. b3sum is BLAKE3's own program: it maps files into memory and uses all cores, as
`t2t` does but for the mapping. It names the blobs, too, so it must be had: `cargo install b3sum`. Figures of one run are comparable with each other only.

    python benches/hashing.py [--t2t PATH] [--b3sum PATH] [--mib 1024] [--runs N] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL = 8 << 10
"""Bytes of each of the many."""


def main() -> None:
    """Makes the stores, measures, and prints a line for each store and subject."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--t2t", default=str(ROOT / ".venv/bin/t2t"), help="the release binary")
    parser.add_argument("--b3sum", default=shutil.which("b3sum"), help="BLAKE3's own program")
    parser.add_argument("--mib", type=int, default=1024, help="how much each store holds")
    parser.add_argument("--runs", type=int, default=7, help="runs of each figure")
    parser.add_argument("--out", help="a JSON file for the figures")
    arguments = parser.parse_args()
    if not arguments.b3sum:
        sys.exit("error: there is no b3sum; `cargo install b3sum` makes one")
    length = arguments.mib << 20
    rows: list[dict[str, object]] = []
    for name, sizes in (
        ("1 file", [length]),
        ("8 files", [length // 8] * 8),
        (f"files of {SMALL >> 10} KiB", [SMALL] * (length // 8 // SMALL)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            files = store(Path(folder), sizes, arguments.b3sum)
            rows += measure(name, Path(folder), files, arguments)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(rows, indent=2) + "\n")
    for row in rows:
        print("  ".join(f"{value}" if key in ("store", "subject") else f"{key} {value}" for key, value in row.items()))


def store(folder: Path, sizes: list[int], b3sum: str) -> list[str]:
    """Makes a workspace with a store of files of these sizes, and returns the files."""
    (folder / "ops.yaml").write_text("version: 1\nops: {}\n")
    unnamed = folder / "unnamed"
    unnamed.mkdir()
    source = random.Random(0)
    for number, size in enumerate(sizes):
        with (unnamed / str(number)).open("wb") as file:
            for _ in range(0, size, 1 << 20):
                file.write(source.randbytes(min(size, 1 << 20)))
    told = subprocess.run(
        f"find . -type f -print0 | xargs -0 {b3sum}",
        shell=True,
        cwd=unnamed,
        check=True,
        capture_output=True,
        text=True,
    )
    files = []
    for line in told.stdout.splitlines():
        digest, name = line.split(maxsplit=1)
        place = folder / "cache/cas" / digest[:2] / digest[2:]
        place.parent.mkdir(parents=True, exist_ok=True)
        (unnamed / name).rename(place)
        files.append(str(place))
    unnamed.rmdir()
    return files


def measure(name: str, folder: Path, files: list[str], arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Returns a row a subject."""
    commands = {
        "t2t cache verify": f"exec {arguments.t2t} cache verify",
        "b3sum": f"find cache/cas -type f -print0 | xargs -0 {arguments.b3sum}",
        "sha256sum": "find cache/cas -type f -print0 | xargs -0 sha256sum",
        "cat": "find cache/cas -type f -print0 | xargs -0 cat",
    }
    size = sum(Path(file).stat().st_size for file in files)
    passed: dict[str, list[float]] = {subject: [] for subject in commands}
    used: dict[str, list[float]] = {subject: [] for subject in commands}
    for number in range(arguments.runs + 1):
        for subject, command in commands.items():
            taken, cores = timed(command, folder)
            # The first brings the files into memory.
            if number:
                passed[subject].append(taken)
                used[subject].append(cores)
        print(f"{name}: round {number}, load {os.getloadavg()[0]:.0f}", file=sys.stderr)
    return [row(name, subject, size, passed[subject], used[subject]) for subject in commands]


def row(name: str, subject: str, size: int, passed: list[float], used: list[float]) -> dict[str, object]:
    """Returns the figures of a subject: gigabytes in a second, by the median of the times, and the seconds of all cores for a gigabyte."""
    rate = size / 1e9 / statistics.median(passed)
    best = size / 1e9 / min(passed)
    cores = statistics.median(used) / (size / 1e9)
    return {
        "store": name,
        "subject": subject,
        "GB/s": round(rate, 2),
        "best": round(best, 2),
        "core s/GB": round(cores, 3),
    }


def timed(command: str, folder: Path) -> tuple[float, float]:
    """Returns how long a command took, and the time of all cores for it."""
    environment: Mapping[str, str] = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    told = subprocess.run(command, shell=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
    taken, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if told.returncode:
        sys.exit(f"error: `{command}` ended with {told.returncode}")
    return taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
