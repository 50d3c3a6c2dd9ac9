"""Says what bounds the memory-bound kernels: the device's hardware counters, read by Nsight Compute, of v4_optimized, of eager torch, and of a kernel
that only reads and writes as many bytes.

Each is launched on its own, with the caches flushed before it; of a few launches the one of median duration counts. What is told: how long the kernel
ran on the device (without its launch, which events around it include), the bytes that memory read and wrote meanwhile, the rate of both and how much of
the memory's peak that is, the share of the warps that a multiprocessor can hold which were there on average, and registers a thread.

    python benches/counters.py [WORKSPACE] [--op OP]... [--out FILE]

Needs a CUDA device whose counters may be read, `ncu`, torch and Triton. The clocks are left as they are. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SIZES = {"large": (4096, 4096), "wide": (16384, 8192)}
LAUNCHES = 3
METRICS = {
    "time": "gpu__time_duration.sum",
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
    "peak": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
}
"""What a column of the table is called here → Nsight Compute's metric, in base units: ns, bytes, percent, registers."""

OPS = ("add", "gelu", "softmax", "layernorm")
KERNEL, TORCH, STREAM = "v4_optimized", "torch", "`torch.neg`, as many bytes"

Row = dict[str, float]
Subject = tuple[str, str, str]
"""Op, size, and who computes it."""


def main() -> None:
    """Measures all subjects and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", nargs="?", default=".", help="the folder with ops.yaml")
    parser.add_argument(
        "--op", action="append", choices=OPS, default=[], help="only this op; may be given several times"
    )
    parser.add_argument("--out", help="where the table is written")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    subjects = list(subjects_of(arguments.op or OPS))
    if arguments.child:
        launch(Path(arguments.workspace).resolve(), subjects)
        return
    text = table(subjects, profiled(arguments, len(subjects)))
    if arguments.out:
        Path(arguments.out).write_text(text + "\n")
    print(text)


def subjects_of(ops: list[str] | tuple[str, ...]) -> Iterator[Subject]:
    """Yields what is measured, in order."""
    for size in SIZES:
        for op in ops:
            for who in (KERNEL, TORCH, STREAM):
                yield op, size, who


def profiled(arguments: argparse.Namespace, subjects: int) -> list[Row]:
    """Runs this file under Nsight Compute and returns the figures of each subject."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        command += ["--clock-control", "none", "--cache-control", "all", "--profile-from-start", "off"]
        command += ["--metrics", ",".join(METRICS.values())]
        command += [sys.executable, __file__, arguments.workspace, "--child"]
        command += [part for op in arguments.op for part in ("--op", op)]
        try:
            ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        except FileNotFoundError:
            sys.exit("error: `ncu` was not found\nhint: it comes with CUDA's toolkit, as Nsight Compute")
        told = log.read_text() if log.exists() else ""
        if ended.returncode:
            sys.exit(f"error: ncu ended with {ended.returncode}\n{told}")
        rows = list(figures(told))
    if len(rows) != LAUNCHES * subjects:
        sys.exit(f"error: {subjects} subjects were launched {LAUNCHES} times each, and ncu told of {len(rows)} kernels")
    groups = [rows[start : start + LAUNCHES] for start in range(0, len(rows), LAUNCHES)]
    return [sorted(group, key=lambda row: row["time"])[LAUNCHES // 2] for group in groups]


def figures(log: str) -> Iterator[Row]:
    """Yields the figures of each kernel that the log tells of."""
    lines = [line for line in log.splitlines() if line.startswith('"')]
    for row in csv.DictReader(lines):
        # The first row holds the units.
        if row["ID"]:
            yield {name: float(row[metric].replace(",", "")) for name, metric in METRICS.items()}


def launch(workspace: Path, subjects: list[Subject]) -> None:
    """Launches every subject, in order, where the profiler sees it. Ends the process where one launches several kernels."""
    import torch

    profiler: Any = torch.cuda.profiler
    os.chdir(workspace)
    sys.path.insert(0, str(workspace))
    for op, size, who in subjects:
        call = call_of(op, size, who)
        call()
        torch.cuda.synchronize()
        for _ in range(LAUNCHES):
            profiler.start()
            call()
            torch.cuda.synchronize()
            profiler.stop()


def call_of(op: str, size: str, who: str) -> Callable[[], Any]:
    """Returns the call of a subject, on numbers drawn anew."""
    import torch

    rows, columns = SIZES[size]
    x = torch.randn(rows, columns, device="cuda")
    if who == STREAM:
        # As many bytes as the op moves: add reads two tensors. A copy would be no kernel, and would have no counters.
        source = torch.randn(rows, columns * 3 // 2 if op == "add" else columns, device="cuda")
        target = torch.empty_like(source)
        return lambda: torch.neg(source, out=target)
    functional = torch.nn.functional
    weight, bias = torch.randn(columns, device="cuda"), torch.randn(columns, device="cuda")
    forms: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
        "add": (torch.add, (x, torch.randn_like(x)), {}),
        "gelu": (functional.gelu, (x,), {"approximate": "tanh"}),
        "softmax": (torch.softmax, (x,), {"dim": -1}),
        "layernorm": (functional.layer_norm, (x, (columns,), weight, bias), {}),
    }
    function, positional, named = forms[op]
    if who == KERNEL:
        module = importlib.import_module(f"kernels.{op}.{KERNEL}")
        function = getattr(module, f"triton_{op}")
    return lambda: function(*positional, **named)


def table(subjects: list[Subject], rows: list[Row]) -> str:
    """Returns the table in Markdown."""
    lines = [
        "| op | size | what | µs | MB read | MB written | TB/s | % of peak | warps, % | registers |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (op, size, who), row in zip(subjects, rows, strict=True):
        rate = (row["read"] + row["written"]) / row["time"] / 1e3
        shape = "×".join(map(str, SIZES[size]))
        cells = [op, shape, who, f"{row['time'] / 1e3:.1f}", f"{row['read'] / 1e6:.1f}", f"{row['written'] / 1e6:.1f}"]
        cells += [f"{rate:.2f}", f"{row['peak']:.1f}", f"{row['warps']:.0f}", f"{row['registers']:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
