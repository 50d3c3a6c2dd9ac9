"""Holds what decides beside torch's result on the judge's device: whether torch takes a case on the CPU at all, and results that are right there alone. No kernel runs, and no device is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from t2t_harness.cases import cases, inputs
from t2t_harness.judging import autograd, comparing, corners, lint, oracle, otherwise, taken
from t2t_harness.server import ready

NAN, INF = float("nan"), float("inf")


def declaration(torch_name: str, inputs_: dict[str, dict[str, Any]], **fields: Any) -> Any:
    """Returns the declaration of an op like the one that the server rehearses, of another function."""
    common = {"dtype": None, "layout": "contiguous", "init": {"kind": "normal", "mean": 0.0, "std": 1.0}}
    listed = [{"name": name, **common, **told} for name, told in inputs_.items()]
    sizes = {"small": {"M": 4, "N": 8, "K": 3}}
    told = {"torch": torch_name, "inputs": listed, "sizes": sizes, "check_sizes": sizes, "kwargs": {}}
    return {**ready.DECLARATION, **told, **fields}


def select() -> Any:
    index = {"shape": ["K"], "dtype": "int64", "init": {"kind": "randint", "low": 0, "high": "N"}}
    return declaration("torch.index_select", {"input": {"shape": ["M", "N"]}, "index": index}, kwargs={"dim": 1})


def edge(op: Any, **fields: Any) -> cases.Case:
    """Returns a declared case of `op` as an edge one."""
    return replace(cases.declared_cases(op)[0], kind="edge", **fields)


def test_an_index_out_of_range_is_refused_before_a_device_sees_it() -> None:
    op = select()
    case = edge(op)
    given = inputs.make_inputs(op, case)
    assert taken.shapes_of(op, case, given) == {"0": (4, 3)}
    given["index"][1] = 8
    with pytest.raises(oracle.Refused, match="INDICES|index"):
        taken.shapes_of(op, case, given)
    # What is declared was taken when the op was analyzed.
    assert taken.shapes_of(op, replace(case, kind="declared"), given) is None


def test_a_probability_out_of_range_is_refused_and_a_type_that_the_cpu_lacks_is_not() -> None:
    place = {"shape": ["M", "N"], "init": {"kind": "uniform", "low": 0.1, "high": 0.9}}
    op = declaration("torch.nn.functional.binary_cross_entropy", {"input": place, "target": place})
    case = edge(op, values="special")
    given = {name: torch.full((4, 8), 0.5) for name in ("input", "target")}
    assert taken.shapes_of(op, case, given) == {"0": ()}
    given["input"][0, 0] = 1.5
    with pytest.raises(oracle.Refused, match="between 0 and 1"):
        taken.shapes_of(op, case, given)
    # LAPACK has no float16: float64 answers for it.
    inverse = declaration("torch.linalg.inv", {"A": {"shape": ["N", "N"]}}, dtypes=["float16"])
    half = edge(inverse, values="special")
    assert taken.shapes_of(inverse, half, {"A": torch.eye(8, dtype=torch.float16)}) == {"0": (8, 8)}


def test_an_op_that_the_cpu_never_takes_is_asked_of_the_device_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    op = select()
    given = inputs.make_inputs(op, edge(op))

    def refuses(*_: object) -> oracle.Reference:
        raise oracle.Refused("there is no such kernel here")

    monkeypatch.setattr(taken, "at_home", refuses)
    assert taken.shapes_of({**op, "seeds": 2}, edge(op), given) is None


def test_cases_of_declared_floats_are_not_asked_for() -> None:
    op = declaration("torch.nn.functional.softmax", {"input": {"shape": ["M", "N"]}}, kwargs={"dim": -1})
    assert not taken.is_unusual(op, edge(op))
    assert taken.is_unusual(op, edge(op, values="special"))
    assert taken.is_unusual(op, replace(edge(op), binding={"M": 0, "N": 8, "K": 3}))
    assert taken.is_unusual(select(), edge(select()))
    # An argument may be a length, into which indices point.
    assert taken.is_unusual(op, edge(op, kwargs={"dim": 0}))
    # Values as they are declared may point beyond what is shorter, and long cases take the CPU long.
    long = replace(edge(op, values="ends"), binding={"M": 4, "N": 8193, "K": 3})
    assert not taken.is_unusual(op, long)
    assert taken.is_unusual(op, replace(long, binding={"M": 2, "N": 8193, "K": 3}))


@pytest.mark.parametrize(
    ("made", "right", "counts"),
    [(0.0, 1.5, True), (NAN, 1.5, True), (0.0, NAN, False), (2.0, 1.5, False), (1.5, 1.5, False)],
)
def test_at_nan_a_gradient_may_be_zero_where_torch_has_a_number(made: float, right: float, counts: bool) -> None:
    given, out = torch.tensor([NAN, 1.0]), torch.tensor([made, 0.0])
    judged = comparing.Judged({"x": given}, {"grad.x": torch.tensor([right, 3.0])}, {"grad.x": out})
    found = corners.but_at_nan(judged, "grad.x").made["grad.x"]
    # Where the input is a number nothing is let pass.
    assert found[1] == 0.0
    assert found[0] == (right if counts else made)


def test_the_other_results_of_a_mean_beside_a_variance_are_the_cpus_and_that_of_sums() -> None:
    op = declaration("torch.std_mean", {"input": {"shape": ["M", "N"]}}, kwargs={"dim": -1})
    value = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    value[0, 0], value[1, 7] = -INF, INF
    means = [found.plain["1"] for found in otherwise.references(op, edge(op), {"input": value}, "cuda:0")]
    # From the first element on an infinity leaves NaN, as the last one it stays.
    assert [mean.tolist()[1] for mean in means[:2]] == [INF, INF]
    assert means[0][0].isnan() and means[1][0] == -INF


def test_gradients_flow_in_on_the_cpu_as_they_are_drawn_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    op = declaration("torch.nn.functional.relu6", {"input": {"shape": ["M", "N"]}}, backward=True)
    case = edge(op)
    given = {"input": torch.full((4, 8), 3.0)}
    drawn_of: list[torch.Tensor] = []

    def drawn(outputs: Any, _: cases.Case) -> dict[int, torch.Tensor]:
        drawn_of.extend(outputs)
        return {0: torch.full((4, 8), 0.25)}

    monkeypatch.setattr(autograd, "upstream_gradients", drawn)
    (found, *_) = otherwise.references(op, case, given, "meta")
    # Once in the dtype, and once in float64.
    assert [(one.device.type, one.dtype, one.requires_grad) for one in drawn_of[:2]] == [
        ("meta", torch.float32, True),
        ("meta", torch.float64, True),
    ]
    assert found.plain["grad.input"].equal(torch.full((4, 8), 0.25))


def test_on_a_device_small_edge_cases_alone_are_asked_of_the_cpu_too() -> None:
    op = declaration("torch.nn.functional.relu6", {"input": {"shape": ["M", "N"]}})
    small, large = edge(op), edge(op, binding={"M": 65536, "N": 65536, "K": 1})
    assert otherwise.is_asked(op, small, "mismatch", "cuda") and not otherwise.is_asked(op, large, "mismatch", "cuda")
    assert not otherwise.is_asked(op, small, "mismatch", "cpu")
    assert not otherwise.is_asked(op, cases.declared_cases(op)[0], "mismatch", "cuda")
    assert otherwise.is_asked(op, edge(op, values="special"), "nan", "cpu")


@pytest.mark.parametrize(
    ("kwargs", "dtype", "judged_by"),
    [
        ({"dtype": "torch.float16"}, "float32", "float16"),
        ({"dtype": "torch.float64"}, "float32", "float32"),
        ({"dtype": "torch.int64"}, "float32", "float32"),
        ({"dim": 0}, "bfloat16", "bfloat16"),
        (None, "int64", "int64"),
    ],
)
def test_what_is_computed_in_fewer_bits_is_judged_by_them(
    kwargs: dict[str, object] | None, dtype: str, judged_by: str
) -> None:
    assert comparing.narrowest(cases.Case("edge/x", "edge", dtype, {"N": 4}, kwargs=kwargs)) == judged_by


def rejected_by(difference: float) -> Any:
    """Returns what rejects a result that is off by more than `difference`, of 1."""
    return lambda _, wrong: bool((wrong.double() - 1).abs().max() > difference)


@pytest.mark.parametrize(
    ("size", "difference_of_floats", "unfit"),
    [((), 1e-6, []), ((), 1.0, ["previous (float32)", "previous (bfloat16)"]), ((4,), 1e-6, ["previous (bfloat16)"])],
)
def test_one_element_of_another_case_may_pass_in_bfloat16_where_float32_rejects_it(
    size: tuple[int, ...], difference_of_floats: float, unfit: list[str]
) -> None:
    found = lint.Lint()
    for dtype, difference in (("float32", difference_of_floats), ("bfloat16", 1e-2)):
        right = torch.ones(size, dtype=getattr(torch, dtype))
        previous = right + torch.tensor(0.0078125, dtype=right.dtype)
        found.judge("small", dtype, right, None, previous, rejected_by(difference), (lint.OF_OTHERS,))
    assert found.unfit() == unfit
