"""States that are kept in too few bits, norms of small values, searches that end too soon, and values of which nothing is left. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, require_passed, require_rejected, tensor

from t2t_harness.cases import cases, inputs, probe_alone, probe_indices, probe_lengths, probe_raised, probe_segments
from t2t_harness.cases.cases import Case
from t2t_harness.judging import oracle, rounding

REFERENCE = '''"""Ops with states, norms, searches and exponentials."""

import torch
import torch.nn.functional as F


def average(state, x, decay):
    state.mul_(decay).add_(x.float() * (1 - decay))


def clipped(a, b, most):
    norm = (a.square().sum() + b.square().sum()).sqrt()
    by = (most / (norm + 1e-6)).clamp(max=1.0)
    return a * by, b * by


def places(row, wanted):
    return torch.searchsorted(row, wanted)


def merged(lse):
    return torch.logsumexp(lse, 0)


def loss(logits, target, ignore_index):
    return F.cross_entropy(logits, target, ignore_index=ignore_index, reduction="none")


def gated(gate, x):
    return gate * x


def ratio(x, y):
    return torch.round(x / y)


def linear(x, y):
    return x * y + x
'''


def op(folder: Path, name: str, given: list[dict[str, Any]], sizes: dict[str, int], **more: Any) -> dict[str, Any]:
    """Returns the op of one function of the reference, which is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    return declared("", given, sizes, torch=None, reference=reference, seeds=1, **more)


AVERAGE = """
@triton.jit
def kernel(state, x, n, ss, sx, decay, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    own = tl.load(state + at * ss, mask=at < n)
    new = own * decay + tl.load(x + at * sx, mask=at < n).to(tl.float32) * (1 - decay)
    tl.store(state + at * ss, new, mask=at < n)


def wrapper(state, x, decay):
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 64),)](state, x, n, state.stride(0), x.stride(0), decay, BLOCK=64)
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_state_of_float32_keeps_its_digits_beside_16_bits(tmp_path: Path, dtype: str) -> None:
    """Returns nothing. Over many calls a state that is rounded to 16 bits would stand still; within one it is off by less than the type's tolerance."""
    given = [tensor("state", ["N"], dtype="float32"), tensor("x", ["N"])]
    own = op(tmp_path, "average", given, {"N": 40}, kwargs={"decay": 0.999}, mutates=["state"], dtypes=[dtype])
    require_passed(tmp_path / "honest", own, AVERAGE)
    rounded = AVERAGE.replace("at * ss, new,", f"at * ss, new.to(tl.{dtype}).to(tl.float32),")
    failure = check(tmp_path / "careless", own, rounded)["evidence"]["failure"]
    said = f"`state` after the call: every element is a number of {dtype}, torch's are of float32"
    assert failure["message"].startswith(said)


def test_what_a_number_is_as_float32_is_allowed(tmp_path: Path) -> None:
    """Returns nothing. A kernel has 1 - 0.999 of a float32, which is off by a part in 10⁵; among large values no tolerance covers that."""
    given = [tensor("state", ["N"]), tensor("x", ["N"])]
    own = op(tmp_path, "average", given, {"N": 40}, kwargs={"decay": 0.999}, mutates=["state"])
    case = Case("edge/large/float32", "edge", "float32", {"N": 40}, values="large")
    values = inputs.make_inputs(own, case)
    values["state"].zero_()
    right = oracle.reference(own, case, values)
    found = oracle.slack(own, case, values, right, "cpu")
    assert found is not None and right.oracle is not None
    # The float32 next to 0.999 is 1.3e-8 more.
    assert bool((found["after.state"] >= 1.2e-5 * right.oracle["after.state"].abs()).all())
    plain = {**own, "kwargs": {"decay": 0.75}}
    right = oracle.reference(plain, case, values)
    found = oracle.slack(plain, case, values, right, "cpu")
    assert found is not None and right.oracle is not None
    assert bool((found["after.state"] <= 1e-6 * right.oracle["after.state"].abs()).all())
    require_passed(tmp_path / "honest", own, AVERAGE)
    require_rejected(tmp_path / "careless", own, AVERAGE, "(1 - decay)", "(1 - decay) * 1.001")


CLIPPED = """
@triton.jit
def norm_kernel(a, b, out, n, BLOCK: tl.constexpr):
    total = 0.0
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x, y = tl.load(a + at, mask=at < n, other=0.0), tl.load(b + at, mask=at < n, other=0.0)
        total += tl.sum(x * x, 0) + tl.sum(y * y, 0)
    tl.store(out, tl.sqrt(total))


@triton.jit
def scale_kernel(x, out, norm, n, most, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    by = most / (tl.load(norm) + 1e-6)
    by = tl.minimum(by, 1.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + at, tl.load(x + at, mask=at < n) * by, mask=at < n)


def wrapper(a, b, most):
    a, b = a.contiguous(), b.contiguous()
    norm, n = torch.empty(1, device=a.device), a.numel()
    norm_kernel[(1,)](a, b, norm, n, BLOCK=64)
    outs = []
    for one in (a, b):
        out = torch.empty_like(one)
        if n:
            scale_kernel[(triton.cdiv(n, 64),)](one, out, norm, n, most, BLOCK=64)
        outs.append(out)
    return tuple(outs)
"""


def test_all_inputs_are_small_at_once(tmp_path: Path) -> None:
    """Returns nothing. A norm of two is below its bound in no case in which one alone is small."""
    given = [tensor("a", ["M", "N"]), tensor("b", ["M", "N"])]
    own = op(tmp_path, "clipped", given, {"M": 5, "N": 24}, kwargs={"most": 1.0}, edges={"one": "a norm of one"})
    require_passed(tmp_path / "honest", own, CLIPPED)
    unclamped = CLIPPED.replace("    by = tl.minimum(by, 1.0, propagate_nan=tl.PropagateNan.ALL)\n", "")
    failure = check(tmp_path / "careless", own, unclamped)["evidence"]["failure"]
    assert failure["case"] == "edge/small[all]/float32"
    assert not list(probe_alone.small(declared("torch.add", given, {"M": 5, "N": 24})))


def test_the_dim_of_a_sorted_input_is_long(tmp_path: Path) -> None:
    row = tensor("row", ["N"], init={"kind": "sorted", "of": {"kind": "normal", "mean": 0.0, "std": 1.0}})
    own = op(tmp_path, "places", [row, tensor("wanted", ["K"])], {"N": 24, "K": 9})
    (case,) = probe_lengths.of_sorted(own, 1 << 13)
    assert (case.name, case.binding) == ("edge/shape[N=4099]/float32", {"N": 4099, "K": 64})
    assert case.has_own_budget
    assert not list(probe_lengths.of_sorted(own, 1 << 10))
    assert not list(probe_lengths.of_sorted({**own, "edges": {"shapes": None}}, 1 << 13))
    # Where it is the last one, it is long anyway.
    assert not list(probe_lengths.of_sorted({**own, "inputs": own["inputs"][::-1]}, 1 << 13))


MERGED = """
@triton.jit
def kernel(lse, out, S, B, ss, sb, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    for row in range(S):
        one = tl.load(lse + row * ss + at * sb, mask=at < B, other=0.0)
        most = tl.maximum(most, one, propagate_nan=tl.PropagateNan.ALL)
    base = tl.where((most == float("-inf")) | (most == float("inf")), 0.0, most)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(S):
        total += tl.exp(tl.load(lse + row * ss + at * sb, mask=at < B, other=0.0) - base)
    tl.store(out + at, tl.log(total) + base, mask=at < B)


def wrapper(lse):
    S, B = lse.shape
    out = torch.empty(B, dtype=lse.dtype, device=lse.device)
    if B:
        kernel[(triton.cdiv(B, 16),)](lse, out, S, B, *lse.stride(), BLOCK=16)
    return out
"""


@pytest.mark.parametrize(
    ("here", "instead", "case"),
    [
        ('tl.where((most == float("-inf")) | (most == float("inf")), 0.0, most)', "most", "edge/void[lse]/float32"),
        ('tl.full((BLOCK,), float("-inf"), tl.float32)', "tl.zeros((BLOCK,), tl.float32)", "edge/sunk[lse]/float32"),
    ],
    ids=["nothing at all", "a largest value that begins with zero"],
)
def test_all_of_an_input_may_be_nothing(tmp_path: Path, here: str, instead: str, case: str) -> None:
    """Returns nothing. Large values do not reject it: among 40 of them one is above zero. An infinite row would, and is off."""
    off = {"infinite-rows": "sums of none"}
    own = op(tmp_path, "merged", [tensor("lse", ["S", "B"])], {"S": 40, "B": 12}, edges=off, fixed=["S"])
    own["sizes"]["large"]["S"] = 40
    require_passed(tmp_path / "honest", own, MERGED)
    assert here in MERGED
    failure = check(tmp_path / "careless", own, MERGED.replace(here, instead))["evidence"]["failure"]
    assert failure["case"] == case


def test_values_far_below_zero_have_no_exponentials(tmp_path: Path) -> None:
    own = op(tmp_path, "merged", [tensor("lse", ["S", "B"])], {"S": 5, "B": 12})
    raised, sunk, void = (inputs.make_inputs(own, case)["lse"] for case in probe_raised.of_exponentials(own))
    assert sunk.amax() < -128 and sunk.exp().count_nonzero() == 0
    assert void.eq(-math.inf).all()
    assert raised.amax() > 88 and raised.abs().amax() < 1e3


def test_segments_have_raised_values_in_one(tmp_path: Path) -> None:
    ends = tensor("ends", ["S+1"], dtype="int32", init={"kind": "offsets", "total": "E"})
    own = op(tmp_path, "merged", [tensor("x", ["E", "B"]), ends], {"E": 24, "B": 3, "S": 5})
    found = {case.name: case for case in probe_segments.segments(own, [], 1 << 13)}
    raised = found["edge/segments[E=131,raised]/float32"]
    assert (raised.binding["S"], raised.values, raised.of) == (1, "raised", cases.ALL)
    assert inputs.make_inputs(own, raised)["ends"].tolist() == [0, 131]


def test_a_label_that_is_ignored_changes_with_its_argument(tmp_path: Path) -> None:
    target = tensor("target", ["M"], dtype="int64", init={"kind": "randint", "low": -1, "high": "V"})
    own = op(tmp_path, "loss", [tensor("logits", ["M", "V"]), target], {"M": 40, "V": 5}, kwargs={"ignore_index": -1})
    case = Case("edge/a/float32", "edge", "float32", {"M": 40, "V": 5}, kwargs={"ignore_index": 1})
    assert list(probe_indices.marks(own, case)) == [("target", -1, 1)]
    labels = inputs.make_inputs(own, case)["target"]
    assert -1 not in labels.tolist() and 1 in labels.tolist()


def test_a_part_of_a_whole_is_never_infinite(tmp_path: Path) -> None:
    def special(low: float, high: float) -> torch.Tensor:
        gate = tensor("gate", ["M", "N"], init={"kind": "uniform", "low": low, "high": high})
        own = op(tmp_path, "gated", [gate, tensor("x", ["M", "N"])], {"M": 9, "N": 5})
        case = Case("edge/special/float32", "edge", "float32", {"M": 9, "N": 5}, values="special", of="gate")
        return inputs.make_inputs(own, case)["gate"]

    part, decay = special(0.0, 1.0), special(-1.0, 0.0)
    assert part.isnan().any() and not part.isinf().any()
    assert bool(((part >= 0) & (part <= 1) | part.isnan()).all())
    assert decay.eq(-math.inf).any() and not decay.eq(math.inf).any()


def test_a_reference_that_decides_nothing_is_asked_once(tmp_path: Path) -> None:
    given = [tensor("x", ["N"]), tensor("y", ["N"])]
    case = Case("edge/a/float32", "edge", "float32", {"N": 8})
    values = {"x": torch.full((8,), 2.5), "y": torch.full((8,), 3.0)}
    assert len(list(rounding.references(op(tmp_path, "linear", given, {"N": 8}), case, values, "cpu"))) == 1
    own = op(tmp_path, "ratio", given, {"N": 8})
    assert len(list(rounding.references(own, case, values, "cpu"))) == rounding.TURNS


@pytest.mark.parametrize(("by", "several"), [(3.0, True), (4.0, False)])
def test_a_quotient_that_is_exact_may_go_either_way_on_a_gpu_but_by_a_power_of_two(
    tmp_path: Path, by: float, several: bool
) -> None:
    given = [tensor("x", ["N"]), tensor("y", ["N"])]
    own, case = op(tmp_path, "ratio", given, {"N": 8}), Case("edge/a/float32", "edge", "float32", {"N": 8})
    values = {"x": torch.full((8,), 2.5 * by), "y": torch.full((8,), by)}
    loose = [one["0"] for one in rounding.references(own, case, values, "cpu", all_quotients=True)]
    assert (len({float(one) for found in loose for one in found}) > 1) is several
    exact = [one["0"] for one in rounding.references(own, case, values, "cpu")]
    assert {float(one) for found in exact for one in found} == {2.0}


SOFTMAX = """
@triton.jit
def kernel(x, out, N, sm, sn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    own = tl.load(x + row * sm + cols * sn, mask=cols < N, other=float("-inf"))
    e = tl.exp(own - tl.max(own, 0))
    tl.store(out + row * N + cols, e / tl.sum(e, 0), mask=cols < N)


@triton.jit
def back_kernel(y, flow, out, N, sm, sn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    own = tl.load(y + row * N + cols, mask=cols < N, other=0.0)
    came = tl.load(flow + row * sm + cols * sn, mask=cols < N, other=0.0)
    tl.store(out + row * N + cols, own * (came - tl.sum(own * came, 0)), mask=cols < N)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        if out.numel():
            kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, flow):
        (y,) = ctx.saved_tensors
        out = torch.empty_like(y)
        if out.numel():
            back_kernel[(y.shape[0],)](y, flow, out, y.shape[1], *flow.stride(), BLOCK=triton.next_power_of_2(y.shape[1]))
        return out


def wrapper(input, dim=-1):
    assert input.dim() == 2 and dim in (1, -1)
    return Softmax.apply(input)
"""


def test_a_gradient_that_is_nothing_drops_no_output(tmp_path: Path) -> None:
    """Returns nothing. Where one element flows into all places, the gradient of a softmax is nothing but rounding; what it returns is judged there."""
    own = declared(
        "torch.nn.functional.softmax",
        [tensor("input", ["M", "N"])],
        {"M": 5, "N": 24},
        kwargs={"dim": -1},
        backward=True,
    )
    documents = check(tmp_path / "honest", own, SOFTMAX)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    rows = {row["name"]: row for row in documents["evidence"]["cases"]}
    assert rows["edge/flow[one]/float32"]["verdict"] == "passed"
    case = replace(Case("edge/flow[one]/float32", "edge", "float32", {"M": 5, "N": 24}), flows="one")
    right = oracle.reference(own, case, inputs.make_inputs(own, case))
    from t2t_harness.phases import judge

    assert set(judge.ill_conditioned(own, right)) == {"grad.input"}
