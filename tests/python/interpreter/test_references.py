"""What a judge that stays remembers of an op: no more than its variants share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.cases import cases
from t2t_harness.judging import references


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the names of the cases for which something was made, in order."""
    found: list[str] = []

    def make(request: dict[str, Any], case: cases.Case, device: str) -> Any:
        found.append(f"{request['op']['name']} {case.name}")
        return {}, len(found)

    monkeypatch.setattr(references, "made", make)
    monkeypatch.setattr(references, "_known", {})
    monkeypatch.setattr(references, "is_little", lambda device: "large" not in found[-1])
    return found


def case_named(name: str) -> cases.Case:
    """Returns a case of this name."""
    return cases.Case(name=name, kind="declared", binding={}, dtype="float32", seed=0, values="declared")


def request_of(op: str, prepared: str | None = None, **changes: Any) -> dict[str, Any]:
    """Returns a request to judge a variant of an op."""
    return {"op": {"name": op, **changes}, "prepared": prepared}


def test_variants_of_an_op_share_what_is_right_and_other_ops_do_not(made: list[str]) -> None:
    one, other = case_named("one"), case_named("other")
    rights = [references.of(request_of("add"), case, "cuda")[1] for case in (one, other, one, other)]
    assert (rights, made) == ([1, 2, 1, 2], ["add one", "add other"])
    references.of(request_of("add", precision="tf32"), one, "cuda")
    references.of(request_of("add"), one, "cuda")
    assert made[2:] == ["add one", "add one"], "of one op at most is anything kept"


def test_what_takes_much_memory_is_made_anew(made: list[str]) -> None:
    for name in ("small", "large", "small", "large"):
        references.of(request_of("add"), case_named(name), "cuda")
    assert made == ["add small", "add large", "add large"]


def test_nothing_is_remembered_of_prepared_inputs_nor_where_a_judge_does_not_stay(made: list[str]) -> None:
    for request, device in [(request_of("add", "/folder"), "cuda"), (request_of("add"), "cpu")]:
        for _ in range(2):
            references.of(request, case_named("one"), device)
    assert len(made) == 4
