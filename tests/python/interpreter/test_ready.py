"""A child that has got ready for a check is as one that has not: what it did beforehand is not to be seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[3] / "python"

REHEARSED = """
import contextlib
import gc
import io
import os
import sys

import numpy
import safetensors.torch
import torch
import triton.language as tl
from t2t_harness.phases import candidate, judge
from t2t_harness.server import ready
from t2t_harness.triton import interpreting

awaited_after = int(sys.argv[1])
THINGS = (tl, tl.core, tl.math, tl.core.tensor, tl.core.tensor_descriptor_base, tl.core.dtype, torch, torch.cuda, torch.Tensor)


def seen():
    drawn = torch.get_rng_state().tolist(), numpy.random.get_state()[1].tolist()
    modules = {name for name in sys.modules if name.split(".")[0] == "kernels"}
    return drawn, modules, torch.is_grad_enabled(), os.getcwd(), dict(os.environ), sorted(os.listdir("."))


parts = []
rehearsed = ready.rehearsed


def counted():
    for part in rehearsed():
        parts.append(part)
        yield part


ready.rehearsed = counted
ready.is_awaited = lambda: len(parts) >= awaited_after
torch.set_num_threads(1)
interpreting.install()
before, things = seen(), [dict(vars(thing)) for thing in THINGS]
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    ready.rehearse()
assert said.getvalue() == ""
assert seen() == before
for thing, own in zip(THINGS, things, strict=True):
    others = {name for name in {*own, *vars(thing)} if vars(thing).get(name) is not own.get(name)}
    assert not others, (thing, others)
assert gc.get_freeze_count() > 0
print(len(parts))
"""


def rehearse(tmp_path: Path, awaited_after: int) -> int:
    """Returns how many parts of a rehearsal were begun by a child whose request came after so many."""
    script, folder = tmp_path / "rehearsed.py", tmp_path / "empty"
    script.write_text(REHEARSED)
    folder.mkdir()
    environment = {"TRITON_INTERPRET": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(HARNESS), "PATH": "/usr/bin"}
    ran = subprocess.run(
        [sys.executable, str(script), str(awaited_after)],
        env=environment, capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


def test_a_rehearsal_leaves_nothing_to_be_seen(tmp_path: Path) -> None:
    assert rehearse(tmp_path, 999) > 40


def test_a_rehearsal_ends_once_a_request_is_there(tmp_path: Path) -> None:
    assert rehearse(tmp_path, 3) == 3
