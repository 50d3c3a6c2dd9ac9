"""What does not count may be anything, NaN, too: behind a mask, behind a length, beside a weight of nothing. And what a reference in Python says nothing of, which a kernel may make a number of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks import declared, require_passed, require_rejected, tensor

from t2t_harness.cases import inputs, probe_hidden
from t2t_harness.cases.cases import Case
from t2t_harness.judging import comparing, oracle, undefined

REFERENCE = """
import torch

def masked(x, mask):
    return torch.where(mask, x, 0.0).sum(-1)

def weighed(x, mask):
    return (x * mask).sum(-1)

def counted(x, lengths):
    places = torch.arange(x.shape[1], device=x.device)
    return torch.where(places[None, :] < lengths[:, None], x, 0.0).sum(-1)

def merged(a, la, b, lb):
    top = torch.maximum(la, lb)
    top = torch.where(top == float("-inf"), 0.0, top)
    wa, wb = torch.exp(la - top), torch.exp(lb - top)
    total = torch.where(wa + wb == 0, 1.0, wa + wb)
    a = torch.where(wa == 0, 0.0, a.transpose(0, 1) * (wa / total))
    return a + torch.where(wb == 0, 0.0, b.transpose(0, 1) * (wb / total))

def straight(x):
    return x + (torch.round(x) - x).detach()

def rescaled(x, w):
    return (x - x.clone()) * w.float()

def gathered(x, near):
    there = near >= 0
    return torch.where(there[..., None], x[near.clamp(min=0)], 0.0).sum(1)

def causal(x):
    return (torch.ones(x.shape).tril() * x).sum(-1)

def largest(x):
    return x.amax(-1)

def positive(x):
    return torch.where(x > 0, torch.log(x), 0.0).sum(-1)
"""

ROWS = """
@triton.jit
def kernel(x_ptr, mask_ptr, out_ptr, N, sm, sn, mm, mn, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + at * sn, mask=at < N, other=0.0)
    keep = tl.load(mask_ptr + row * mm + at * mn, mask=at < N, other=0)
    tl.store(out_ptr + row, tl.sum(tl.where(keep != 0, x, 0.0), 0))


def wrapper(x, mask):
    out = torch.empty(x.shape[:1], dtype=x.dtype, device=x.device)
    if x.shape[1] == 0:
        return out.zero_()
    if x.shape[0]:
        kernel[x.shape[:1]](x, mask, out, x.shape[1], *x.stride(), *mask.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

COUNTED = """
@triton.jit
def kernel(x_ptr, len_ptr, out_ptr, N, sm, sn, sl, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + at * sn, mask=at < N, other=0.0)
    keep = at < tl.load(len_ptr + row * sl)
    tl.store(out_ptr + row, tl.sum(tl.where(keep, x, 0.0), 0))


def wrapper(x, lengths):
    out = torch.empty(x.shape[:1], dtype=x.dtype, device=x.device)
    if x.shape[1] == 0:
        return out.zero_()
    if x.shape[0]:
        kernel[x.shape[:1]](x, lengths, out, x.shape[1], *x.stride(), *lengths.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

MERGED = """
@triton.jit
def kernel(a_ptr, la_ptr, b_ptr, lb_ptr, out_ptr, n, N, am, an, las, bm, bn, lbs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside, row, column = at < n, at // N, at % N
    la = tl.load(la_ptr + column * las, mask=inside, other=0.0)
    lb = tl.load(lb_ptr + column * lbs, mask=inside, other=0.0)
    top = tl.maximum(la, lb, propagate_nan=tl.PropagateNan.ALL)
    top = tl.where(top == float("-inf"), 0.0, top)
    wa, wb = tl.exp(la - top), tl.exp(lb - top)
    total = wa + wb
    total = tl.where(total == 0, 1.0, total)
    a = tl.load(a_ptr + column * am + row * an, mask=inside, other=0.0) * (wa / total)
    b = tl.load(b_ptr + column * bm + row * bn, mask=inside, other=0.0) * (wb / total)
    a = tl.where(wa == 0, 0.0, a)
    b = tl.where(wb == 0, 0.0, b)
    tl.store(out_ptr + at, a + b, mask=inside)


def wrapper(a, la, b, lb):
    N, M = a.shape
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel():
        grid = (triton.cdiv(out.numel(), 64),)
        kernel[grid](a, la, b, lb, out, out.numel(), N, *a.stride(), *la.stride(), *b.stride(), *lb.stride(), BLOCK=64)
    return out
"""

GATHERED = """
@triton.jit
def kernel(x_ptr, near_ptr, out_ptr, D, K, xn, xd, nm, nk, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        near = tl.load(near_ptr + row * nm + k * nk)
        x = tl.load(x_ptr + tl.maximum(near, 0) * xn + at * xd, mask=at < D, other=0.0)
        total += tl.where(near >= 0, x, 0.0)
    tl.store(out_ptr + row * D + at, total, mask=at < D)


def wrapper(x, near):
    out = torch.empty((near.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
    if out.numel():
        BLOCK = triton.next_power_of_2(x.shape[1])
        kernel[near.shape[:1]](x, near, out, *x.shape[1:], near.shape[1], *x.stride(), *near.stride(), BLOCK=BLOCK)
    return out
"""

NAN, INF = float("nan"), float("inf")

LENGTH = {"B": 3, "T": 5, "D": 7, "M": 6, "N": 40}

SHAPE: list[int | str] = ["M", "N"]
MASK = tensor("mask", SHAPE, dtype="bool", init={"kind": "mask", "p": 0.7})
LENGTHS = tensor("lengths", ["M"], dtype="int32", init={"kind": "randint", "low": 1, "high": "N"})
NEAR = tensor("near", ["M", "T"], dtype="int64", init={"kind": "randint", "low": -1, "high": "B"})
POINTED = [tensor("x", ["B", "D"]), NEAR]
PAIR = [tensor("a", ["N", "M"]), tensor("la", ["N"]), tensor("b", ["N", "M"]), tensor("lb", ["N"])]


def op(folder: Path, name: str, given: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Returns the op of a function of `REFERENCE`, which is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    dims = {dim for one in given for dim in one["shape"]}
    return declared("", given, {str(dim): LENGTH[str(dim)] for dim in dims}, torch=None, reference=reference, **more)


FAULTS = {
    "masked": ([tensor("x", SHAPE), MASK], ROWS, "tl.where(keep != 0, x, 0.0)", "x * keep"),
    "counted": ([tensor("x", SHAPE), LENGTHS], COUNTED, "tl.where(keep, x, 0.0)", "x * keep"),
    "gathered": (POINTED, GATHERED, "tl.where(near >= 0, x, 0.0)", "x * (near >= 0)"),
    "merged": (PAIR, MERGED, "a = tl.where(wa == 0, 0.0, a)", "a = a"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_does_not_count_may_be_nan(tmp_path: Path, name: str) -> None:
    given, kernel, old, new = FAULTS[name]
    own = op(tmp_path, name, given)
    # Elsewhere a NaN is looked for, too: not here.
    own["edges"] = dict.fromkeys(("special", "infinite-rows"), None)
    require_passed(tmp_path / "right", own, kernel)
    require_rejected(tmp_path / "wrong", own, kernel, old, new)


def test_nothing_is_asked_where_the_reference_lets_it_count(tmp_path: Path) -> None:
    own = op(tmp_path, "weighed", [tensor("x", SHAPE), MASK])
    own["edges"] = dict.fromkeys(("special", "infinite-rows"), None)
    require_passed(tmp_path / "right", own, ROWS)


def test_where_it_is_turned_off_nothing_is_hidden(tmp_path: Path) -> None:
    given, kernel, old, new = FAULTS["masked"]
    own = op(tmp_path, "masked", given)
    own["edges"] = dict.fromkeys(("special", "infinite-rows", "hidden"), None)
    require_passed(tmp_path / "careless", own, kernel.replace(old, new))


def test_what_hides_and_what_is_hidden_are_found_by_their_dims(tmp_path: Path) -> None:
    own = op(tmp_path, "merged", PAIR)
    names = [case.name.split("/")[1] for case in probe_hidden.hidden(own)]
    assert names == ["hidden[a,la=-inf]", "hidden[b,lb=-inf]", "hidden[a+b,-inf]"]
    wide = tensor("x", ["B", "T", "D"])
    ids = tensor("ids", ["B", "T"], dtype="int64", init={"kind": "randint", "low": 0, "high": 9})
    others = [wide, MASK, LENGTHS, ids, tensor("keep", ["T"], dtype="bool", init={"kind": "mask", "p": 0.5})]
    names = [case.name.split("/")[1] for case in probe_hidden.hidden(op(tmp_path, "masked", others))]
    assert names == ["hidden[x,keep=false]", "hidden[x,keep=true]"]


def test_nan_lies_where_nothing_counts_and_nowhere_else(tmp_path: Path) -> None:
    turned = tensor("x", ["N", "D", "M"])
    own = op(tmp_path, "masked", [turned, MASK, LENGTHS, tensor("w", ["M"])])
    made = {case.values: (case, inputs.make_inputs(own, case)) for case in probe_hidden.hidden(own)}
    for values, hides in (
        (probe_hidden.FALSE, lambda given: ~given["mask"].t()[:, None, :]),
        (probe_hidden.TRUE, lambda given: given["mask"].t()[:, None, :]),
        (probe_hidden.BEHIND, lambda given: torch.arange(given["x"].shape[0])[:, None, None] >= given["lengths"]),
        (probe_hidden.LOW, lambda given: given["w"] == -torch.inf),
    ):
        case, given = made[values]
        where = hides(given).expand_as(given["x"])
        assert given["x"].isnan().equal(where), case.name
        assert where.any(), case.name
        assert not where.all(), case.name


def test_nan_lies_where_no_index_points_to(tmp_path: Path) -> None:
    own = op(tmp_path, "gathered", POINTED)
    (case,) = probe_hidden.hidden(own)
    assert case.name.split("/")[1] == "hidden[x,near=nowhere]"
    given = inputs.make_inputs(own, case)
    places = given["x"].isnan().all(dim=1)
    assert places.nonzero().flatten().tolist() == [0, len(places) - 1]
    near = given["near"]
    assert near.flatten()[1::2].eq(-1).all()
    assert not places[near[near >= 0]].any()


def right_of(own: dict[str, Any], case: Case) -> tuple[dict[str, torch.Tensor], oracle.Reference]:
    """Returns the inputs of `case`, and what the reference makes of them."""
    given = inputs.make_inputs(own, case)
    return given, oracle.reference(own, case, given)


SPECIAL = Case("edge/special/float32", "edge", "float32", {"M": 6, "N": 40}, values="special")


def test_what_infinities_make_nan_of_may_be_a_number_and_what_a_nan_does_may_not(tmp_path: Path) -> None:
    own = op(tmp_path, "straight", [tensor("x", SHAPE)])
    given, right = right_of(own, SPECIAL)
    expected, x = right.plain["0"], given["x"]
    assert expected.isnan().equal(~x.isfinite())
    number = comparing.Judged(given, right.plain, {"0": expected.nan_to_num(nan=3.0)})
    known = undefined.known(own, SPECIAL, number, "0", right, "cpu")
    assert known is not None
    found = known[0].made["0"]
    assert found[x.isinf()].isnan().all()
    assert (found[x.isnan()] == 3.0).all()
    assert known[1].plain["0"].isnan().equal(expected.isnan())
    # A function of torch's is what torch makes of it, and declared cases hold what is declared.
    torch_op = declared("torch.round", [tensor("input", SHAPE)], {"M": 6, "N": 40})
    assert undefined.known(torch_op, SPECIAL, number, "0", right, "cpu") is None
    plain = Case("small/float32/0", "declared", "float32", {"M": 6, "N": 40})
    assert undefined.known(own, plain, number, "0", right, "cpu") is None


def test_a_nan_on_which_nothing_depends_may_be_left_out_and_one_of_a_largest_may_not(tmp_path: Path) -> None:
    own = op(tmp_path, "causal", [tensor("x", ["N", "N"])])
    case = Case("edge/special/float32", "edge", "float32", {"N": 8}, values="special")
    x = torch.arange(9.0).view(3, 3)
    x[0, 2] = x[1, 1] = NAN
    right = oracle.reference(own, case, {"x": x})
    assert right.plain["0"].isnan().tolist() == [True, True, False]
    # A kernel that reads what is not masked alone.
    made = torch.where(torch.ones(3, 3).tril() > 0, x, 0.0).sum(-1)
    known = undefined.known(own, case, comparing.Judged({"x": x}, right.plain, {"0": made}), "0", right, "cpu")
    assert known is not None
    for told in (known[0].right, known[1].plain, known[1].oracle or {}):
        assert told["0"][0] == x[0, 0]
        assert told["0"][1].isnan()
    # NaN hides in a maximum, and counts; so it does beside an infinity, which is the largest without it.
    own = op(tmp_path, "largest", [tensor("x", SHAPE)])
    x = torch.tensor([[1.0, NAN, 2.0], [NAN, INF, 0.0], [1.0, 2.0, 3.0]])
    tops = oracle.reference(own, case, {"x": x})
    made = x.nan_to_num(nan=-INF, posinf=INF).amax(-1)
    assert undefined.known(own, case, comparing.Judged({"x": x}, tops.plain, {"0": made}), "0", tops, "cpu") is None


def test_types_of_8_bits_are_left_as_they_are(tmp_path: Path) -> None:
    own = op(tmp_path, "rescaled", [tensor("x", SHAPE), tensor("w", ["N"], dtype="float8_e4m3fn")])
    x, weight = torch.ones(2, 3), torch.ones(3).to(torch.float8_e4m3fn)
    x[0, 0] = INF
    given = {"x": x, "w": weight}
    right = oracle.reference(own, SPECIAL, given)
    assert right.plain["0"].isnan().tolist() == [[True, False, False], [False, False, False]]
    number = comparing.Judged(given, right.plain, {"0": right.plain["0"].nan_to_num(nan=3.0)})
    known = undefined.known(own, SPECIAL, number, "0", right, "cpu")
    assert known is not None
    assert known[0].made["0"][0, 0].isnan()


def test_a_gradient_may_be_anything_where_that_of_the_reference_is_nan(tmp_path: Path) -> None:
    own = op(tmp_path, "positive", [tensor("x", SHAPE)], backward=True)
    given, all_right = right_of(own, SPECIAL)
    right = all_right.plain["grad.x"]
    assert right.isnan().any()
    made = comparing.Judged(given, all_right.plain, {"grad.x": torch.zeros_like(right)})
    found = undefined.but_unsaid(own, SPECIAL, made, "grad.x").made["grad.x"]
    assert found[right.isnan()].isnan().all()
    assert (found[~right.isnan()] == 0).all()
    # Of an output each NaN is asked for.
    value = comparing.Judged(given, all_right.plain, {"0": torch.zeros_like(all_right.plain["0"])})
    assert undefined.but_unsaid(own, SPECIAL, value, "0") is value


PAGED = """
@triton.jit
def kernel(q_ptr, cache_ptr, table_ptr, lengths_ptr, out_ptr, P, D, cn, cb, cd, PLACES: tl.constexpr, BLOCK: tl.constexpr, SIZE: tl.constexpr):
    row = tl.program_id(0)
    length = tl.load(lengths_ptr + row)
    at, dims = tl.arange(0, BLOCK), tl.arange(0, SIZE)
    q = tl.load(q_ptr + row * D + dims, mask=dims < D, other=0.0)
    total = tl.zeros((SIZE,), tl.float32)
    for place in range(0, tl.cdiv(length, PLACES)):
        page = tl.load(table_ptr + row * P + place)
        inside = (at < PLACES) & (place * PLACES + at < length)
        where = cache_ptr + page * cn + at[:, None] * cb + dims[None, :] * cd
        keys = tl.load(where, mask=inside[:, None] & (dims < D)[None, :], other=0.0)
        score = tl.where(inside, tl.sum(keys * q[None, :], 1), 0.0)
        # HERE
        total += tl.sum(score[:, None] * keys, 0)
    tl.store(out_ptr + row * D + dims, total, mask=dims < D)


def wrapper(q, cache, table, lengths):
    q, table, lengths = q.contiguous(), table.contiguous(), lengths.contiguous()
    out = torch.empty_like(q)
    if out.numel():
        order = ORDER
        cn, cb, cd = (cache.stride(dim) for dim in order)
        places, D = cache.shape[order[1]], q.shape[1]
        sizes = triton.next_power_of_2(places), triton.next_power_of_2(D)
        kernel[(q.shape[0],)](q, cache, table, lengths, out, table.shape[1], D, cn, cb, cd, places, *sizes)
    return out
"""

PAGED_REFERENCE = """
import torch


def paged(q, cache, table, lengths):
    out = torch.zeros_like(q)
    for row in range(len(q)):
        pages = cache[table[row].long()]
        held = (pages if LAST else pages.transpose(1, 2)).flatten(0, 1)[: int(lengths[row])]
        out[row] = (held @ q[row]) @ held
    return out
"""


@pytest.mark.parametrize("cache", [["NB", "BS", "D"], ["NB", "D", "BS"], ["NB", 4, "D"]], ids=str)
def test_where_no_row_of_a_paged_cache_lies_there_may_be_anything(tmp_path: Path, cache: list[int | str]) -> None:
    """Returns nothing: a kernel that reads a whole page, and multiplies what is beyond a row's length by zero, is seen."""
    is_last = cache[-1] == "D"
    (tmp_path / "reference.py").write_text(PAGED_REFERENCE.replace("LAST", str(is_last)), encoding="utf-8")
    reference = {"file": "reference.py", "name": "paged", "init": {}, "root": str(tmp_path)}
    whole = "P*4+1" if 4 in cache else "P*BS+1"
    given = [
        tensor("q", ["B", "D"]),
        tensor("cache", cache),
        tensor("table", ["B", "P"], dtype="int32", init={"kind": "randint", "low": 0, "high": "NB"}),
        tensor("lengths", ["B"], dtype="int32", init={"kind": "randint", "low": 0, "high": whole}),
    ]
    sizes = {"B": 4, "D": 9, "NB": 11, "P": 3} | ({} if 4 in cache else {"BS": 6})
    op = declared("", given, sizes, torch=None, reference=reference, tolerances={"float32": [1e-4, 1e-4]})
    kernel = PAGED.replace("ORDER", "(0, 1, 2)" if is_last else "(0, 2, 1)")
    require_passed(tmp_path / "right", op, kernel)
    reading = "keys = tl.load(where, mask=(at < PLACES)[:, None] & (dims < D)[None, :], other=0.0)"
    require_rejected(tmp_path / "wrong", op, kernel, "# HERE", reading)


COMPARED = '''"""Functions that decide something by a comparison with what may be NaN."""

import torch


def scaled(x, s):
    return torch.where(s.unsqueeze(1) > 0, x / s.unsqueeze(1), 0.0)


def place(x, ids):
    return torch.where(x > 0, x, 0.0).argmax(-1) + ids


def positive(x, s):
    return x > s.unsqueeze(1)
'''


CHECKED = """import torch


def scaled(x, s):
    s = torch.nan_to_num(s)
    return torch.where(s.unsqueeze(1) > 0, x / s.unsqueeze(1), 0.0)
"""


def decided(
    folder: Path, name: str, given: dict[str, torch.Tensor], made: torch.Tensor, code: str = COMPARED, **more: Any
) -> Any:
    """Returns where a result of an edge counts as right by a reference that compares with NaN; None where that changes nothing."""
    (folder / "reference.py").write_text(code, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    second = tensor("ids", ["M"], dtype="int64", init=UP_TO) if "ids" in given else tensor("s", ["M"])
    own = declared("", [tensor("x", SHAPE), second], {"M": 6, "N": 40}, torch=None, reference=reference)
    case = Case("edge/special/float32", "edge", "float32", {"M": 3, "N": 2}, **{"values": "special", **more})
    right = oracle.reference(own, case, given)
    judged = comparing.Judged(given, right.plain, {"0": made})
    found = undefined.decided_by_nan(own, case, judged, "0", right, "cpu")
    return None if found is None else found.made["0"] == right.plain["0"]


UP_TO = {"kind": "randint", "low": 0, "high": "N"}


def test_a_nan_may_spread_where_a_reference_compares_with_it(tmp_path: Path) -> None:
    x, s = torch.ones(3, 2), torch.tensor([NAN, 2.0, -1.0])
    spread = torch.tensor([[NAN, NAN], [NAN, 0.5], [0.0, 0.0]])
    assert decided(tmp_path, "scaled", {"x": x, "s": s}, spread).tolist() == [[True, True], [False, True], [True, True]]
    # A number is wrong there, and a NaN where the reference asks for NaN by name.
    number = torch.tensor([[3.0, 3.0], [0.5, 0.5], [0.0, 0.0]])
    assert decided(tmp_path, "scaled", {"x": x, "s": s}, number) is None
    assert decided(tmp_path, "scaled", {"x": x, "s": s}, spread, CHECKED) is None
    # Flags say what they say, and declared cases hold what is declared.
    flags = torch.tensor([[True, True], [False, False], [True, True]])
    assert decided(tmp_path, "positive", {"x": x, "s": s}, flags) is None
    assert decided(tmp_path, "scaled", {"x": x, "s": s.nan_to_num(nan=1.0)}, spread) is None


def test_integers_may_be_any_where_a_nan_decides(tmp_path: Path) -> None:
    x, ids = torch.tensor([[NAN, 1.0], [2.0, 1.0], [1.0, 2.0]]), torch.zeros(3, dtype=torch.int64)
    made = torch.tensor([0, 1, 1])
    assert decided(tmp_path, "place", {"x": x, "ids": ids}, made).tolist() == [True, False, True]


def test_what_the_reference_reads_of_hidden_values_is_not_asked(tmp_path: Path) -> None:
    """Returns nothing. An index below a dim may be taken for a length: what lies behind it counts, and the reference reads it."""
    x, ids = torch.tensor([[3.0, NAN], [2.0, 1.0], [1.0, 2.0]]), torch.zeros(3, dtype=torch.int64)
    made = torch.tensor([1, 0, 0])
    found = decided(tmp_path, "place", {"x": x, "ids": ids}, made, values="hidden-behind")
    assert found.tolist() == [True, True, False]
