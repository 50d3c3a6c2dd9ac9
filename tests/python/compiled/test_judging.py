"""Holds the comparison rules, the lint's mutants and the cases against values worked out by hand. No kernel runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from t2t_harness.cases import block_edges, cases, inputs
from t2t_harness.cases.declared_inputs import laid_out
from t2t_harness.cases.inputs import make_inputs
from t2t_harness.judging import findings, lint, oracle, progress, tolerance
from t2t_harness.judging.trial import Trial
from t2t_harness.phases import judge
from t2t_harness.server import ready

TIGHT = (1e-5, 1e-5)
INF, NAN = float("inf"), float("nan")


def compared(out: torch.Tensor, plain: torch.Tensor, oracle: torch.Tensor, whole: bool = True) -> tolerance.Comparison:
    return tolerance.compare(out, plain, oracle, TIGHT, whole=whole)


def test_the_bytes_of_one_strided_element_are_read() -> None:
    lone = torch.arange(4.0).reshape(1, 4)[:, ::2][:, 1:]
    assert lone.shape == (1, 1) and lone.stride(1) == 2
    assert findings.raw_bytes(lone).tolist() == [list(torch.tensor([2.0]).numpy().tobytes())]


def test_a_result_more_accurate_than_torch_passes_by_the_oracle() -> None:
    oracle = torch.full((4, 4), 100.0, dtype=torch.float64)
    plain = (oracle + 0.01).float()
    found = compared((oracle - 0.015).float(), plain, oracle)
    assert (found.passed, found.rule) == (True, "oracle")
    assert not compared((oracle - 0.025).float(), plain, oracle).passed


def test_the_bound_of_one_row_is_not_that_of_another() -> None:
    oracle = torch.ones(3, 4, dtype=torch.float64)
    plain = oracle.float().clone()
    plain[0] += 0.5
    out = plain.clone()
    out[2] += 0.5
    found = compared(out, plain, oracle, whole=False)
    assert (found.class_, found.bad, found.index, found.got, found.expected) == ("mismatch", 4, [2, 0], 1.5, 1.0)


@pytest.mark.parametrize(("value", "passes"), [(INF, True), (6e4, True), (NAN, False), (-INF, False)])
def test_where_torch_and_the_oracle_disagree_on_finiteness_either_is_right(value: float, passes: bool) -> None:
    oracle = torch.tensor([[6e4, 1.0]], dtype=torch.float64)
    plain = torch.tensor([[INF, 1.0]])
    assert compared(torch.tensor([[value, 1.0]]), plain, oracle).passed is passes


def test_nan_in_another_place_has_the_class_nan() -> None:
    right = torch.tensor([[NAN, 1.0]])
    assert compared(right, right, right.double()).passed
    found = compared(torch.tensor([[1.0, NAN]]), right, right.double())
    assert (found.class_, found.bad) == ("nan", 2)


def test_zeros_below_the_absolute_tolerance_are_rejected() -> None:
    oracle = torch.full((16, 16), 1e-6, dtype=torch.float64)
    found = compared(torch.zeros(16, 16), oracle.float(), oracle)
    assert not found.passed and "relative error" in str(found.message)


@pytest.mark.parametrize("name", lint.MUTANTS)
def test_every_mutant_of_a_softmax_is_rejected(name: str) -> None:
    given = torch.randn(8, 64, generator=torch.Generator().manual_seed(0))
    right, oracle = given.softmax(-1), given.double().softmax(-1)
    wrong = lint.mutant(name, right, given, given.flip(0).softmax(-1))
    assert wrong is not None and not compared(wrong, right, oracle).passed


def test_integers_must_be_equal() -> None:
    right = torch.arange(6).reshape(2, 3)
    assert tolerance.compare(right, right, None, TIGHT, whole=True).passed
    found = tolerance.compare(right + (right == 4), right, None, TIGHT, whole=True)
    assert (found.bad, found.index, found.got, found.expected) == (1, [1, 1], 5.0, 4.0)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0)])
def test_results_without_rows_are_compared(shape: tuple[int, ...]) -> None:
    right = torch.ones(shape)
    assert compared(right, right, right.double()).passed


def declaration() -> dict[str, Any]:
    init = {"kind": "normal", "mean": 0.0, "std": 1.0}
    shared = {"dtype": None, "init": init, "requires_grad": False, "layout": "contiguous"}
    return {
        "inputs": [{"name": "a", "shape": ["M", "K"], **shared}, {"name": "b", "shape": ["K", 64], **shared}],
        "dtypes": ["float32", "float16"],
        "sizes": {"small": {"M": 8, "K": 8}, "large": {"M": 64, "K": 64}},
        "check_sizes": {"small": {"M": 8, "K": 8}},
        "seeds": 2,
        "broadcast": False,
    }


def test_block_edges_show_each_dim_all_four_lengths() -> None:
    edges = [
        case
        for case in block_edges.length_edges(declaration(), {"BLOCK_M": 16, "BLOCK_SIZE_K": 32})
        if case.dtype == "float32"
    ]
    assert {case.binding["M"] for case in edges} == {15, 16, 17, 41}
    assert {case.binding["K"] for case in edges} == {31, 32, 33, 81}
    assert len(edges) == 4 and len(cases.fixed_edges(declaration())) + len(edges) <= cases.EDGES + 1


def test_the_inputs_of_a_case_are_the_same_bits_every_time() -> None:
    first, second = cases.declared_cases(declaration())[:2]
    once, again = make_inputs(declaration(), first), make_inputs(declaration(), first)
    assert all(once[name].equal(again[name]) for name in once)
    assert not once["a"].equal(make_inputs(declaration(), second)["a"])


def test_memory_between_strided_elements_holds_nan() -> None:
    laid = laid_out(torch.ones(2, 3), [6, 2], "cpu")
    assert laid.equal(torch.ones(2, 3)) and laid.as_strided((1,), (1,), 1).isnan().all()


@pytest.fixture
def compares(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """Returns what is compared with right results from now on."""
    found: list[torch.Tensor] = []
    compare = tolerance.compare

    def counting(out: torch.Tensor, *args: Any, **kwargs: Any) -> tolerance.Comparison:
        found.append(out)
        return compare(out, *args, **kwargs)

    monkeypatch.setattr(tolerance, "compare", counting)
    return found


def trial_of(deterministic: bool = True) -> Trial:
    """Returns a check that has just begun."""
    return Trial(
        {"op": ready.DECLARATION, "variant": {"deterministic": deterministic}, "lane": "interpreter"},
        progress.Progress(),
    )


def case_of() -> tuple[cases.Case, dict[str, torch.Tensor], oracle.Reference]:
    """Returns a case, its inputs and what is right for it."""
    case = cases.declared_cases(ready.DECLARATION)[0]
    given = inputs.make_inputs(ready.DECLARATION, case)
    return case, given, oracle.reference(ready.DECLARATION, case, given)


def test_a_case_that_is_judged_again_is_not_asked_again_which_mutants_it_rejects(compares: list[torch.Tensor]) -> None:
    case, given, right = case_of()
    first, again, fresh = trial_of(), trial_of(), trial_of()
    judge.lint_case(first, case, given, right)
    asked = len(compares)
    judge.lint_case(again, case, given, right)
    assert asked > 3 and len(compares) == asked
    assert (again.lint.rejected, again.lint.differs) == (first.lint.rejected, first.lint.differs)
    # What is made of the case before is another mutant in each check.
    fresh.previous = {("float32", "0", tuple(right.plain["0"].shape)): right.plain["0"] + 1}
    judge.lint_case(fresh, case, given, right)
    again.previous = {("float32", "0", tuple(right.plain["0"].shape)): right.plain["0"].nextafter(torch.tensor(2.0))}
    again.lint = lint.Lint()
    judge.lint_case(again, case, given, right)
    assert len(compares) == asked + 2
    assert (bool(fresh.lint.rejected["float32", "previous"]), again.lint.rejected["float32", "previous"]) == (True, [])


@pytest.mark.parametrize(
    ("change", "compared_times", "class_"), [(0.0, 1, None), (1e-7, 2, None), (1.0, 2, "mismatch")]
)
def test_a_run_with_the_bits_of_the_first_is_not_compared_again(
    compares: list[torch.Tensor], change: float, compared_times: int, class_: str | None
) -> None:
    case, given, right = case_of()
    out = right.plain["0"]
    tensors = {"a.0": out.clone(), "b.0": out + change} | {f"a.after.{name}": value for name, value in given.items()}
    described = {
        "plain": True,
        "type": "Tensor",
        "shape": list(out.shape),
        "dtype": "float32",
        "device": "cpu",
        "launched": True,
    }
    run = {"form": "tensor", "numbers": [], "outputs": {"0": described}, "computed": {}, "launches": 1, "configs": []}
    found = findings.find_in(trial_of(False), case, judge.blank_row(case), {"a": run, "b": run}, tensors, given, right)
    assert (len(compares), found and found.class_) == (compared_times, class_)
