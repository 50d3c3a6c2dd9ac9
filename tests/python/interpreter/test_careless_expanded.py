"""A kernel that takes its result's strides from an input is rejected where `expand` made that; the honest kernel passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, require_passed, tensor

from t2t_harness.cases import cases, declared_inputs, inputs
from t2t_harness.judging import oracle

SQRT = """
@triton.jit
def kernel(x_ptr, out_ptr, N, xm, xn, om, on, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + row * xm + at * xn, mask=at < N, other=0.0)
        tl.store(out_ptr + row * om + at * on, tl.sqrt(x), mask=at < N)


def wrapper(input):
    x = input
    out = torch.empty_like(x)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), *out.stride(), BLOCK=128)
    return out
"""


def equal(**more: Any) -> tuple[Any, cases.Case]:
    """Returns an op of a matrix and its case of equal rows."""
    op: Any = declared("torch.sqrt", [tensor("input", ["M", "N"])], {"M": 8, "N": 24}, **more)
    return op, next(case for case in cases.fixed_edges(op) if case.values == "equal-rows")


def test_a_result_as_its_input_lies_is_rejected(tmp_path: Path) -> None:
    op, case = equal()
    require_passed(tmp_path / "right", op, SQRT)
    documents = check(tmp_path / "wrong", op, SQRT.replace("empty_like(x)", "empty_strided(x.shape, x.stride())"))
    failure = documents["evidence"]["failure"]
    assert failure is not None and (failure["class"], failure["case"]) == ("shape", case.name)


def test_equal_rows_are_expanded() -> None:
    op, case = equal()
    (made,) = inputs.make_inputs(op, case).values()
    assert made.stride() == (1, 0) and bool((made == made[:, :1]).all())
    (copied,) = oracle.copies({"input": made}).values()
    assert copied.stride() == (1, 0) and copied.equal(made)


@pytest.mark.parametrize(
    "more", [{"mutates": ["input"]}, {"edges": {"strided": "dense rows alone"}}], ids=["written to", "dense"]
)
def test_equal_rows_are_dense_where_they_have_to_be(more: dict[str, Any]) -> None:
    op, case = equal(**more)
    (made,) = inputs.make_inputs(op, case).values()
    assert made.is_contiguous() and bool((made == made[:, :1]).all())


def test_a_tensor_is_filled_once() -> None:
    target = torch.zeros(3).as_strided((2, 3, 4), (0, 1, 0))
    values = torch.arange(3.0)[None, :, None].expand(2, 3, 4)
    assert declared_inputs.filled(target, values).equal(values)
