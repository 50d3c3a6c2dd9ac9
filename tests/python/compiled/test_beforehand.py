"""Inputs that are drawn before a check asks for them are those that it would draw."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parents[1] / "interpreter")]

from checks import declared, tensor

from t2t_harness.cases import beforehand, cases, inputs


def op(**others: Any) -> Any:
    """Returns an op with two inputs."""
    return declared("torch.add", [tensor("input", ["M", "N"]), tensor("other", ["N"])], {"M": 3, "N": 5}, **others)


def listed(declaration: Any) -> list[cases.Case]:
    """Returns cases of an op, of one build."""
    return cases.salted([*cases.declared_cases(declaration), *cases.fixed_edges(declaration)], "ab")


def test_what_was_drawn_is_what_the_case_has_and_serves_once() -> None:
    declaration = op()
    drawn = list(beforehand.draw(declaration, listed(declaration)))
    asked = copy.deepcopy(declaration)
    beforehand.keep_for(asked)
    assert drawn == [case.name for case in listed(asked)]
    for case in listed(asked):
        taken = beforehand.taken(asked, case, "cpu")
        made = inputs.make_inputs(asked, case)
        assert taken is not None and taken.keys() == made.keys()
        for name, value in made.items():
            assert value.stride() == taken[name].stride()
            torch.testing.assert_close(taken[name], value, rtol=0, atol=0, equal_nan=True)
        assert beforehand.taken(asked, case, "cpu") is None


def test_what_was_drawn_for_another_op_build_or_device_serves_nobody() -> None:
    declaration = op()
    first = listed(declaration)[0]
    for asked, case, device in (
        (op(seeds=7), first, "cpu"),
        (op(), cases.salted([first], "cd")[0], "cpu"),
        (op(), first, "cuda"),
    ):
        list(beforehand.draw(declaration, [first]))
        beforehand.keep_for(asked)
        assert beforehand.taken(asked, case, device) is None
    list(beforehand.draw(declaration, [first]))
    assert beforehand.taken(op(), first, "cpu") is None


def test_no_more_is_drawn_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    declaration = op()
    one = next(iter(listed(declaration)))
    bytes_of_one = sum(value.untyped_storage().nbytes() for value in inputs.make_inputs(declaration, one).values())
    monkeypatch.setattr(beforehand, "MOST_BYTES", bytes_of_one)
    assert list(beforehand.draw(declaration, listed(declaration))) == [one.name]
