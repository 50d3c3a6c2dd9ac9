"""Numbers of few bits in all inputs at once, and what else shows a mistake at one value alone: first places, divisors, defaults, NaN that a reference writes. Each careless kernel is rejected on the interpreter; the honest one passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import declared, require_passed, require_rejected, tensor

from t2t_harness.cases import (
    arguments_compared,
    arguments_values,
    block_edges,
    inputs,
    probe_alone,
    probe_arguments,
    probe_coarse,
    probe_indices,
    reference_code,
)
from t2t_harness.judging import oracle

REFERENCE = """
import torch

NAN = float("nan")


def step(grad, mean, beta=0.9):
    return torch.sign(beta * mean + (1 - beta) * grad)


def divisor(a, b):
    return torch.gcd(a, b)


def within(edges, x, closed=False):
    return torch.bucketize(x, edges, right=closed).to(torch.int32)


def day(sec, zone=0):
    return torch.div(sec + zone, 86400, rounding_mode="floor").to(torch.int32)


def means(x, offsets, empty=0.0):
    ends = offsets.tolist()
    rows = [x[a:b].mean(0) if b > a else torch.full_like(x[0], empty) for a, b in zip(ends[:-1], ends[1:])]
    return torch.stack(rows)


def picked(x, at):
    return x[at.clamp_min(0).long()] * (at >= 0)


def mixed(x, y, beta=0.5):
    return x if beta == 0 else x + beta * y


def eighths(x):
    scale = x.abs().amax(-1, keepdim=True) / 448.0
    scale = torch.where(scale == 0, 1.0, scale)
    return (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn)


def scaled(x, weight):
    return x * weight.detach()


def windows(x, few=1):
    count = torch.arange(1, x.shape[-1] + 1, device=x.device)
    total = x.cumsum(-1)
    return torch.where(count >= few, total, float("nan"))
"""

MAP = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, size, beta, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < size), tl.load(y_ptr + at, mask=at < size)
    BODY
    tl.store(out_ptr + at, out, mask=at < size)


def wrapper(NAMES, beta=0.9):
    x, y = (one.contiguous() for one in (NAMES))
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), beta, BLOCK=128)
    return out
"""

STEP = MAP.replace("NAMES", "grad, mean").replace(
    "BODY", "both = beta * y + (1 - beta) * x\n    out = tl.where(both > 0, 1.0, tl.where(both < 0, -1.0, 0.0))"
)

MIXED = (
    MAP.replace("NAMES", "x, y")
    .replace("BODY", "out = x if beta == 0 else x + beta * y")
    .replace("beta=0.9", "beta=0.5")
)

DAY = """
@triton.jit
def kernel(sec_ptr, out_ptr, size, zone, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sec = tl.load(sec_ptr + at, mask=at < size, other=0) + zone
    out = sec // 86400
    out = tl.where((sec < 0) & (sec % 86400 != 0), out - 1, out)
    tl.store(out_ptr + at, out.to(tl.int32), mask=at < size)


def wrapper(sec, zone=0):
    sec = sec.contiguous()
    out = torch.empty(sec.shape, dtype=torch.int32, device=sec.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](sec, out, out.numel(), zone, BLOCK=128)
    return out
"""

WITHIN = """
@triton.jit
def kernel(edges_ptr, x_ptr, out_ptr, E, size, CLOSED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < size, other=0.0)
    count = tl.zeros((BLOCK,), tl.int32)
    for place in range(E):
        edge = tl.load(edges_ptr + place)
        # NaN is above all edges.
        below = edge <= x if CLOSED else edge < x
        count += (below | (x != x)).to(tl.int32)
    tl.store(out_ptr + at, count, mask=at < size)


def wrapper(edges, x, closed=False):
    edges, x = edges.contiguous(), x.contiguous()
    out = torch.empty(x.shape, dtype=torch.int32, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](edges, x, out, edges.shape[0], out.numel(), CLOSED=closed, BLOCK=64)
    return out
"""

MEANS = """
@triton.jit
def kernel(x_ptr, ends_ptr, out_ptr, D, empty, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    first, last = tl.load(ends_ptr + row), tl.load(ends_ptr + row + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for place in range(first, last):
        total += tl.load(x_ptr + place * D + at, mask=at < D, other=0.0)
    mean = tl.where(last > first, total / tl.maximum(last - first, 1), empty)
    tl.store(out_ptr + row * D + at, mean, mask=at < D)


def wrapper(x, offsets, empty=0.0):
    x, offsets = x.contiguous(), offsets.contiguous()
    rows, D = offsets.shape[0] - 1, x.shape[1]
    out = torch.empty((rows, D), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(rows,)](x, offsets, out, D, empty, BLOCK=triton.next_power_of_2(D))
    return out
"""

WINDOWS = """
@triton.jit
def kernel(x_ptr, out_ptr, N, few, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    total = tl.where(at + 1 >= few, tl.cumsum(x, 0), float("nan"))
    tl.store(out_ptr + row * N + at, total, mask=at < N)


def wrapper(x, few=1):
    x = x.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(out.numel() // x.shape[-1],)](x, out, x.shape[-1], few, BLOCK=triton.next_power_of_2(x.shape[-1]))
    return out
"""

EIGHTHS = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    scale = tl.max(tl.abs(x)) / 448.0
    scale = tl.where(tl.sum((x != x).to(tl.int32)) > 0, float("nan"), scale)
    scale = tl.where(scale == 0, 1.0, scale)
    out = tl.clamp(tl.div_rn(x, scale), -448.0, 448.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + row * N + at, out.to(tl.float8e4nv), mask=at < N)


def wrapper(x):
    x = x.contiguous()
    out = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    if out.numel():
        kernel[(out.numel() // x.shape[-1],)](x, out, x.shape[-1], BLOCK=triton.next_power_of_2(x.shape[-1]))
    return out
"""

SCALED = """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, w = tl.load(x_ptr + at, mask=at < size), tl.load(w_ptr + at, mask=at < size)
    tl.store(out_ptr + at, x * w, mask=at < size)


def product(x, weight):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, weight, out, out.numel(), BLOCK=128)
    return out


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return product(x, weight)

    @staticmethod
    def backward(ctx, gradient):
        (weight,) = ctx.saved_tensors
        return product(gradient, weight), None


def wrapper(x, weight):
    if weight.requires_grad:
        raise NotImplementedError("the weight has no gradient")
    return Scaled.apply(x, weight)
"""

ROWS: list[int | str] = ["M", "N"]
WHOLE = {"kind": "randint", "low": -500, "high": 500}
ENDS = {"kind": "sorted", "of": {"kind": "normal", "mean": 0.0, "std": 1.0}}


def op(folder: Path, name: str, given: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Returns the op of one of the references."""
    theirs = folder / "theirs"
    theirs.mkdir(parents=True, exist_ok=True)
    (theirs / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(theirs)}
    lengths = {"M": 5, "N": 12, "E": 6, "T": 20, "B": 4}
    dims = {dim for one in given for length in one["shape"] for dim in lengths if dim in str(length)}
    return declared("", given, {dim: lengths[dim] for dim in sorted(dims)}, torch=None, reference=reference, **more)


SEC = tensor("sec", ["N"], dtype="int64", init={"kind": "randint", "low": -3000000, "high": 3000000})
OFFSETS = tensor("offsets", ["B + 1"], dtype="int64", init={"kind": "offsets", "total": "T"})

FAULTS: dict[str, tuple[str, list[dict[str, Any]], dict[str, Any], str, str, str]] = {
    "a sign of nothing": (
        "step",
        [tensor("grad", ROWS), tensor("mean", ROWS)],
        {"beta": 0.9},
        STEP,
        "both < 0, -1.0, 0.0",
        "both <= 0, -1.0, 0.0",
    ),
    "an edge of a bucket": (
        "within",
        [tensor("edges", ["E"], init=ENDS), tensor("x", ROWS)],
        {"closed": False},
        WITHIN,
        "if CLOSED else edge < x",
        "if CLOSED else edge <= x",
    ),
    "a default of the wrapper": (
        "within",
        [tensor("edges", ["E"], init=ENDS), tensor("x", ROWS)],
        {"closed": False},
        WITHIN,
        "closed=False",
        "closed=True",
    ),
    "the end of a day": ("day", [SEC], {"zone": 3600}, DAY, "(sec < 0) & (sec % 86400 != 0)", "sec < 0"),
    "an empty segment": (
        "means",
        [tensor("x", ["T", "N"]), OFFSETS],
        {"empty": 0.0},
        MEANS,
        "maximum(last - first, 1), empty)",
        "maximum(last - first, 1), 0.0)",
    ),
    "what zero leaves out": (
        "mixed",
        [tensor("x", ROWS), tensor("y", ROWS)],
        {"beta": 0.5},
        MIXED,
        "out = x if beta == 0 else x + beta * y",
        "out = x + beta * y",
    ),
    "no value where the reference has none": (
        "windows",
        [tensor("x", ROWS)],
        {"few": 1},
        WINDOWS,
        "at + 1 >= few",
        "at + 1 >= 1",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_careless_kernel_is_rejected_and_the_honest_one_passes(tmp_path: Path, fault: str) -> None:
    name, given, kwargs, kernel, written, instead = FAULTS[fault]
    own = op(tmp_path, name, given, kwargs=kwargs)
    require_passed(tmp_path / "right", own, kernel)
    require_rejected(tmp_path / "wrong", own, kernel, written, instead)


def test_results_of_eight_bits_are_judged_beside_nan(tmp_path: Path) -> None:
    own = op(tmp_path, "eighths", [tensor("x", ROWS)])
    require_passed(tmp_path / "right", own, EIGHTHS)
    require_rejected(tmp_path / "wrong", own, EIGHTHS, ", propagate_nan=tl.PropagateNan.ALL", "")


def test_no_call_asks_for_a_gradient_that_ops_yaml_does_not_ask_for(tmp_path: Path) -> None:
    given = [tensor("x", ROWS, requires_grad=True), tensor("weight", ROWS)]
    require_passed(tmp_path, op(tmp_path, "scaled", given, backward=True), SCALED)


def test_coarse_integers_and_offsets_stay_what_they_are_declared_as(tmp_path: Path) -> None:
    places = [tensor("a", ["N"], dtype="int32", init=WHOLE), tensor("b", ["N"], dtype="int32", init=WHOLE)]
    own = op(tmp_path, "divisor", places)
    (case,) = probe_coarse.coarse(own, [])
    given = inputs.make_inputs(own, case)
    assert ((given["a"] == 0) & (given["b"] == 0)).any()
    assert given["a"].unique().tolist() == [-2, -1, 0, 1, 2]
    labels = tensor("a", ["N"], dtype="int32", init={"kind": "randint", "low": 0, "high": 3})
    (case,) = probe_coarse.coarse(op(tmp_path, "divisor", [labels, labels | {"name": "b"}]), [])
    assert inputs.make_inputs(op(tmp_path, "divisor", [labels, labels | {"name": "b"}]), case)[
        "a"
    ].unique().tolist() == [0, 1, 2]
    own = op(tmp_path, "means", [tensor("x", ["T", "N"]), OFFSETS], kwargs={"empty": 0.0})
    case = next(iter(probe_coarse.coarse(own, [])))
    ends = inputs.make_inputs(own, case)["offsets"]
    assert (ends.diff() == 0).any()
    assert (ends.diff() >= 0).all()
    assert (ends[0], ends[-1]) == (0, inputs.make_inputs(own, case)["x"].shape[0])


def test_floats_of_one_size_have_one_step_and_much_smaller_ones_their_own(tmp_path: Path) -> None:
    small = tensor("mean", ROWS, init={"kind": "normal", "mean": 0.0, "std": 1e-3})
    own = op(tmp_path, "step", [tensor("grad", ROWS), small])
    (case,) = probe_coarse.coarse(own, [])
    given = inputs.make_inputs(own, case)
    assert given["grad"].unique().tolist() == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert len(given["mean"].unique()) == 5
    assert 0 < given["mean"].abs().max() < 1e-2


def test_each_dim_is_tried_that_is_no_other_by_name() -> None:
    assert arguments_values.dims_away(1, 3) == [-1, -2, 0]
    assert {int(str(one)) % 4 for one in arguments_values.dims_away(-1, 4)} == {0, 1, 2, 3}


def test_what_a_reference_divides_by_is_planted_less_an_argument(tmp_path: Path) -> None:
    own = op(tmp_path, "day", [SEC], kwargs={"zone": 3600})
    assert arguments_compared.divisors(own) == [86400]
    assert {86400, -86400, 82800, -90000} <= set(probe_indices.planted_in(own, own["inputs"][0], {"N": 40}))


def test_a_reference_that_writes_nan_says_so(tmp_path: Path) -> None:
    assert reference_code.writes_nan(op(tmp_path, "windows", [tensor("x", ROWS)]))
    # A module may have one for another function.
    assert not reference_code.writes_nan(op(tmp_path, "mixed", [tensor("x", ROWS), tensor("y", ROWS)]))


def test_a_multiple_of_an_argument_is_one_of_its_other_value(tmp_path: Path) -> None:
    own = op(tmp_path, "mixed", [tensor("x", ["2*M", "N * 2"])], kwargs={"beta": 2})
    assert probe_arguments.divided(own, {"M": 5, "N": 4}, {"beta": 3}) == {"M": 6, "N": 6}
    assert probe_arguments.multiplied_by("M + 2", 2) == []


def test_blocks_that_are_called_after_a_dim_in_short_are_found() -> None:
    product = declared("torch.mm", [tensor("a", ["M", "K"]), tensor("b", ["K", "N"])], {"M": 16, "N": 16, "K": 16})
    names = [case.name for case in block_edges.length_edges(product, {"BM": 16, "BN": 16, "BK": 32})]
    assert any("at-block[K=32" in name or "K=32" in name for name in names), names


def test_the_first_place_is_nan_where_integers_may_point_to_it(tmp_path: Path) -> None:
    at = tensor("at", ["M"], dtype="int64", init={"kind": "randint", "low": -1, "high": "N"})
    own = op(tmp_path, "picked", [tensor("x", ["N"]), at])
    found = list(probe_alone.first(own))
    assert [case.name for case in found] == ["edge/only[x=first]/float32"]
    x = inputs.make_inputs(own, found[0])["x"]
    assert x.isnan().tolist() == [True, *[False] * (len(x) - 1)]


def test_what_is_computed_of_coarse_inputs_is_exact(tmp_path: Path) -> None:
    own = op(tmp_path, "step", [tensor("grad", ROWS), tensor("mean", ROWS)], kwargs={"beta": 0.5})
    (case,) = probe_coarse.coarse(own, [])
    right = oracle.reference(own, case, inputs.make_inputs(own, case))
    assert right.oracle is not None
    assert right.plain["0"].double().equal(right.oracle["0"])
    assert (right.plain["0"] == 0).any()
