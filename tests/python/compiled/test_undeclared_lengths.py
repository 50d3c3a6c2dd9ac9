"""Lengths that no size declares: how many columns come with them, and what is said of a deadline that passes there."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parents[1] / "interpreter")]

from checks import declared, tensor

from t2t_harness.cases import bindings, probe_lengths
from t2t_harness.phases import judge


def trial(running: str | None) -> Any:
    """Returns a trial whose candidate was at the case `running` when it ended."""
    return types.SimpleNamespace(told=types.SimpleNamespace(state={"running": running}))


@pytest.mark.parametrize(
    ("running", "said"),
    [
        ("edge/shape[R=4099]/float32", ["R=4099", "`assert R <= …`", "shapes: {off: WHY}"]),
        ("edge/literal[M=65537]/float32", ["M=65537", "`assert M <= …`", "literals: {off: WHY}"]),
        ("small/float32/0", ["smaller sizes"]),
        ("edge/special/float32", ["smaller sizes"]),
        (None, ["smaller sizes"]),
    ],
)
def test_a_deadline_at_a_length_that_no_size_declares_says_what_helps(running: str | None, said: list[str]) -> None:
    hint = judge.late_hint(trial(running))
    assert all(words in hint for words in said), hint


def test_many_rows_have_three_columns_on_a_device_and_one_on_the_interpreter() -> None:
    op: Any = declared("torch.sum", [tensor("x", ["M", "N"])], {"M": 24, "N": 40})

    def columns(lane: str) -> list[int]:
        found = probe_lengths.of_literals(op, [], [3000], lane, bindings.reach_limit(lane), {3000})
        return [case.binding["N"] for case in found if case.binding["M"] == 3001]

    assert (columns("cuda"), columns("interpreter")) == ([3], [1])
