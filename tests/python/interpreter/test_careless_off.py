"""Arguments that are off as they are declared, marks of free slots, and places for integers that are distinct. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, tensor, verdict

from t2t_harness.cases import arguments_turned, bindings, inputs, probe_indices, probing
from t2t_harness.cases.cases import Case

REFERENCE = '''"""Ops with arguments that are off, and with marks."""

import torch


def window(x, window):
    at = torch.arange(x.shape[1], device=x.device)
    seen = at[None, :] <= at[:, None]
    if window > 0:
        seen = seen & (at[None, :] > at[:, None] - window)
    weights = seen.to(x.dtype)
    return (x @ weights.t()) / weights.sum(1)


def absent(x, times):
    return x.cumsum(1) if times is None else x.cumsum(1) * times


def scales(x, group):
    length = x.shape[1] if group == -1 else group
    return x.reshape(x.shape[0], -1, length).abs().amax(-1)


def write(x, cache, slots, pad):
    kept = slots != pad
    cache[slots[kept].long()] = x[kept]


def pages(x, table, lengths):
    out = []
    for row in range(table.shape[0]):
        own = x[table[row].long()].reshape(-1)
        out.append(own[: int(lengths[row])].sum())
    return torch.stack(out)
'''


def op(folder: Path, name: str, given: list[dict[str, Any]], sizes: dict[str, int], **more: Any) -> dict[str, Any]:
    """Returns the op of one function of the reference, which is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    return declared("", given, sizes, torch=None, reference=reference, seeds=1, **more)


WINDOW = """
@triton.jit
def kernel(x, out, S, sm, sn, window, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1)
    low = 0
    if window > 0:
        low = tl.maximum(at + 1 - window, 0)
    cols = tl.arange(0, BLOCK)
    total = 0.0
    for first in range(0, at + 1, BLOCK):
        own = first + cols
        total += tl.sum(tl.load(x + row * sm + own * sn, mask=(own <= at) & (own >= low), other=0.0), 0)
    tl.store(out + row * S + at, total / (at + 1 - low))


def wrapper(x, window=-1):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[x.shape](x, out, x.shape[1], *x.stride(), window, BLOCK=64)
    return out
"""

SCALES = """
@triton.jit
def kernel(x, out, N, group, sm, sn, BLOCK: tl.constexpr):
    row, place = tl.program_id(0), tl.program_id(1)
    cols = tl.arange(0, BLOCK)
    own = tl.load(x + row * sm + (place * group + cols) * sn, mask=cols < group, other=0.0)
    tl.store(out + row * (N // group) + place, tl.max(tl.abs(own), 0))


def wrapper(x, group=-1):
    M, N = x.shape
    group = N if group == -1 else group
    out = torch.empty((M, N // group), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[out.shape](x, out, N, group, *x.stride(), BLOCK=triton.next_power_of_2(group))
    return out
"""

WRITE = """
@triton.jit
def kernel(x, cache, slots, D, sx, dx, sc, dc, ss, pad, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    slot = tl.load(slots + row * ss).to(tl.int64)
    if slot != pad:
        own = tl.load(x + row * sx + cols * dx, mask=cols < D)
        tl.store(cache + slot * sc + cols * dc, own, mask=cols < D)


def wrapper(x, cache, slots, pad=-1):
    T, D = x.shape
    if T and D:
        strides = *x.stride(), *cache.stride(), slots.stride(0)
        kernel[(T,)](x, cache, slots, D, *strides, pad, BLOCK=triton.next_power_of_2(D))
"""


def windowed(folder: Path) -> dict[str, Any]:
    return op(folder, "window", [tensor("x", ["B", "S"])], {"B": 2, "S": 16}, kwargs={"window": -1})


def grouped(folder: Path) -> dict[str, Any]:
    more = {"kwargs": {"group": -1}, "edges": {"empty": None, "special": "a maximum"}}
    return op(folder, "scales", [tensor("x", ["M", "N"])], {"M": 4, "N": 24}, **more)


def written(folder: Path, **more: Any) -> dict[str, Any]:
    slots = tensor("slots", ["T"], dtype="int32", init={"kind": "distinct", "low": -1, "high": "S"})
    given = [tensor("x", ["T", "D"]), tensor("cache", ["S", "D"]), slots]
    return op(folder, "write", given, {"T": 5, "D": 8, "S": 9}, kwargs={"pad": -1}, mutates=["cache"], **more)


@pytest.mark.parametrize(
    ("make", "kernel", "here", "instead", "case"),
    [
        (windowed, WINDOW, "at + 1 - window", "at - window", "window=1"),
        (grouped, SCALES, "mask=cols < group, ", "mask=place * group + cols < N, ", "group=3"),
        (grouped, SCALES, "group = N if group == -1 else group", "group = N", "group=1"),
        (written, WRITE, "slot != pad", "slot != -1", "pad=0"),
    ],
    ids=["a window", "a group that is no power of two", "one group", "a mark"],
)
def test_what_is_declared_as_off_is_tried_on(
    tmp_path: Path, make: Any, kernel: str, here: str, instead: str, case: str
) -> None:
    """Returns nothing. The careless kernel is right where the argument is off, and where it has the value beside that."""
    assert here in kernel
    require_passed(tmp_path / "honest", make(tmp_path), kernel)
    failure = check(tmp_path / "careless", make(tmp_path), kernel.replace(here, instead))["evidence"]["failure"]
    assert failure is not None and failure["case"].startswith(f"edge/kwarg[{case}"), failure


def test_what_is_none_is_a_whole_number_too(tmp_path: Path) -> None:
    kernel = """
@triton.jit
def kernel(x, out, N, sm, sn, times, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    own = tl.load(x + row * sm + cols * sn, mask=cols < N, other=0.0)
    tl.store(out + row * N + cols, tl.cumsum(own, 0) * times, mask=cols < N)


def wrapper(x, times=None):
    assert times is None or isinstance(times, int)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        times = 1 if times is None else TIMES
        kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), times, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""
    more = {"kwargs": {"times": None}, "edges": {"special": "sums"}}
    own = op(tmp_path, "absent", [tensor("x", ["M", "N"])], {"M": 4, "N": 24}, **more)
    require_passed(tmp_path / "honest", own, kernel.replace("TIMES", "times"))
    failure = check(tmp_path / "careless", own, kernel.replace("TIMES", "1"))["evidence"]["failure"]
    assert failure["case"] == "edge/kwarg[times=2]/float32"


@pytest.mark.parametrize(("value", "turns"), [(0, False), (1, True), (-3, False), (True, False), ("on", False)])
def test_a_comparison_turns_where_it_comes_out_otherwise(tmp_path: Path, value: object, turns: bool) -> None:
    own = windowed(tmp_path)
    assert arguments_turned.turns(own, "window", value) is turns
    assert arguments_turned.is_off(own, "window")
    # What an argument is compared with that is no number says nothing of that.
    assert not arguments_turned.is_off(written(tmp_path), "pad")


def test_a_mark_is_what_the_argument_says_in_inputs(tmp_path: Path) -> None:
    own, size = written(tmp_path), {"T": 9, "D": 8, "S": 9}
    plain = inputs.make_inputs(own, Case("edge/a/float32", "edge", "float32", size))
    moved = Case("edge/a/float32", "edge", "float32", size, kwargs={"pad": 0})
    assert list(probe_indices.marks(own, moved)) == [("slots", -1, 0)]
    slots = inputs.make_inputs(own, moved)["slots"]
    assert slots.tolist() == [max(slot, 0) for slot in plain["slots"].tolist()]
    assert -1 in plain["slots"].tolist()


@pytest.mark.parametrize(("fixed", "places"), [(None, 10), (["P"], 9)])
def test_distinct_integers_have_room_unless_ops_yaml_fixes_it(
    tmp_path: Path, fixed: list[str] | None, places: int
) -> None:
    """Returns nothing. With one length in all sizes a dim is as long as the distinct integers need: else the reference refuses the case."""
    table = tensor("table", ["B", "N"], dtype="int32", init={"kind": "unique_between", "low": 0, "high": "P"})
    lengths = tensor("lengths", ["B"], dtype="int32", init={"kind": "randint", "low": 1, "high": "N+1"})
    own = op(tmp_path, "pages", [tensor("x", ["P"]), table, lengths], {"P": 9, "B": 2, "N": 3})
    own["check_sizes"] = {"small": {"P": 9, "B": 2, "N": 3}, "other": {"P": 9, "B": 1, "N": 5}}
    own["sizes"] = own["check_sizes"]
    if fixed is not None:
        own["fixed"] = fixed
    assert bindings.fixed_lengths(own) == {"P": 9}
    assert probing.bound(own, {"B": 2, "N": 5}, 2)["P"] == places


def test_what_the_ops_own_function_raises_is_no_fault_of_the_kernels(tmp_path: Path) -> None:
    """Returns nothing. A file that says what must hold alone yields no cases."""
    kernel = """
@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


def wrapper(input):
    input = input.contiguous()
    out = torch.empty_like(input)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](input, out, out.numel(), BLOCK=64)
    return out
"""
    holds = "def holds(inputs, kwargs, out):\n    one, other = 1, 2, 3\n    return {'right': True}\n"
    random = {"kind": "judged", "by": "holds", "seed": None}
    more = {"random": random, "cases": "kernels/op/cases.py", "reference": None}
    own = declared("torch.bernoulli", [tensor("input", ["N"])], {"N": 24}, **more)
    documents = check(tmp_path, own, kernel, holds)
    failure = documents["evidence"]["failure"]
    assert documents["verdict"]["class"] == "unfit-cases"
    assert "`kernels/op/cases.py::holds` fails: ValueError: too many values to unpack" in failure["message"]
    assert (failure["place"]["file"], failure["place"]["line"]) == ("kernels/op/cases.py", 2)
    assert "`(inputs, kwargs, out)`" in failure["hint"]


def test_a_file_of_cases_says_what_it_lacks(tmp_path: Path) -> None:
    own = declared("torch.neg", [tensor("input", ["N"])], {"N": 24}, cases="kernels/op/cases.py")
    with pytest.raises(AssertionError):
        verdict(tmp_path, own, "def wrapper(input):\n    return input\n", "value = 1\n")
