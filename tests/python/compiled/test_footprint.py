"""Probes whose right results nobody has room for are not asked for, and what has room is. No kernel runs, and no device is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from t2t_harness.cases import cases
from t2t_harness.judging import footprint, kept, oracle, references
from t2t_harness.server import ready


def distances(length: int) -> tuple[Any, cases.Case, dict[str, torch.Tensor]]:
    """Returns an op that makes all distances between points, a probe with so many of them, and its inputs, which no memory is touched for."""
    common = {"dtype": None, "layout": "contiguous", "init": {"kind": "normal", "mean": 0.0, "std": 1.0}}
    inputs = [{"name": name, "shape": shape, **common} for name, shape in (("x1", ["N", 3]), ("x2", ["N", 3]))]
    sizes = {"small": {"N": length}}
    op = {**ready.DECLARATION, "torch": "torch.cdist", "inputs": inputs, "sizes": sizes, "check_sizes": sizes}
    case = replace(cases.declared_cases({**op, "kwargs": {}})[0], kind="edge", is_probe=True)
    return {**op, "kwargs": {}}, case, {"x1": torch.empty(length, 3), "x2": torch.empty(length, 3)}


def test_what_is_made_of_all_pairs_of_a_long_dim_is_too_large() -> None:
    assert footprint.too_large(*distances(65537)) == 65537**2
    assert footprint.too_large(*distances(4099)) is None
    op, case, given = distances(65537)
    assert footprint.too_large(op, replace(case, is_probe=False), given) is None


def test_a_long_dim_alone_is_not_too_large() -> None:
    op, case, given = distances(65537)
    # The same inputs, of a function that makes as much as it is given.
    assert footprint.too_large({**op, "torch": "torch.maximum"}, case, given) is None


def test_such_a_probe_is_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    op, case, given = distances(65537)
    monkeypatch.setattr(references.inputs, "inputs_of", lambda *_: given)
    monkeypatch.setattr(references.oracle, "reference", lambda *_: pytest.fail("it was computed"))
    with pytest.raises(oracle.Refused, match="4,295,098,369 elements"):
        references.made({"op": op, "prepared": None}, case, "cpu")  # type: ignore[typeddict-item]


def test_results_of_a_probe_are_kept_up_to_a_limit(tmp_path: Path) -> None:
    writer = kept.Writer(tmp_path / "results", None, 64)
    writer.add("a.0", torch.zeros(8))
    # An expanded one is written whole.
    with pytest.raises(kept.TooLarge, match="9 elements"):
        writer.add("a.1", torch.zeros(1).expand(9))
    writer.add("a.1", torch.zeros(8))
    writer.close()
