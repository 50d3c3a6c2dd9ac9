"""Decisions of a reference: either way is right next to where its own rounding decides, and one way alone where numbers are exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import declared, require_passed, require_rejected, tensor

from t2t_harness.cases import cases, inputs, probe_coarse
from t2t_harness.judging import comparing, oracle, pointing, progress, rounding, rules
from t2t_harness.judging.finding import Finding
from t2t_harness.judging.trial import Trial

REFERENCE = """
import torch


def near(points, centers, radius=1.0):
    return ((centers[:, None] - points) ** 2).sum(-1) < radius * radius


def gray(image):
    red, green, blue = image.float().unbind(-1)
    return (0.299 * red + 0.587 * green + 0.114 * blue).round().to(torch.uint8)
"""

NEAR = """
@triton.jit
def kernel(p_ptr, c_ptr, out_ptr, N, r2, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for axis in tl.static_range(3):
        apart = tl.load(c_ptr + 3 * i + axis) - tl.load(p_ptr + 3 * j + axis, mask=j < N, other=0.0)
        total += apart * apart
    tl.store(out_ptr + i * N + j, total < r2, mask=j < N)


def wrapper(points, centers, radius=1.0):
    points, centers = points.contiguous(), centers.contiguous()
    M, N = centers.shape[0], points.shape[0]
    out = torch.empty((M, N), dtype=torch.bool, device=points.device)
    if out.numel():
        kernel[(M, triton.cdiv(N, 32))](points, centers, out, N, radius * radius, BLOCK=32)
    return out
"""

GRAY = """
@triton.jit
def kernel(image_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    red, green, blue = (tl.load(image_ptr + 3 * at + place, mask=inside, other=0).to(tl.float32) for place in tl.static_range(3))
    tl.store(out_ptr + at, tl.extra.libdevice.rint(0.114 * blue + 0.587 * green + 0.299 * red).to(tl.uint8), mask=inside)


def wrapper(image):
    image = image.contiguous()
    out = torch.empty(image.shape[:-1], dtype=torch.uint8, device=image.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](image, out, out.numel(), BLOCK=128)
    return out
"""


def op(tmp_path: Path, name: str, given: list[dict[str, Any]], sizes: dict[str, int], **more: Any) -> dict[str, Any]:
    """Returns the op of one of the references."""
    folder = tmp_path / "theirs"
    folder.mkdir(exist_ok=True)
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    return declared("", given, sizes, torch=None, reference=reference, **more)


def near(tmp_path: Path) -> Any:
    """Returns the op that asks which points are near to which centers."""
    given = [tensor("points", ["N", 3]), tensor("centers", ["M", 3])]
    return op(tmp_path, "near", given, {"N": 30, "M": 7}, kwargs={"radius": 1.0})


def gray(tmp_path: Path) -> Any:
    """Returns the op that sums up colors, and rounds."""
    image = tensor("image", ["N", 3], dtype="uint8", init={"kind": "randint", "low": 0, "high": 256})
    return op(tmp_path, "gray", [image], {"N": 300}, dtypes=["uint8"])


def test_a_sum_in_another_order_may_round_the_other_way(tmp_path: Path) -> None:
    own = gray(tmp_path)
    case = cases.declared_cases(own)[0]
    # 299 · red + 587 · green + 114 · blue is 500 more than a multiple of 1,000, so that the sum lies in the middle of two.
    middle = torch.tensor(
        [
            [red, green, blue]
            for red in range(256)
            for green in range(0, 256, 5)
            for blue in range(0, 256, 5)
            if (299 * red + 587 * green + 114 * blue) % 1000 == 500
        ],
        dtype=torch.uint8,
    )
    plain = torch.tensor([[10, 20, 30], [255, 255, 255], [0, 0, 0]], dtype=torch.uint8)
    given = {"image": torch.cat([middle, plain])}
    seen = torch.stack([found["0"] for found in rounding.references(own, case, given, "cpu")]).int()
    least, most = seen.amin(0), seen.amax(0)
    # Of one color alone the product lies there, too, and nothing is added to it.
    assert (most - least <= 1).all()
    assert ((most - least)[:-3] == 1).float().mean() > 0.95
    assert least[-3:].tolist() == most[-3:].tolist() == [18, 255, 0]
    again = torch.stack([found["0"] for found in rounding.references(own, case, given, "cpu")]).int()
    assert again.equal(seen)


def test_exact_numbers_decide_one_way(tmp_path: Path) -> None:
    own = near(tmp_path)
    (case,) = probe_coarse.coarse(own, [])
    given = inputs.make_inputs(own, case)
    right = oracle.reference(own, case, given).plain["0"]
    distances = (given["centers"][:, None] - given["points"]).square().sum(-1)
    assert (distances == 1).sum() > 3
    for found in rounding.references(own, case, given, "cpu"):
        assert found["0"].equal(right)
    # A little beside these numbers nothing is exact, and nothing is decided by the last bits either.
    given = {name: value * 1.1 for name, value in given.items()}
    assert all(found["0"].dtype == torch.bool for found in rounding.references(own, case, given, "cpu"))


def test_once_a_case_is_rejected_others_are_asked_no_more_than_they_may_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = near(tmp_path)
    case = cases.declared_cases(own)[0]
    given = inputs.make_inputs(own, case)
    right = oracle.reference(own, case, given)
    judged = comparing.Judged(given, right.plain, {"0": ~right.plain["0"]})
    trial = Trial({"op": own, "lane": "interpreter"}, progress.Progress())  # type: ignore[typeddict-item]
    asked: list[object] = []
    monkeypatch.setattr(pointing, "references", lambda *given: iter(asked.append(given) or ()))
    monkeypatch.setattr(rounding, "either_way", lambda *_, **more: asked.append(more["limit"]))

    def count(case: cases.Case) -> int:
        before = len(asked)
        assert rules.in_another_order(trial, case, "0", judged) is None
        return len(asked) - before

    # As long as nothing is rejected each case is asked all.
    assert [count(case), count(case)] == [1, 1]
    trial.first = (case.name, Finding("mismatch", "wrong"))
    other = replace(case, kwargs={"radius": 2.0})
    assert [count(case), count(other), count(other), count(case)] == [0, 1, 0, 0]
    assert rules.either_way(trial, case, "0", judged, right) is None and asked[-1] == rules.LATER
    trial.first = None
    assert rules.either_way(trial, case, "0", judged, right) is None and asked[-1] is None


def test_a_reference_is_asked_for_no_more_operations_than_are_allowed(tmp_path: Path) -> None:
    own = near(tmp_path)
    case = cases.declared_cases(own)[0]
    given = inputs.make_inputs(own, case)
    assert [*rounding.references(own, case, given, "cpu", limit=3)] == []
    some = [*rounding.references(own, case, given, "cpu", limit=100)]
    assert 0 < len(some) < len([*rounding.references(own, case, given, "cpu")])


def test_an_equal_distance_is_decided_as_the_reference_has_it(tmp_path: Path) -> None:
    require_passed(tmp_path / "right", near(tmp_path), NEAR)
    require_rejected(tmp_path / "wrong", near(tmp_path), NEAR, "total < r2", "total <= r2")


def test_a_rounded_sum_is_judged_by_what_is_rounded(tmp_path: Path) -> None:
    require_passed(tmp_path / "right", gray(tmp_path), GRAY)
    require_rejected(tmp_path / "wrong", gray(tmp_path), GRAY, "tl.extra.libdevice.rint(0.114", "(0.114")
