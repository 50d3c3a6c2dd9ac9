"""Lengths at which a grid has stopped growing, of rehearsals that are made up; and what torch says of its functions."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import torch

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "python"), str(Path(__file__).resolve().parent)]

from checks import declared, tensor

from t2t_harness.cases import capped, cases, elementwise, literals, probe_lengths, probing, unusual, unusual_integers
from t2t_harness.judging import rules, tolerance

DIMS = {"M": 8, "N": 24}

PATH = ("kernel", "{}")


def of_blocks(most: int | None, block: int = 1024) -> capped.Programs:
    """Returns rehearsals of a kernel that has a program for each block of elements, at `most` so many."""

    def programs(case: cases.Case) -> dict[tuple[str, str], int]:
        blocks = -(-math.prod(case.binding.values()) // block)
        return {PATH: blocks if most is None else min(blocks, most)}

    return programs


def test_a_grid_that_stops_growing_has_cases_of_a_second_and_a_third_turn() -> None:
    op = declared("torch.sum", [tensor("input", ["M", "N"])], DIMS)
    few, many = (math.prod(lengths.values()) / 1024 for lengths in capped.lengths(op, of_blocks(128)))
    assert 128 < few < 2 * 128 < many < 3 * 128
    assert few % 1 and many % 1


def test_a_grid_that_grows_or_never_does_has_none() -> None:
    op = declared("torch.sum", [tensor("input", ["M", "N"])], DIMS)
    assert capped.lengths(op, of_blocks(None)) == []
    assert capped.lengths(op, of_blocks(1)) == []
    assert capped.lengths(op, lambda case: {PATH: 8}) == []


def test_a_wrapper_that_raises_where_it_is_rehearsed_has_none() -> None:
    def programs(case: cases.Case) -> dict[tuple[str, str], int]:
        raise ValueError

    assert capped.lengths(declared("torch.sum", [tensor("input", ["M", "N"])], DIMS), programs) == []


@pytest.mark.parametrize(
    ("written", "may"),
    [
        ("if out.numel() > 0:\n    kernel[(triton.cdiv(n, BLOCK),)](x, out, n)", False),
        ("if not x.is_cuda or x.dim() == 2:\n    raise ValueError", True),
        ("kernel[(min(triton.cdiv(n, BLOCK), 128),)](x, out, n)", True),
        ("grid = 128 if n > LIMIT else triton.cdiv(n, BLOCK)", True),
        ("blocks = triton.cdiv(n, BLOCK)\nif blocks > 65535:\n    blocks = 65535", True),
        ("for start in range(first, n, step):\n    tl.store(out + start, 1)", True),
        ("while start < n:\n    start += step", True),
    ],
)
def test_what_neither_loops_nor_chooses_has_a_grid_that_grows(tmp_path: Path, written: str, may: bool) -> None:
    (tmp_path / "kernel.py").write_text(written, encoding="utf-8")
    read = literals.files_of(tmp_path, tmp_path / "kernel.py")
    assert literals.may_stop_growing(list(read)) is may


def test_a_kernel_that_nobody_can_read_may_have_any_grid() -> None:
    assert literals.may_stop_growing([])


@pytest.mark.parametrize(
    ("name", "is_elementwise", "is_exact"),
    [
        ("torch.log1p", True, True),
        ("torch.Tensor.mul_", True, True),
        ("torch.Tensor.add_", True, False),
        ("torch.floor_divide", True, False),
        ("torch.nn.functional.gelu", True, False),
        ("torch.softmax", False, False),
        ("torch.no_such_name", False, False),
    ],
)
def test_torch_tells_which_functions_work_element_by_element(name: str, is_elementwise: bool, is_exact: bool) -> None:
    op = declared(name, [tensor("input", ["M"])], {"M": 4})
    assert (elementwise.is_elementwise(op), elementwise.is_exact(op)) == (is_elementwise, is_exact)


def test_numbers_that_an_input_may_hold_are_planted() -> None:
    given = tensor("input", ["M", "N"])
    op = declared("torch.histc", [given], DIMS, kwargs={"bins": 8, "min": -4, "max": 0.1, "wide": True})
    numbers = probing.numbers(op, given)
    assert set(numbers) == {8.0, -8.0, 4.0, -4.0, 0.0, 1.0, -1.0, 2.0, -2.0}
    made = unusual.planted(torch.randn(5, 19), numbers)
    assert all(number in made for number in numbers)
    narrow = {**given, "init": {"kind": "uniform", "low": 0.0, "high": 5.0}}
    assert set(probing.numbers(op, narrow)) == {4.0, 0.0, 1.0, 2.0, 5.0}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_extreme_values_are_finite_and_their_squares_are_not(dtype: torch.dtype) -> None:
    made = unusual.extreme(torch.randn(5, 19).to(dtype))
    assert bool(made.isfinite().all())
    assert not bool((made * made).isfinite().all())


def test_neighbouring_integers_differ_and_their_floats_do_not() -> None:
    drawn = (torch.arange(40) // 2).view(2, 20)
    made = unusual_integers.neighbours(drawn)
    assert made.unique().numel() == 8
    assert made.float().unique().numel() == 4
    assert bool((made < 0).any()) and bool((made > 0).any())


def test_a_small_element_is_held_to_its_own_size_where_that_is_asked() -> None:
    right = torch.tensor([[1e-4, 1.0]], dtype=torch.float64)
    plain = right.float()
    out = plain * torch.tensor([1 + 1e-3, 1.0])
    allowed = (1e-5, 1e-5)
    assert tolerance.compare(out, plain, right, allowed, whole=False).passed
    found = tolerance.compare(out, plain, right, allowed, whole=False, small=0.0)
    assert (found.passed, found.index) == (False, [0, 0])
    assert tolerance.compare(out, plain, right, allowed, whole=False, small=rules.TAIL * 2).passed
    near = plain * (1 + 4 * torch.finfo(torch.float32).eps)
    assert tolerance.compare(near, plain, right, allowed, whole=False, small=0.0).passed
    # torch's own result is not exact: nothing is asked.
    assert tolerance.compare(out, out, right, allowed, whole=False, small=0.0).passed
    assert tolerance.compare(plain * (1 + 2e-4), out, right, (1e-3, 1e-5), whole=False, small=0.0).passed


def test_lengths_above_a_product_of_constants_are_tried() -> None:
    import ast

    nodes = list(ast.walk(ast.parse("LONG = 16 * 1024\nif n <= LONG:\n    pass\nBLOCK = 4096\n")))
    assert literals.thresholds([nodes]) == {16384}
    op = declared("torch.sum", [tensor("input", ["M", "N"])], DIMS)
    found = probe_lengths.of_literals(op, [], literals.of_files([nodes]), "interpreter", 32768, compared={16384})
    (case,) = [case for case in found if case.binding["N"] == 16385]
    assert case.binding["M"] == 1
    assert case.has_own_budget


def test_a_threshold_that_no_float32_holds_is_planted_as_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text("def kept(scores, least=0.1, factor=0.3):\n    return scores >= least\n")
    reference = {"file": "reference.py", "name": "kept", "init": {}, "root": str(tmp_path)}
    own = {"least": 0.1, "factor": 0.3}
    op = declared("", [tensor("scores", ["N"])], {"N": 8}, torch=None, reference=reference, kwargs=own)
    numbers = probing.numbers(op, op["inputs"][0])
    assert float(torch.tensor(0.1)) in numbers and float(torch.tensor(0.3)) not in numbers
