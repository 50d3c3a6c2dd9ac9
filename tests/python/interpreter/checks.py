"""A check of a small kernel, as a build runs it: the children of the harness one after the other, on the interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[3] / "python")]

from children import ask

NORMAL = {"kind": "normal", "mean": 0.0, "std": 1.0}

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


def tensor(name: str, shape: list[int | str], **more: Any) -> dict[str, Any]:
    """Returns a declared input."""
    plain = {"dtype": None, "init": NORMAL, "requires_grad": False, "layout": "contiguous", "optional": False}
    return {"name": name, "shape": shape, **plain, "list": None, **more}


def declared(torch_name: str, inputs: list[dict[str, Any]], binding: dict[str, int], **more: Any) -> dict[str, Any]:
    """Returns an op of one size."""
    return {
        "name": "op",
        "torch": torch_name,
        "inputs": inputs,
        "kwargs": {},
        "dtypes": ["float32"],
        "sizes": {"small": binding, "large": {dim: 4 * length for dim, length in binding.items()}},
        "check_sizes": {"small": binding},
        "seeds": 2,
        "tolerances": {"float32": [1e-5, 1e-5], "float16": [1e-3, 1e-3], "bfloat16": [1.6e-2, 1e-2]},
        "precision": "ieee",
        "mutates": [],
        "overwrites": [],
        "backward": False,
        "broadcast": False,
        "deterministic": True,
        "cases": None,
        "outputs": None,
        "random": None,
        **more,
    }


def check(tmp_path: Path, op: dict[str, Any], kernel: str, cases: str | None = None, **variant: Any) -> dict[str, Any]:
    """Returns the documents of the check of a kernel file that defines `wrapper`, the variant being declared as `variant` says besides."""
    root, scratch = tmp_path / "workspace", tmp_path / "scratch"
    folder = root / "kernels" / "op"
    folder.mkdir(parents=True)
    scratch.mkdir()
    (folder / "v1.py").write_text(HEAD + kernel, encoding="utf-8")
    if cases is not None:
        (folder / "cases.py").write_text(cases, encoding="utf-8")
    request: dict[str, Any] = {"op": op, "root": str(root), "scratch": str(scratch), "lane": "interpreter"}
    prepared = None
    if op["cases"] is not None:
        assert ask("prepare.prepare", request, interpreter=True)["outcome"] == "passed"
        prepared = str(scratch)
    request["variant"] = {
        "name": "v1",
        "file": "kernels/op/v1.py",
        "entry": "wrapper",
        "lanes": ["interpreter"],
        "deterministic": True,
        **variant,
    }
    ask("candidate.run", {**request, "inputs": prepared}, interpreter=True)
    told = {"prepared": prepared, "candidate": str(scratch), "end": {"kind": "reply"}}
    documents: dict[str, Any] = ask("judge.judge", {**request, **told}, interpreter=True)["documents"]
    return documents


def verdict(tmp_path: Path, op: dict[str, Any], kernel: str, cases: str | None = None) -> tuple[str | None, str]:
    """Returns the class of the rejection, None where the check passed, and its message."""
    documents = check(tmp_path, op, kernel, cases)
    found, failure = documents["verdict"], documents["evidence"]["failure"]
    assert found["verdict"] in ("passed", "rejected"), found
    return found["class"], "" if failure is None else failure["message"]


WRONG = ("mismatch", "nan", "out-of-bounds", "shape")
"""Classes of kernels whose results are wrong."""


def require_passed(tmp_path: Path, op: dict[str, Any], kernel: str) -> None:
    """Checks an honest kernel, and fails with what is said of it where it does not pass."""
    documents = check(tmp_path, op, kernel)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]


def require_rejected(
    tmp_path: Path, op: dict[str, Any], kernel: str, written: str, instead: str, classes: tuple[str, ...] = WRONG
) -> None:
    """Checks a kernel that has `instead` where the honest one has `written`, and fails where it is not rejected for one of the `classes`."""
    assert written in kernel
    class_, _ = verdict(tmp_path, op, kernel.replace(written, instead))
    assert class_ in classes


Honest: TypeAlias = Mapping[str, tuple[dict[str, Any], str]]
"""Name → an op, and an honest kernel of it."""

Faults: TypeAlias = Mapping[str, tuple[str, str, str]]
"""What is wrong → the kernel's name, what is written there, and what is written instead."""


def both_tests(
    honest: Honest, faults: Faults, classes: tuple[str, ...] = WRONG
) -> tuple[Callable[[Path, str], None], Callable[[Path, str], None]]:
    """Returns the test that each of the `honest` kernels passes, and the one that each with one of the `faults` is rejected for one of the `classes`."""

    @pytest.mark.parametrize("name", honest)
    def passes(tmp_path: Path, name: str) -> None:
        require_passed(tmp_path, *honest[name])

    @pytest.mark.parametrize("fault", faults)
    def is_rejected(tmp_path: Path, fault: str) -> None:
        name, written, instead = faults[fault]
        require_rejected(tmp_path, *honest[name], written, instead, classes)

    return passes, is_rejected
