"""Timed calls of an op that changes its inputs, or may: what is restored before each, and what is said where autograd refuses them."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parents[1] / "interpreter")]

from checks import declared, tensor

from t2t_harness.measuring import timing
from t2t_harness.phases import passes


def test_an_input_that_may_be_overwritten_is_restored_before_each_timed_call_and_is_no_result() -> None:
    inputs = [tensor(name, ["M"]) for name in ("x", "y", "z")]
    op: Any = declared("torch.add", inputs, {"M": 5}, mutates=["y"], overwrites=["x"])
    given = {name: torch.randn(5) for name in ("x", "y", "z")}
    before = {name: value.clone() for name, value in given.items()}
    buffers = timing.Buffers(op, types.SimpleNamespace(dtype="float32"), given, "cpu")  # type: ignore[arg-type]
    assert (buffers.mutated, buffers.restored, buffers.changed) == (["y"], ["x", "y"], "z")
    buffers.refill(0)
    for name in ("x", "y"):
        given[name].fill_(7.0)
    buffers.freshen()
    assert given["x"].equal(before["x"]) and given["y"].equal(before["y"])


@pytest.mark.parametrize(
    ("timed", "mutates", "error", "is_said"),
    [
        ("both", ["x"], RuntimeError("a leaf"), True),
        ("backward", ["x"], RuntimeError("a leaf"), True),
        ("forward", ["x"], RuntimeError("a leaf"), False),
        ("both", [], RuntimeError("a leaf"), False),
        ("both", ["x"], ValueError("another"), False),
    ],
)
def test_passes_that_autograd_refuses_say_what_can_be_timed(
    timed: str, mutates: list[str], error: Exception, is_said: bool
) -> None:
    request: Any = {"protocol": {"passes": timed}, "op": {"mutates": mutates}}
    assert ("`bench: {pass: forward}`" in (passes.hint(request, error) or "")) is is_said
