"""Kernels that are wrong where special numbers meet, for integers and magnitudes that a narrower type does not hold, and for small results. Each has one line wrong and is rejected on the interpreter; the kernel without it passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, require_passed, require_rejected, tensor

from t2t_harness.cases import cases, probe_values, unusual

TWO = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1)
    y = tl.load(y_ptr + at, mask=at < n, other=1)
    tl.store(out_ptr + at, {formula}, mask=at < n)


def wrapper(input, other):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), BLOCK=128)
    return out
"""

ONE = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, {formula}, mask=at < n)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), BLOCK=128)
    return out
"""

ROWS = """
@triton.jit
def kernel(x_ptr, out_ptr, N, stride, step, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), {sums})
    for start in range(0, N, BLOCK):
        at = start + cols
        total += tl.load(x_ptr + row * stride + at * step, mask=at < N, other=0){through}.to({sums})
    tl.store(out_ptr + row, {result})


def wrapper(input, dim=-1):
    rows = input.movedim(dim, -1)
    out = torch.empty(rows.shape[:-1], dtype={dtype}, device=input.device)
    if out.numel():
        kernel[(out.numel(),)](rows, out, rows.shape[-1], rows.stride(0), rows.stride(1), BLOCK=128)
    return out
"""

ARGMIN = """
@triton.jit
def kernel(x_ptr, out_ptr, N, stride, step, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols * step, mask=cols < N, other={most})
    key = x
    tl.store(out_ptr + row, tl.argmin(key, axis=0).to(tl.int64))


def wrapper(input, dim=-1):
    rows = input.movedim(dim, -1)
    out = torch.empty(rows.shape[:-1], dtype=torch.int64, device=input.device)
    if out.numel():
        N = rows.shape[-1]
        kernel[(out.numel(),)](rows, out, N, rows.stride(0), rows.stride(1), BLOCK=triton.next_power_of_2(N))
    return out
"""

DIMS = {"M": 8, "N": 24}


def op(name: str, *names: str, **more: Any) -> dict[str, Any]:
    """Returns an op of matrices of one form."""
    init = more.pop("init", None)
    given = {"init": init} if init else {}
    return declared(name, [tensor(one, ["M", "N"], **given) for one in names], DIMS, **{"seeds": 1, **more})


def randint(low: int, high: int) -> dict[str, Any]:
    return {"kind": "randint", "low": low, "high": high}


POSITIVE = {"kind": "uniform", "low": 0.0, "high": 3.0}

MEET = {
    "xlogy": ("torch.xlogy", POSITIVE, "tl.where((x == 0.0) & (y == y), 0.0, x * tl.log(y))", "x * tl.log(y)"),
    "pow": ("torch.pow", POSITIVE, "libdevice.pow(x, y)", "tl.where((x != x) | (y != y), x + y, libdevice.pow(x, y))"),
    "logaddexp": (
        "torch.logaddexp",
        None,
        "tl.where(x == y, x + 0.6931471805599453, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL) + libdevice.log1p(tl.exp(-tl.abs(x - y))))",
        "tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL) + libdevice.log1p(tl.exp(-tl.abs(x - y)))",
    ),
    "atan2": (
        "torch.atan2",
        None,
        "libdevice.atan2(x, y)",
        "tl.where((tl.abs(x) == float('inf')) & (tl.abs(y) == float('inf')), libdevice.atan2(x, y), libdevice.copysign(tl.where(libdevice.signbit(y) != 0, 3.141592653589793, 0.0) + tl.where(libdevice.signbit(y) != 0, -1.0, 1.0) * libdevice.atan(tl.abs(x) / tl.abs(y)), x))",
    ),
    "hypot": (
        "torch.hypot",
        None,
        "libdevice.hypot(x, y)",
        "tl.where(tl.abs(x) > tl.abs(y), tl.abs(x) * libdevice.hypot(1.0, y / x), tl.abs(y) * libdevice.hypot(1.0, tl.where(y == 0.0, 0.0, x / y)))",
    ),
}
"""Function → its name, the `init` of its inputs, a formula that is right, and one that is right but where special numbers meet."""


@pytest.mark.parametrize("name", MEET)
def test_what_is_wrong_where_special_numbers_meet_is_rejected(tmp_path: Path, name: str) -> None:
    function, init, right, wrong = MEET[name]
    honest = TWO.format(formula=right)
    require_passed(tmp_path / "right", op(function, "input", "other", init=init), honest)
    documents = check(tmp_path / "wrong", op(function, "input", "other", init=init), honest.replace(right, wrong))
    failure = documents["evidence"]["failure"]
    assert failure is not None and failure["case"] == "edge/pairs[all]/float32"


def test_special_numbers_meet_in_all_pairs() -> None:
    made = unusual.pairs([torch.full((9, 10), 5.0)] * 3, [(-9.0, 9.0)] * 3)
    told = [[float(value) for value in one.reshape(-1)] for one in made]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        met = {(str(a), str(b)) for a, b in zip(told[one], told[other], strict=True)}
        assert len(met - {("5.0", "5.0")}) == 64


def test_numbers_that_an_input_may_not_hold_do_not_meet() -> None:
    one, _ = unusual.pairs([torch.full((70,), 0.5)] * 2, [(0.5, 1.5), (-1.0, 1.0)])
    assert {str(float(value)) for value in one} == {"0.5", "1.0", "inf", "-inf", "nan"}


@pytest.mark.parametrize(
    "more",
    [{"edges": {"zeros": "none"}}, {"torch": "torch.nn.functional.mse_loss"}],
    ids=["off", "not by elements"],
)
def test_special_numbers_do_not_meet_where_that_is_not_asked(more: dict[str, Any]) -> None:
    small = {"M": 19, "N": 5}
    declaration: Any = {**op("torch.mul", "input", "other"), **more}
    assert probe_values.pairs({**op("torch.mul", "input", "other")}, small) is not None  # type: ignore[typeddict-item]
    assert probe_values.pairs(declaration, small) is None


def test_vectors_have_all_pairs() -> None:
    vectors: Any = declared("torch.mul", [tensor("input", ["N"]), tensor("other", ["N"])], {"N": 24})
    case = probe_values.pairs(vectors, {"N": 19})
    assert case is not None and cases.elements(vectors, case) >= 2 * unusual.ALL_PAIRS


@pytest.mark.parametrize(("dtype", "most"), [("int32", (1 << 31) - 1), ("int64", (1 << 63) - 1)])
def test_the_smallest_integer_is_found_among_its_neighbours(tmp_path: Path, dtype: str, most: int) -> None:
    honest = ARGMIN.format(most=most)
    outputs = [{"name": "index", "compare": "indices", "of": "input", "dim": -1, "tolerances": {}}]
    argmin = op(
        "torch.argmin", "input", init=randint(-(10**9), 10**9), dtypes=[dtype], kwargs={"dim": -1}, outputs=outputs
    )
    require_passed(tmp_path / "right", argmin, honest)
    require_rejected(tmp_path / "wrong", argmin, honest, "key = x", "key = x.to(tl.float32)", ("mismatch",))


@pytest.mark.parametrize(
    ("name", "low", "kinds"),
    [
        ("torch.unique", 0, set()),
        ("torch.unique", -5, {"neighbours", "limits"}),
        ("torch.argmax", 0, {"neighbours", "limits"}),
        ("torch.cumsum", 0, {"limits"}),
        ("torch.bincount", 0, set()),
    ],
)
def test_integers_that_may_be_places_in_a_table_stay_small(name: str, low: int, kinds: set[str]) -> None:
    given: Any = op(name, "input", dtypes=["int32"], init=randint(low, 10))
    assert {case.values for case in probe_values.values(given, "interpreter")} == kinds


def test_sums_of_integers_are_not_taken_in_floats(tmp_path: Path) -> None:
    more = {"dtypes": ["int32"], "kwargs": {"dim": -1}, "init": randint(0, 10)}
    words = {"through": "", "dtype": "torch.int64", "result": "tl.sum(total, axis=0).to(tl.int64)"}
    require_passed(tmp_path / "right", op("torch.sum", "input", **more), ROWS.format(sums="tl.int64", **words))
    honest, wrong = (ROWS.format(sums=sums, **words) for sums in ("tl.int64", "tl.float32"))
    require_rejected(tmp_path / "wrong", op("torch.sum", "input", **more), honest, honest, wrong, ("mismatch",))


def test_quotients_of_integers_of_two_signs_are_found(tmp_path: Path) -> None:
    more = {"dtypes": ["int32"], "init": randint(1, 10)}
    right = "x // y - ((x % y != 0) & ((x < 0) != (y < 0))).to(tl.int32)"
    honest = TWO.format(formula=right)
    require_passed(tmp_path / "right", op("torch.floor_divide", "input", "other", **more), honest)
    require_rejected(
        tmp_path / "wrong", op("torch.floor_divide", "input", "other", **more), honest, right, "x // y", ("mismatch",)
    )


@pytest.mark.parametrize("dtypes", [["bfloat16"], ["float32", "bfloat16"]], ids=["first", "second"])
def test_what_a_half_does_not_hold_is_found_in_a_mean(tmp_path: Path, dtypes: list[str]) -> None:
    means = op("torch.mean", "input", dtypes=dtypes, kwargs={"dim": -1})
    words = {"sums": "tl.float32", "dtype": "input.dtype", "result": "tl.sum(total, axis=0) / N"}
    honest = ROWS.format(through="", **words)
    require_passed(tmp_path / "right", means, honest)
    kernel = "tl.float16 if x_ptr.dtype.element_ty == tl.bfloat16 else tl.float32"
    wrong = ROWS.format(through=f".to({kernel})", **words)
    require_rejected(tmp_path / "wrong", means, honest, honest, wrong, ("nan", "mismatch"))


def test_small_products_of_bfloat16_are_found(tmp_path: Path) -> None:
    products = op("torch.mul", "input", "other", dtypes=["bfloat16"])
    honest = TWO.format(formula="x * y")
    require_passed(tmp_path / "right", products, honest)
    wrong = "(x * y).to(tl.float32) * (tl.abs((x * y).to(tl.float32)) > 3e-8)"
    require_rejected(tmp_path / "wrong", products, honest, "x * y", wrong, ("mismatch",))


@pytest.mark.parametrize(
    ("function", "formulas", "wrong"),
    [
        ("torch.sigmoid", ("tl.sigmoid(x)", "1.0 / (1.0 + tl.exp(-x))"), "0.5 + 0.5 * libdevice.tanh(0.5 * x)"),
        ("torch.nn.functional.silu", ("x * tl.sigmoid(x)", "x / (1.0 + tl.exp(-x))"), "x - x / (1.0 + tl.exp(x))"),
    ],
    ids=["sigmoid", "silu"],
)
def test_small_results_of_large_inputs_keep_their_digits(
    tmp_path: Path, function: str, formulas: tuple[str, ...], wrong: str
) -> None:
    for place, formula in enumerate(formulas):
        require_passed(tmp_path / f"right{place}", op(function, "input"), ONE.format(formula=formula))
    honest = ONE.format(formula=formulas[0])
    require_rejected(tmp_path / "wrong", op(function, "input"), honest, formulas[0], wrong, ("mismatch", "nan"))


def test_the_logarithm_of_a_sum_is_not_asked_for_small_digits(tmp_path: Path) -> None:
    formula = "tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(x)))"
    require_passed(tmp_path, op("torch.nn.functional.softplus", "input"), ONE.format(formula=formula))
