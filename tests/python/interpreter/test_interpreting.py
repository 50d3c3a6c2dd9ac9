"""A kernel on Triton's interpreter computes the same bits with what the harness changes in it and without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[3] / "python"

KERNELS = """
import sys
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter


@triton.jit
def shifted(x, row):
    return tl.exp(x - tl.max(x, axis=0)) + row


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr, HALF: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=-float("inf"))
    if HALF:
        x = x.to(tl.float16).to(tl.float32)
    top = shifted(x, row.to(tl.float32))
    tl.store(out_ptr + row * columns + offsets, top / tl.sum(top, axis=0), mask=offsets < columns)


@triton.jit
def cumulated(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    order = tl.argmax(x, axis=0)
    tl.store(out_ptr + offsets, tl.cumsum(x, axis=0) + order, mask=offsets < n)


def replaced():
    return interpreter.tl.load is not own


def results():
    values = torch.randn(7, 13, generator=torch.Generator().manual_seed(0))
    whole = torch.arange(5, dtype=torch.int64)
    outs = []
    for half in (False, True):
        outs.append(torch.empty_like(values))
        softmax[(7,)](values, outs[-1], 13, BLOCK=16, HALF=half)
        assert not replaced()
    outs.append(torch.empty_like(whole))
    cumulated[(1,)](whole, outs[-1], 5, BLOCK=8)
    try:
        softmax[(7,)](values, outs[0], 13, BLOCK=15, HALF=False)
        raise AssertionError("a block of 15 is refused")
    except interpreter.InterpreterError as error:
        print("refused:", error)
    assert not replaced()
    return outs


own, calls = interpreter.tl.load, []
patch_lang = interpreter._patch_lang


def counted(function):
    calls.append(function)
    return patch_lang(function)


interpreter._patch_lang = counted
before, without = results(), len(calls)
from t2t_harness.triton import interpreting

interpreting.install()
interpreting.install()
calls.clear()
for one, other in zip(before, results(), strict=True):
    assert one.view(torch.uint8).equal(other.view(torch.uint8))
print("patched", without, "and", len(calls))
"""


QUIET = """
import numpy as np
from t2t_harness.triton import stage

with stage.lane({"lane": "interpreter"}):
    print(np.ones(2, np.float32) / np.zeros(2, np.float32))
"""


def test_a_division_by_zero_is_told_by_nothing_but_its_result(tmp_path: Path) -> None:
    ran = run(tmp_path, QUIET, "-Werror::RuntimeWarning")
    assert (ran.returncode, ran.stdout) == (0, "[inf inf]\n"), ran.stderr


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Returns how a script with this text ended in an interpreter of its own."""
    script = folder / "script.py"
    script.write_text(text)
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(HARNESS), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, *options, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_triton_computes_the_same_and_goes_through_its_language_once_a_launch(tmp_path: Path) -> None:
    ran = run(tmp_path, KERNELS)
    assert ran.returncode == 0, ran.stderr
    refusals = [line for line in ran.stdout.splitlines() if line.startswith("refused:")]
    assert len(refusals) == 2 and refusals[0] == refusals[1]
    # Four launches; each of the 7 rows of two calls `shifted`, which calls `max`, and `sum`, and each call is one more without.
    counts = [int(word) for word in ran.stdout.splitlines()[-1].split()[1::2]]
    assert counts[0] > 4 + 2 * 7 * 3 and counts[1] <= 4 * 2
