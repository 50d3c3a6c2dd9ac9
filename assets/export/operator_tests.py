"""Each operator by torch's own rules for operators: `opcheck`, and compiled without a break of the graph it gives what it gives eagerly."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from test_ops import (
    PACKAGE,
    TOLD,
    WITH_GRADIENTS,
    Case,
    cases,
    copied,
    declared,
    drawn,
    exported,
    gradients,
    leaves,
    smallest,
)
from test_ops import results as listed

COMPILED = {"fullgraph": True, "backend": "aot_eager"}
"""As `torch.compile` is called: a break of the graph is an error, and no compiler is needed."""


SMALLEST = [case for case in cases() if case.size == smallest(declared(case.op)) and case.seed == 0]
"""What is held here depends on no values: a case of each op and dtype is enough, and one for each input that may be left out."""


def arguments(case: Case, given: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the arguments of an operator: those of the function, all by position."""
    bound = inspect.signature(exported(case)).bind(**given)
    bound.apply_defaults()
    return tuple(bound.arguments.values())


def assert_same(case: Case, got: list[torch.Tensor], eager: list[torch.Tensor]) -> None:
    """Holds compiled results to eager ones within the declared tolerance: a kernel that adds atomically gives other last digits each time."""
    for one, other in zip(got, eager, strict=True):
        atol, rtol = declared(case.op)["tolerances"].get(str(other.dtype).removeprefix("torch."), [0.0, 0.0])
        torch.testing.assert_close(one, other, atol=atol, rtol=rtol, equal_nan=True)


@pytest.mark.parametrize("case", SMALLEST, ids=lambda case: case.name)
def test_torch_finds_no_fault_with_the_operator(case: Case) -> None:
    given = copied(drawn(case))
    if declared(case.op)["backward"]:
        leaves(case, given)
    operator = getattr(getattr(torch.ops, PACKAGE.__name__), TOLD["ops"][case.op]["function"]).default
    torch.library.opcheck(operator, arguments(case, given))
    # It compares no strides, by which compiled code reads: fake results are contiguous.
    assert all(one.is_contiguous() for one in listed(operator(*arguments(case, given))))


@pytest.mark.parametrize("case", SMALLEST, ids=lambda case: case.name)
def test_compiled_gives_the_same_values(case: Case) -> None:
    torch.compiler.reset()
    given = drawn(case)
    got = listed(torch.compile(exported(case), **COMPILED)(**copied(given)))
    assert_same(case, got, listed(exported(case)(**copied(given))))


@pytest.mark.parametrize("case", [case for case in SMALLEST if case in WITH_GRADIENTS], ids=lambda case: case.name)
def test_compiled_gives_the_same_gradients(case: Case) -> None:
    torch.compiler.reset()
    given = drawn(case)
    got = gradients(torch.compile(exported(case), **COMPILED), case, copied(given))
    assert_same(case, got, gradients(exported(case), case, copied(given)))
