"""Indices of which ops.yaml says nothing, into what a reference makes on the way: of equal values any place is right where torch leaves that open, and what lies further apart than torch's error is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import declared, tensor

from t2t_harness.cases.cases import Case
from t2t_harness.judging import comparing, oracle, pointing

REFERENCE = """
import torch

def experts(x):
    return torch.softmax(x.double() / 3, -1).to(x.dtype).topk(2, -1)[1].to(torch.int32)

def nearest(x):
    return ((x[:, :, None] - 0.1) ** 2).sum(-1).argmin(-1)

def order(x):
    return (x * 0.3).sort(dim=-1, stable=True)[1]

def some(x):
    return (x * 0.3).sort(-1)[1][:, :2].clone()

def shifted(x):
    found = (x * 0.3).topk(2, -1)[1]
    found += 1
    return found

def grouped(x):
    groups = x.view(x.shape[0], 2, -1).amax(-1)
    kept = torch.zeros_like(groups).scatter(1, groups.topk(1)[1], 1.0).repeat_interleave(x.shape[1] // 2, 1)
    return x.masked_fill(kept == 0, float("-inf")).topk(2)

def across(x):
    return (x * 0.3).topk(3, -1)[1].t()
"""

ROW = [[2.0, 1.0, 2.0, 1.0]]

NEAR = [[1.0, 2.0, 2.0 + 2.0**-22, 0.0]]
"""Two values lie apart by the last bit of a float32."""

APART = [[1.0, 2.0, 2.001, 0.0]]


@dataclass(frozen=True)
class Told:
    """Indices that a kernel returns of some values, and what is said of them; None where nothing is, since no rule fits."""

    name: str
    x: list[list[float]]
    made: list[list[int]] | list[int]
    said: str | None


TOLD = {
    "both places of a tie": Told("experts", ROW, [[2, 0]], ""),
    "one of them twice": Told("experts", ROW, [[2, 2]], "for the second time"),
    "a smaller value": Told("experts", ROW, [[0, 3]], "1 of 2 indices are wrong"),
    "no place": Told("experts", ROW, [[0, 4]], "which is outside"),
    "values that are nearer than torch's error": Told("experts", NEAR, [[1, 2]], ""),
    "values that are further apart": Told("experts", APART, [[1, 2]], "2 of 2 indices are wrong"),
    "the first of a tie": Told("nearest", [[3.0, 1.0, 1.0, 2.0]], [1], ""),
    "the last of a tie": Told("nearest", [[3.0, 1.0, 1.0, 2.0]], [2], "which is as large: torch names the first one"),
    "a stable sort": Told("order", ROW, [[1, 3, 0, 2]], ""),
    "an order that is not stable": Told("order", ROW, [[3, 1, 0, 2]], "torch names the first one"),
    "a part of an order that need not be": Told("some", ROW, [[3, 1]], ""),
    "numbers that were indices": Told("shifted", ROW, [[3, 1]], None),
    "indices in another order of dims": Told("across", ROW, [[2], [0], [1]], None),
}


@pytest.mark.parametrize("name", TOLD)
def test_indices_are_right_by_what_they_point_to(name: str, tmp_path: Path) -> None:
    told = TOLD[name]
    found = compared(tmp_path, told, torch.tensor(told.x))
    if told.said is None:
        assert found is None
    else:
        assert found is not None and found.passed == (told.said == "") and told.said in (found.message or "")


def test_what_is_declared_is_compared_so(tmp_path: Path) -> None:
    told = TOLD["both places of a tie"]
    exact: Any = {"name": "indices", "compare": "exact", "of": None, "dim": None, "tolerances": {}}
    assert compared(tmp_path, told, torch.tensor(told.x), outputs=[exact]) is None


def test_what_rounds_to_ties_in_the_tested_dtype_is_one(tmp_path: Path) -> None:
    x = torch.tensor([[1.0, 2.0, 2.0078125, 0.0]], dtype=torch.bfloat16)
    for made in ([[1, 2]], [[2, 1]]):
        found = compared(tmp_path, Told("experts", [], made, ""), x)
        assert found is not None and found.passed, found


@pytest.mark.parametrize("x", [[[1.0, 1.0, 1.0, 1.0]], [[3.0, 3.0, 3.0, 2.0]]])
def test_what_is_picked_of_ties_before_may_be_the_first_or_the_last(tmp_path: Path, x: list[list[float]]) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE, encoding="utf-8")
    op, given = op_of(tmp_path, "grouped", torch.tensor(x)), {"x": torch.tensor(x)}
    case = Case("small", "declared", "float32", {"M": 1, "N": 4})
    orders = [right.plain for right in pointing.references(op, case, given, "cpu")]
    assert [one["1"].tolist() for one in orders] == [[[0, 1]], [[3, 2]] if x[0][3] == 1.0 else [[2, 3]]]
    assert [one["0"].tolist() for one in orders] == [[x[0][:2]], [x[0][:1:-1] if x[0][3] == 1.0 else x[0][2:]]]


def test_a_reference_that_sorts_nothing_has_no_other_order(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE, encoding="utf-8")
    x = torch.tensor([[3.0, 1.0, 1.0, 2.0]])
    case = Case("small", "declared", "float32", {"M": 1, "N": 4})
    for name in ("nearest", "order"):
        assert list(pointing.references(op_of(tmp_path, name, x), case, {"x": x}, "cpu")) == []


def op_of(folder: Path, name: str, x: torch.Tensor, **more: Any) -> Any:
    """Returns the op of a reference, for inputs like `x`."""
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    binding = {"M": x.shape[0], "N": x.shape[1]}
    return declared("", [tensor("x", ["M", "N"])], binding, torch=None, reference=reference, **more)


def compared(folder: Path, told: Told, x: torch.Tensor, **more: Any) -> Any:
    """Returns the comparison of what a kernel is told to return of `x`, by what it points to."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    op = op_of(folder, told.name, x, **more)
    case = Case("small", "declared", str(x.dtype).removeprefix("torch."), {"M": x.shape[0], "N": x.shape[1]})
    right = oracle.reference(op, case, {"x": x}).plain
    judged = comparing.Judged({"x": x}, right, {"0": torch.tensor(told.made, dtype=right["0"].dtype)})
    return pointing.compared(op, case, "0", judged, "cpu")
