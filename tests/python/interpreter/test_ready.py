"""A child that has got ready for a check is as one that has not: what it did beforehand is not to be seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import declared, tensor

from t2t_harness.cases import listing

HARNESS = Path(__file__).resolve().parents[3] / "python"

REHEARSED = """
import contextlib
import gc
import io
import json
import os
import sys

import numpy
import safetensors.torch
import torch
import triton.language as tl
from t2t_harness.cases import beforehand
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


def counted(request):
    for part in rehearsed(request):
        parts.append(part)
        yield part


ready.rehearsed = counted
ready.is_awaited = lambda: len(parts) >= awaited_after
torch.set_num_threads(1)
interpreting.install()
before, things = seen(), [dict(vars(thing)) for thing in THINGS]
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    ready.rehearse(json.loads(sys.argv[2]))
assert said.getvalue() == ""
assert seen() == before
for thing, own in zip(THINGS, things, strict=True):
    others = {name for name in {*own, *vars(thing)} if vars(thing).get(name) is not own.get(name)}
    assert not others, (thing, others)
assert gc.get_freeze_count() > 0
print(json.dumps([parts, list(beforehand._drawn)]))
"""


KERNEL = """import triton


def wrapper(input):
    return input + 77
"""


def likely(tmp_path: Path, **told: object) -> dict[str, Any]:
    """Returns a request to get ready for a check, of whose last candidate this is `told`."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/v1.py").write_text(KERNEL)
    variant = {
        "name": "v1",
        "file": "kernels/v1.py",
        "entry": "wrapper",
        "lanes": ["interpreter"],
        "deterministic": True,
    }
    op = declared("torch.exp", [tensor("input", ["M", "N"])], {"M": 8, "N": 12}, seeds=1)
    known = {"constants": {"BLOCK": 64}, "least": {}, "reached": [], **told}
    return {"op": op, "root": str(tmp_path), "lane": "interpreter", "variant": variant, "salt": "0123", **known}


def rehearse(tmp_path: Path, awaited_after: int, request: dict[str, Any] | None = None) -> tuple[list[str], list[str]]:
    """Returns the parts of a rehearsal that were begun by a child whose request came after so many, and the cases for which it drew inputs."""
    script, folder = tmp_path / "rehearsed.py", tmp_path / "empty"
    script.write_text(REHEARSED)
    folder.mkdir()
    environment = {"TRITON_INTERPRET": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(HARNESS), "PATH": "/usr/bin"}
    ran = subprocess.run(
        [sys.executable, str(script), str(awaited_after), json.dumps(request)],
        env=environment, capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    parts, drawn = json.loads(ran.stdout)
    return parts, drawn


def test_a_rehearsal_leaves_nothing_to_be_seen(tmp_path: Path) -> None:
    parts, drawn = rehearse(tmp_path, 999)
    assert len(parts) > 20
    assert not drawn


def test_a_rehearsal_ends_once_a_request_is_there(tmp_path: Path) -> None:
    assert len(rehearse(tmp_path, 3)[0]) == 3


def test_inputs_of_the_check_that_is_likely_are_drawn_and_nothing_is_to_be_seen_of_it_either(tmp_path: Path) -> None:
    request = likely(tmp_path)
    parts, drawn = rehearse(tmp_path, 999, request)
    known = [case.name for case in listing.listed(request, None, {"BLOCK": 64}, {}, [])]  # type: ignore[arg-type]
    assert drawn == known
    # Edges around the block that the last candidate had.
    assert "edge/at-block[N=64]/float32" in drawn
    assert set(drawn) <= set(parts)


def test_what_a_candidate_told_may_be_anything(tmp_path: Path) -> None:
    request = likely(tmp_path, constants={"BLOCK": None}, reached=[{"size": 3}, "large"])
    parts, drawn = rehearse(tmp_path, 999, request)
    assert len(parts) > 20
    assert not drawn


def test_what_cannot_be_drawn_is_left_to_the_check(tmp_path: Path) -> None:
    request = likely(tmp_path)
    request["op"]["inputs"][0]["init"] = {"kind": "file", "path": str(tmp_path / "none.safetensors"), "name": "x"}
    parts, drawn = rehearse(tmp_path, 999, request)
    assert len(parts) > 20
    assert not drawn
