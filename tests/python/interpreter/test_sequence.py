"""Long sums that are added up term by term, quotients of a GPU, and values by which exponentials overflow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import declared, require_passed, require_rejected, tensor

from t2t_harness.cases import inputs, probe_raised
from t2t_harness.cases.cases import Case
from t2t_harness.judging import comparing, exponents, oracle, rounding, rules, sequence
from t2t_harness.judging.progress import Progress
from t2t_harness.judging.trial import Trial

REFERENCE = '''"""Weighted sums over a long dim."""

import torch


def weighed(x, w):
    return (torch.softmax(x, -1) * w).sum(-1)


def scores(x, w):
    return torch.softmax(x @ w.t(), -1)
'''

TERMS = 40961
"""So many terms, most of which are small beside the sum."""


def op(folder: Path, name: str = "weighed") -> dict[str, Any]:
    """Returns the op of one function of the reference."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    given = [tensor("x", ["M", "V"]), tensor("w", ["V"] if name == "weighed" else ["N", "V"])]
    sizes = {"M": 4, "V": 16} if name == "weighed" else {"M": 4, "V": 16, "N": 8}
    return declared("", given, sizes, torch=None, reference=reference)


def judged(folder: Path, off: float) -> Any:
    """Returns the comparison with sums in order of a result that is what those have, but for one element that is `off` by a part."""
    own, case = op(folder), Case("edge/shape[V]/float32", "edge", "float32", {"M": 2, "V": TERMS})
    x = torch.full((2, TERMS), 1.0)
    x[:, 0] = 14.0
    given = {"x": x, "w": torch.ones(TERMS)}
    right = oracle.reference(own, case, given)
    found = sequence.reference(own, case, given, "cpu")
    assert found is not None
    made = found["0"].clone()
    made[1] *= 1 + off
    request: Any = {"op": own, "root": str(folder), "lane": "interpreter"}
    trial = Trial(request, Progress(Path(folder)))
    compared = comparing.Judged(given, right.plain, {"0": made})
    assert not rules.compared(trial, case, "0", compared, right).passed
    return rules.in_sequence(trial, case, "0", compared, right)


def test_a_sum_in_order_may_lose_what_is_small_beside_it(tmp_path: Path) -> None:
    """Returns nothing. Each of the terms behind the first one is lost: it is less than half of the last bit of the sum."""
    assert judged(tmp_path, 0.0).passed
    assert judged(tmp_path, 0.05) is None


def test_short_sums_and_those_of_other_types_are_torchs(tmp_path: Path) -> None:
    own, small = op(tmp_path), Case("small/float32/0", "declared", "float32", {"M": 4, "V": 16})
    assert sequence.reference(own, small, inputs.make_inputs(own, small), "cpu") is None
    value = torch.ones(2, 4096, dtype=torch.float64)
    assert sequence.total(value, [-1]) is None
    assert sequence.product(value, value.t()) is None


@pytest.mark.parametrize(("dims", "keepdim"), [(None, False), ([1], True), ([0, 2], False), ([0, 1, 2], True)])
def test_sums_in_order_are_sums(dims: list[int] | None, keepdim: bool) -> None:
    value = torch.randint(-3, 4, (16, 1024, 8), generator=torch.Generator().manual_seed(0)).float()
    named = (0, 1, 2) if dims is None else tuple(dims)
    expected = value.sum(named, keepdim=keepdim)
    found = sequence.total(value, dims, keepdim)
    if dims == [0, 2]:
        assert found is None
    else:
        assert found is not None and found.shape == expected.shape
        assert found.equal(expected)
        assert sequence.mean(value, dims, keepdim).allclose(value.mean(named, keepdim=keepdim))


def test_products_in_order_are_products() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-3, 4, shape, generator=generator).float() for shape in ((2, 3, 1024), (2, 1024, 5)))
    bias = torch.ones(5)
    assert sequence.product(a, b).equal(a @ b)
    assert sequence.added(bias, a[0], b[0]).equal(torch.addmm(bias, a[0], b[0]))
    assert sequence.applied(a[0], b[0, :, 0]).equal(a[0] @ b[0, :, 0])


@pytest.mark.parametrize(
    ("name", "device", "bits"), [("aten::div", "cuda", 4), ("aten::div", "cpu", 1), ("aten::mul", "cuda", 1)]
)
def test_a_quotient_of_a_gpu_is_off_by_more(name: str, device: str, bits: int) -> None:
    assert rounding.bits_of(name, device) == bits
    generator, value = torch.Generator().manual_seed(0), torch.ones(64, dtype=torch.float64)
    found = rounding.nudged(value, generator, None, bits=bits)
    assert set((found - 1).abs().tolist()) == {bits * rounding.HALF_BIT}


def test_large_values_say_nothing_on_a_device_where_exponents_are_sums(tmp_path: Path) -> None:
    size = {"M": 4, "V": 16, "N": 8}
    own, case = op(tmp_path, "scores"), Case("edge/large/float32", "edge", "float32", size, values="large")
    given = inputs.make_inputs(own, case)
    assert exponents.are_lost(own, case, given, "cuda")
    assert not exponents.are_lost(own, case, given, "cpu")
    assert not exponents.are_lost(own, replace(case, values="raised"), given, "cuda")
    found = exponents.seen(own, case, given, "cpu")
    assert found.are_sums and found.most * exponents.LAST_BIT > exponents.MOST
    plain = exponents.seen(op(tmp_path), case, {"x": given["x"], "w": torch.ones(16)}, "cpu")
    assert not plain.are_sums
    assert not exponents.are_lost(op(tmp_path), case, {"x": given["x"], "w": torch.ones(16)}, "cuda")
    own = op(tmp_path, "scores")
    raised = Case("edge/raised/float32", "edge", "float32", size, values="raised")
    bits = exponents.seen(own, raised, inputs.make_inputs(own, raised), "cpu").most * exponents.LAST_BIT
    assert 88 * exponents.LAST_BIT < bits < exponents.MOST


KERNEL = """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, N, V, sx, vx, sw, vw, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0)
    at, cols = tl.arange(0, BLOCK), tl.arange(0, WIDE)
    x = tl.load(x_ptr + row * sx + cols * vx, mask=cols < V, other=0.0)
    w = tl.load(w_ptr + at[:, None] * sw + cols[None, :] * vw, mask=(at < N)[:, None] & (cols < V)[None, :], other=0.0)
    z = tl.where(at < N, tl.sum(w * x[None, :], 1), float("-inf"))
    e = tl.exp(z - tl.max(z, 0))
    tl.store(out_ptr + row * N + at, e / tl.sum(e, 0), mask=at < N)


def wrapper(x, w):
    M, N, V = x.shape[0], w.shape[0], x.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel():
        blocks = {"BLOCK": triton.next_power_of_2(N), "WIDE": max(triton.next_power_of_2(V), 1)}
        kernel[(M,)](x, w, out, N, V, *x.stride(), *w.stride(), **blocks)
    return out
"""


def test_exponentials_overflow_where_nothing_is_subtracted(tmp_path: Path) -> None:
    own = op(tmp_path, "scores")
    require_passed(tmp_path / "honest", own, KERNEL)
    require_rejected(tmp_path / "careless", own, KERNEL, "z - tl.max(z, 0)", "z")
    assert [case.name for case in probe_raised.of_exponentials(own)] == [
        f"edge/{name}/float32" for name in ("raised", "sunk[x]", "void[x]", "sunk[w]", "void[w]")
    ]
    assert not list(probe_raised.of_exponentials(declared("torch.exp", [tensor("input", ["N"])], {"N": 24})))
    assert not list(probe_raised.of_exponentials({**op(tmp_path), "random": {"kind": "judged"}}))
