"""Ops that take whole heads, windows or groups alone: cases have lengths that torch takes, and faults that only other ones show are found. Beside each the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, tensor

from t2t_harness.cases import bindings, probing
from t2t_harness.op import lengths
from t2t_harness.phases import analyze, traced

NORMS = '''"""Each head of a row, divided by its root mean square."""


def head_norm(x, heads):
    parts = x.view(x.shape[0], heads, x.shape[1] // heads)
    return (parts * (parts.square().mean(-1, keepdim=True) + 1e-3).rsqrt()).view(x.shape)
'''

NORM = """
@triton.jit
def kernel(x_ptr, out_ptr, C, width, sm, sn, BLOCK: tl.constexpr):
    row, head, cols = tl.program_id(0), tl.program_id(1), tl.arange(0, BLOCK)
    at = head * width + cols
    x = tl.load(x_ptr + row * sm + at * sn, mask=cols < width, other=0.0)
    tl.store(out_ptr + row * C + at, x * tl.rsqrt(tl.sum(x * x, 0) / width + 1e-3), mask=cols < width)


def wrapper(x, heads):
    T, C = x.shape
    if C % heads:
        raise ValueError("whole heads alone")
    out = torch.empty(T, C, dtype=x.dtype, device=x.device)
    if out.numel():
        width = C // heads
        kernel[(T, heads)](x, out, C, width, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(width))
    return out
"""


def of_heads(folder: Path, **more: Any) -> dict[str, Any]:
    """Returns the op of the reference, which is written into `folder`, as its analysis leaves it."""
    (folder / "reference.py").write_text(NORMS, encoding="utf-8")
    reference = {"file": "reference.py", "name": "head_norm", "init": {}, "root": str(folder)}
    op = declared(
        "", [tensor("x", ["T", "C"])], {"T": 6, "C": 32}, torch=None, reference=reference, kwargs={"heads": 4}, **more
    )
    return {**op, "lengths": analyze.lengths_of(traced.Tracer(op))}


def test_most_cases_of_whole_heads_are_judged(tmp_path: Path) -> None:
    op = of_heads(tmp_path)
    assert op["lengths"] == {"C": {"least": 4, "step": 4, "only": [], "divides": None, "within": None}}
    evidence = check(tmp_path, op, NORM)["evidence"]
    assert evidence["failure"] is None
    dropped = [row["name"] for row in evidence["cases"] if row["verdict"] == "dropped"]
    assert len(dropped) < len(evidence["cases"]) / 8, dropped
    assert any(row["name"].startswith("edge/transposed") for row in evidence["cases"] if row["verdict"] == "passed")


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("x_ptr + row * sm", "x_ptr + row * C"),
        ("head * width", "head * 8"),
        ("mask=cols < width, other=0.0", "mask=cols < tl.minimum(width, 64), other=0.0"),
    ],
)
def test_a_fault_at_other_whole_heads_is_seen(tmp_path: Path, written: str, instead: str) -> None:
    evidence = check(tmp_path, of_heads(tmp_path), NORM.replace(written, instead))["evidence"]
    assert evidence["failure"] is not None


def test_cases_have_lengths_that_are_taken() -> None:
    taken = {
        "C": {"least": 3, "step": 1, "only": [], "divides": None, "within": None},
        "K": {"least": 1, "step": 1, "only": [1, 2, 4], "divides": "H", "within": None},
        "P": {"least": 1, "step": 1, "only": [1, 2, 4, 8], "divides": None, "within": None},
    }
    binding = {"C": 1, "H": 3, "K": 2, "P": 5}
    assert lengths.fitted(taken, binding) == {"C": 3, "H": 4, "K": 2, "P": 8}
    assert lengths.fitted(taken, {"H": 5, "K": 5}) == {"H": 10, "K": 5}
    assert lengths.fitted(taken, {"H": 5, "K": 1}) == {"H": 5, "K": 1}
    assert lengths.fitted(taken, {"C": 0, "P": 100}) == {"C": 0, "P": 8}
    op = declared("torch.add", [tensor("x", ["C", "H"])], {"C": 9, "H": 5}, lengths=taken)
    assert probing.bound(op, {}, 1) == {"C": 3, "H": 1}
    assert bindings.taken({**op, "check_sizes": {"small": {"C": 2, "H": 5}}}).keys() == {"K"}


@pytest.mark.parametrize(
    ("accepts", "found"),
    [
        (lambda at: True, {}),
        (lambda at: at["N"] >= 5, {"N": {"least": 5, "step": 1, "only": [], "divides": None, "within": None}}),
        (lambda at: at["N"] % 6 == 0, {"N": {"least": 6, "step": 6, "only": [], "divides": None, "within": None}}),
        (lambda at: at["N"] % 2 == 1, {"N": {"least": 1, "step": 2, "only": [], "divides": None, "within": None}}),
        (lambda at: False, {}),
    ],
)
def test_lengths_that_are_evenly_apart(accepts: Any, found: dict[str, Any]) -> None:
    known = {"M": 7, "N": 12} if accepts({"N": 12}) else {"M": 7, "N": 13}
    assert lengths.taken([known], accepts) == found


def test_divisors_of_another_dim_and_powers_of_two_are_told_apart() -> None:
    of_heads = lengths.taken([{"H": 8, "K": 2, "N": 3}], lambda at: at["H"] % at["K"] == 0)
    assert of_heads.keys() == {"K"}
    assert of_heads["K"] == {"least": 1, "step": 1, "only": [1, 2, 4, 8], "divides": "H", "within": None}
    powers = lengths.taken([{"N": 64}], lambda at: at["N"] & (at["N"] - 1) == 0)
    assert powers["N"]["only"] == [1, 2, 4, 8, 16, 32, 64, 128, 256]


def test_a_window_is_within_its_image() -> None:
    found = lengths.taken([{"H": 9, "K": 3, "C": 2}], lambda at: at["K"] <= at["H"])
    assert found["K"] == {"least": 1, "step": 1, "only": [], "divides": None, "within": "H"}
    assert found["H"] == {"least": 3, "step": 1, "only": [], "divides": None, "within": None}
    assert lengths.fitted(found, {"H": 2, "K": 19, "C": 2}) == {"H": 20, "K": 19, "C": 2}


def test_torch_is_asked_so_often_and_no_more() -> None:
    asked = []

    def accepts(at: Any) -> bool:
        asked.append(at)
        return at["a0"] == 40 or at["a0"] % 7 == 3

    lengths.taken([{f"a{place}": 40 for place in range(300)}], accepts)
    assert len(asked) <= lengths.ASKED + 1
