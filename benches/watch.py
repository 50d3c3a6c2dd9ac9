"""Measures `t2t watch`: from the save of a one-line edit of a kernel to its verdict, against `pytest -x` on an equivalent test.

Both run on Triton's interpreter, or with `--device cuda` on the GPU, on the same kernel and the same sizes, in a temporary folder. An edit adds
a line to the kernel's code, which is compiled anew for a GPU; the verdict is the line of the check, or the end of pytest. The first rounds of
each are left out: they warm caches. Figures of one run are comparable with each other only. The kernel is softmax with a program a row, 121 in all the cases of
a check; with `--op add` it is an addition with one or two programs a case.

    python benches/watch.py [--t2t PATH] [--device cpu|cuda] [--op softmax|add] [--runs N]
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

OPS = """\
version: 1
ops:
  {op}:
    torch: {op}
{call}
    variants: [v1_baseline]
    check: {{seeds: 1}}
    bench: {{sizes: {{small: [16, 16]}}}}
    profiles: {{cpu: {{bench: {{sizes: {{small: [16, 16]}}}}}}}}
"""

TEST = """\
import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from kernels.{op}.v1_baseline import triton_{op}

DEVICE = os.environ["TEST_DEVICE"]
CASES = {{
    "small": lambda: torch.randn(16, 16),
    "empty": lambda: torch.randn(0, 16),
    "one": lambda: torch.randn(1, 1),
    "row": lambda: torch.randn(3, 17),
    "strided": lambda: torch.randn(16, 16).t(),
    "large": lambda: torch.randn(4, 8) * 1e4,
}}


@pytest.mark.parametrize("name", CASES)
def test_{op}(name, monkeypatch):
    if DEVICE == "cpu":
        monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    torch.manual_seed(0)
    x = CASES[name]().to(DEVICE)
    assert torch.allclose(triton_{op}(x, {more}), torch.{op}(x, {more}), atol=1e-5, rtol=1e-5)
"""


class Kernel(NamedTuple):
    """A kernel that is edited: how it is declared, what a test calls it with, and the line after which an edit adds one."""

    declared: str
    more: str
    line: str


KERNELS = {
    "softmax": Kernel(
        "    inputs: {input: [M, N]}\n    kwargs: {dim: -1}",
        "dim=-1",
        "    row = tl.program_id(0).to(tl.int64)\n",
    ),
    "add": Kernel(
        "    inputs: {input: [M, N], other: [M, N]}",
        "x",
        "    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)\n",
    ),
}
WARM = 2
PATIENCE = 120
ENDED = ""
"""In place of a line, once no other comes."""


class Watch:
    """A `t2t watch` that runs, and its lines as they come."""

    def __init__(self, arguments: argparse.Namespace, folder: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [arguments.t2t, "watch", "--device", arguments.device, f"{arguments.op}/v1_baseline:check"],
            cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines: queue.Queue[tuple[float, str]] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        """Stamps each line."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put((time.perf_counter(), line))
        self.lines.put((time.perf_counter(), ENDED))

    def until(self, text: str) -> float:
        """Returns when a line with `text` came."""
        while True:
            when, line = self.lines.get(timeout=PATIENCE)
            if text in line:
                return when
            if line == ENDED:
                sys.exit("error: t2t watch has ended")

    def stop(self) -> None:
        """Ends it."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=PATIENCE)


def main() -> None:
    """Runs the measurements and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--t2t", default=str(ROOT / ".venv/bin/t2t"), help="the release binary")
    parser.add_argument(
        "--python", default=os.environ.get("T2T_PYTHON", sys.executable), help="has torch, triton and pytest"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what runs the kernel")
    parser.add_argument("--op", choices=tuple(KERNELS), default="softmax", help="whose kernel is edited")
    parser.add_argument("--runs", type=int, default=30, help="edits that are measured")
    arguments = parser.parse_args()
    # The folder is another below; a link is not followed, since it may be that of a virtual environment.
    arguments.python, arguments.t2t = os.path.abspath(arguments.python), os.path.abspath(arguments.t2t)
    environment = {**os.environ, "T2T_PYTHON": arguments.python}
    with tempfile.TemporaryDirectory() as folder:
        kernel = workspace(arguments.op, Path(folder))
        ours = watch(arguments, Path(folder), kernel, environment)
        print(f"save to verdict, t2t watch: {words(ours)}", flush=True)
        theirs = pytest(arguments, Path(folder), kernel)
    print(f"save to verdict, pytest -x: {words(theirs)}")
    print(f"ratio of medians: {statistics.median(ours) / statistics.median(theirs):.3f}")


def words(seconds: list[float]) -> str:
    """Returns the figures of one way."""
    low, high = min(seconds) * 1000, max(seconds) * 1000
    return f"median {statistics.median(seconds) * 1000:.0f} ms of {len(seconds)}, {low:.0f} to {high:.0f} ms"


def workspace(op: str, folder: Path) -> Path:
    """Makes the workspace with its test, and returns the kernel."""
    (folder / f"kernels/{op}").mkdir(parents=True)
    (folder / "ops.yaml").write_text(OPS.format(op=op, call=KERNELS[op].declared))
    (folder / "test_kernel.py").write_text(TEST.format(op=op, more=KERNELS[op].more))
    kernel = folder / f"kernels/{op}/v1_baseline.py"
    shutil.copy2(ROOT / f"kernels/{op}/v1_baseline.py", kernel)
    return kernel


def edited(op: str, text: str, number: int) -> str:
    """Returns the kernel with a line more, which says this number."""
    line = KERNELS[op].line
    assert line in text
    return text.replace(line, f"{line}    edit = {number}\n")


def watch(arguments: argparse.Namespace, folder: Path, kernel: Path, environment: dict[str, str]) -> list[float]:
    """Returns how long each edit took until its verdict was told, in seconds."""
    watching = Watch(arguments, folder, environment)
    watching.until("fresh ")
    text, taken = kernel.read_text(), []
    for number in range(WARM + arguments.runs):
        # Servers and editors rest between saves.
        time.sleep(0.3)
        start = time.perf_counter()
        kernel.write_text(edited(arguments.op, text, number))
        taken.append(watching.until(f"check {arguments.op}/v1_baseline … passed") - start)
        watching.until("fresh ")
    watching.stop()
    kernel.write_text(text)
    return taken[WARM:]


def pytest(arguments: argparse.Namespace, folder: Path, kernel: Path) -> list[float]:
    """Returns how long pytest takes after each edit, in seconds."""
    environment = {**os.environ, "TEST_DEVICE": arguments.device, "PYTHONPATH": str(folder)}
    if arguments.device == "cpu":
        environment["TRITON_INTERPRET"] = "1"
    text, taken = kernel.read_text(), []
    for number in range(WARM + min(arguments.runs, 10)):
        start = time.perf_counter()
        kernel.write_text(edited(arguments.op, text, -1 - number))
        subprocess.run(
            [arguments.python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "test_kernel.py"],
            cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        taken.append(time.perf_counter() - start)
    kernel.write_text(text)
    return taken[WARM:]


if __name__ == "__main__":
    main()
