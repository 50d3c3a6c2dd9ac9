"""What is declared of inputs holds in all cases and in timed calls; and what a check takes from a reference as it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks import NORMAL, check, declared, tensor

from t2t_harness.cases import bindings, cases, inputs, seeds
from t2t_harness.cases.cases import Case
from t2t_harness.judging import oracle, origin, widening
from t2t_harness.measuring import timing
from t2t_harness.phases import measured, sample

OFFSETS = {"kind": "sorted", "of": {"kind": "randint", "low": 0, "high": "T + 1"}}


@pytest.mark.parametrize(
    ("init", "holds"),
    [
        (OFFSETS, lambda value: bool((value.diff() >= 0).all())),
        ({"kind": "triangular", "side": "lower"}, lambda value: bool(value.triu(1).eq(0).all())),
    ],
    ids=["sorted", "triangular"],
)
def test_what_has_an_order_has_it_in_every_run(init: dict[str, Any], holds: Any) -> None:
    is_whole = init["kind"] == "sorted"
    given = tensor("a", ["T"] if is_whole else ["T", "T"], init=init, dtype="int64" if is_whole else None)
    op = declared("torch.neg", [given, tensor("x", ["T"])], {"T": 32})
    case = Case("small/float32", "declared", "float32", {"T": 32})
    buffers = timing.buffers_of(op, case, "cpu")
    for run in range(3):
        buffers.refill(run)
        again = timing.run_inputs(op, case, buffers.state())
        assert holds(buffers.given["a"]) and all(again[name].equal(buffers.given[name]) for name in again)
    # What is drawn at random is at other places.
    assert not buffers.given["x"].equal(buffers.originals["x"])


@pytest.mark.parametrize("values", ["zeros", "zero", "denormal", "offset", "small", "cancelling"])
def test_what_is_never_zero_is_never_near_it(values: str) -> None:
    given = tensor("x", ["M", "N"], init={"kind": "uniform", "low": 0.5, "high": 2.0})
    case = Case("edge/x", "edge", "float32", {"M": 5, "N": 19}, values=values, of="x")
    op = declared("", [given], {"M": 5, "N": 19}, torch=None, reference={"file": "r.py", "name": "r", "init": {}})
    made = inputs.make_inputs(op, case)["x"]
    assert 0.5 <= float(made.min()) <= float(made.max()) <= 2.0
    # What torch's functions are drawn for says nothing of what they take.
    op = declared("torch.exp", [given], {"M": 5, "N": 19})
    assert not 0.5 <= float(inputs.make_inputs(op, case)["x"].abs().min()) <= 2.0 or values == "offset"


@pytest.mark.parametrize("values", ["below", "zeros", "offset", "large", "cancelling"])
def test_what_is_never_negative_is_not_so_in_any_case(values: str) -> None:
    reference = {"file": "r.py", "name": "r", "init": {}}
    case = Case("edge/x", "edge", "float32", {"M": 5, "N": 19}, values=values, of="x")
    least: dict[float, float] = {}
    for low in (0.0, -1.0):
        given = tensor("x", ["M", "N"], init={"kind": "uniform", "low": low, "high": 1.0})
        op = declared("", [given], {"M": 5, "N": 19}, torch=None, reference=reference)
        least[low] = float(inputs.make_inputs(op, case)["x"].min())
    assert least[0.0] >= 0.0
    # Where numbers of both signs are drawn, the range is where they are drawn, and no promise.
    assert values not in ("below", "cancelling") or least[-1.0] < 0.0


@pytest.mark.parametrize("values", ["special", "infinite-rows", "late", "masked"])
def test_infinities_have_the_one_sign_that_is_declared(values: str) -> None:
    reference = {"file": "r.py", "name": "r", "init": {}}
    case = Case("edge/x", "edge", "float32", {"M": 9, "N": 19}, values=values, of="x")
    signs = {}
    for low, high in ((-2.0, 0.0), (0.5, 2.0), (-1.0, 1.0)):
        given = tensor("x", ["M", "N"], init={"kind": "uniform", "low": low, "high": high})
        op = declared("", [given], {"M": 9, "N": 19}, torch=None, reference=reference)
        made = inputs.make_inputs(op, case)["x"]
        signs[low] = set(made[made.isinf()].sign().tolist())
    assert (signs[-2.0], signs[0.5]) == ({-1.0}, {1.0})
    assert signs[-1.0] == ({-1.0} if values == "masked" else {-1.0, 1.0})


def test_torch_that_refuses_the_inputs_of_a_timed_call_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise oracle.Refused("torch refuses: IndexError: index 7 is out of bounds")

    facts = {"size": "large", "case": {}, "samples": [{"state": {"run": 0}}], "untimed": True}
    monkeypatch.setattr(measured, "figures", lambda *_: None)
    monkeypatch.setattr(timing, "timed_cases", lambda _: ["large"])
    monkeypatch.setattr(sample, "kept_facts", lambda _: [facts])
    monkeypatch.setattr(cases, "from_facts", lambda _: None)
    monkeypatch.setattr(sample, "wrong", refuse)
    reply = sample.judge_sample({"sample": str(tmp_path), "bench": {}, "root": str(tmp_path), "lane": "interpreter"})
    failure = reply["documents"]["failure"]
    assert failure["class"] == "exception"
    assert failure["message"].startswith("torch refuses the inputs of a timed call, which an `init` draws: ")
    assert "index 7 is out of bounds" in failure["message"]


def test_those_that_ops_yaml_has_ask_for_a_gradient_are_all_that_do() -> None:
    plain, asking = tensor("x", ["N"]), tensor("y", ["N"], requires_grad=True)
    case = Case("small/float32/0", "declared", "float32", {"N": 4})
    assert cases.asking(declared("", [plain, asking], {"N": 4}), case) == ("y",)
    assert cases.asking(declared("", [plain], {"N": 4}), case) == ()
    alone = Case("edge/gradients[x]/float32", "edge", "float32", {"N": 4}, asks=("x",))
    assert cases.asking(declared("", [plain, asking], {"N": 4}), alone) == ("x",)


def test_the_dim_that_is_empty_is_the_first_one_that_inputs_name() -> None:
    op = declared("torch.exp", [tensor("x", ["T", "D"])], {"D": 4, "T": 3})
    assert bindings.emptied(op, ["D", "T"]) == "T"


def test_a_wrapper_may_draw_its_seed_by_pythons_generator() -> None:
    import random

    op: dict[str, Any] = declared("", [], {}, random={"kind": "dropout", "p": 0.5, "seed": None})
    drawn = []
    for seed in (1, 1, 2):
        seeds.seeded(op, {}, seed)
        drawn.append(random.random())
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("kind", "value", "is_needless"), [("edge", 0.0, True), ("edge", 1.0, False), ("declared", 0.0, False)]
)
def test_a_result_of_zeros_needs_no_launch_in_an_edge(kind: str, value: float, is_needless: bool) -> None:
    case = Case("x", kind, "float32", {})
    right = oracle.Reference({"0": torch.full((3,), value)}, None)
    assert origin.needs_no_launch(case, {"x": torch.ones(3)}, right) is is_needless


def test_an_oracle_is_of_float64_where_the_reference_asks_for_float32() -> None:
    x = torch.ones(2, dtype=torch.float64)
    with widening.in_float64():
        made = [x.float(), x.to(torch.float32), x.to(dtype=torch.float32), torch.zeros(2, dtype=torch.float32)]
        kept = [x.to(torch.bfloat16), x.int(), x.view(torch.float32)]
    assert [one.dtype for one in made] == [torch.float64] * 4
    assert [one.dtype for one in kept] == [torch.bfloat16, torch.int32, torch.float32]


NORMALIZED = """
import torch

def normalized(x):
    wide = x.float()
    return ((wide - wide.mean(-1, keepdim=True)) * wide.var(-1, keepdim=True, correction=0).add(1e-5).rsqrt()).to(x.dtype)
"""


def test_a_reference_that_computes_in_float32_has_an_oracle_of_float64(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(NORMALIZED, encoding="utf-8")
    reference = {"file": "reference.py", "name": "normalized", "init": {}, "root": str(tmp_path)}
    given = tensor("x", ["M", "N"], init={**NORMAL, "mean": 100.0})
    op: Any = declared("", [given], {"M": 16, "N": 50}, torch=None, reference=reference)
    case = Case("small/float32/0", "declared", "float32", {"M": 16, "N": 50})
    made = inputs.make_inputs(op, case)
    right, wide = oracle.reference(op, case, made), made["x"].double()
    assert right.oracle is not None
    exact = (wide - wide.mean(-1, keepdim=True)) / (wide.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
    torch.testing.assert_close(right.oracle["0"], exact, atol=1e-12, rtol=1e-12)
    assert float((right.plain["0"] - exact).abs().max()) > 1e-7


IN_PLACE = """
@triton.jit
def kernel(x_ptr, y_ptr, n, sx, sy, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * sx, mask=i < n) + tl.load(y_ptr + i * sy, mask=i < n)
    tl.store(x_ptr + i * sx, x, mask=i < n)

def wrapper(x, y):
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), x.stride(0), y.stride(0), BLOCK=16)
"""


@pytest.mark.parametrize(
    ("written", "instead", "class_"),
    [("", "", None), ("y, x.numel()", "x, x.numel()", "mismatch"), ("    if x", "    return x\n    if x", "type")],
    ids=["right", "wrong", "returns it"],
)
def test_an_op_in_place_may_return_nothing(tmp_path: Path, written: str, instead: str, class_: str | None) -> None:
    (tmp_path / "reference.py").write_text("def added(x, y):\n    x.add_(y)\n", encoding="utf-8")
    reference = {"file": "reference.py", "name": "added", "init": {}, "root": str(tmp_path)}
    inputs_ = [tensor("x", ["N"]), tensor("y", ["N"])]
    op = declared("", inputs_, {"N": 24}, torch=None, reference=reference, mutates=["x"])
    assert written in IN_PLACE
    documents = check(tmp_path, op, IN_PLACE.replace(written, instead, 1) if written else IN_PLACE)
    assert documents["verdict"]["class"] == class_, documents["evidence"]["failure"]
