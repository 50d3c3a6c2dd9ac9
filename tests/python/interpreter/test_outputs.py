"""Outputs compared as what they are: a right kernel whose bits are not torch's passes, and one that is wrong is rejected."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import WRONG, check, declared, require_passed, require_rejected, tensor, verdict

from t2t_harness.judging import unset

ROWS = {"M": 8, "N": 16}

DISTINCT = {"kind": "unique"}

FEW = {"kind": "randint", "low": 0, "high": 4}


def output(name: str, compare: str = "close", **more: Any) -> dict[str, Any]:
    """Returns a declared output."""
    return {"name": name, "compare": compare, "of": None, "dim": None, "tolerances": {}, **more}


TOPK = """
@triton.jit
def topk_kernel(x_ptr, values_ptr, indices_ptr, N, k, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < N
    x = tl.load(x_ptr + row * rows + offsets * columns, mask=inside, other=float("-inf"))
    left = inside
    for place in range(k):
        best = tl.max(tl.where(left, x, float("-inf")))
        # Of equal values the last, where torch takes another.
        at = tl.max(tl.where(left & (x == best), offsets, -1))
        tl.store(values_ptr + row * k + place, best)
        tl.store(indices_ptr + row * k + place, at.to(tl.int64){wrong})
        left = left & (offsets != at)


def wrapper(input, k):
    M, N = input.shape
    values = torch.empty((M, k), dtype=input.dtype, device="cuda")
    indices = torch.empty((M, k), dtype=torch.int64, device="cuda")
    if M:
        topk_kernel[(M,)](input, values, indices, N, k, *input.stride(), BLOCK=triton.next_power_of_2(N))
    return values, indices
"""


def topk(**more: Any) -> dict[str, Any]:
    outputs = [output("values"), output("indices", "indices", of="input", dim=-1)]
    few = tensor("input", ["M", "N"], init=FEW)
    return declared("torch.topk", [few], ROWS, kwargs={"k": 3}, outputs=outputs, **more)


def test_indices_of_ties_are_free(tmp_path: Path) -> None:
    documents = check(tmp_path, topk(), TOPK.format(wrong=""))
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]


def test_without_a_word_on_outputs_they_are_free_too(tmp_path: Path) -> None:
    assert verdict(tmp_path, {**topk(), "outputs": None}, TOPK.format(wrong="")) == (None, "")


INDICES = {
    "one further": (" + 1", "indices are wrong"),
    "below zero": (" - 1", "indices are wrong"),
    "beyond": (" + 1000", "which is outside"),
    "the same again": (" * 0 + tl.max(tl.where(x == best, offsets, -1))", "for the second time"),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_of_other_values_are_rejected(name: str, tmp_path: Path) -> None:
    wrong, message = INDICES[name]
    class_, said = verdict(tmp_path, topk(), TOPK.format(wrong=wrong))
    assert class_ == "mismatch" and said.startswith("output `indices`: ") and message in said, said


def test_an_output_that_does_not_matter_is_not_asked_for(tmp_path: Path) -> None:
    op = topk()
    op["outputs"][1] = output("indices", "ignore")
    assert verdict(tmp_path, op, TOPK.format(wrong=" + 1000")) == (None, "")


def test_an_output_has_its_own_tolerance(tmp_path: Path) -> None:
    kernel = TOPK.format(wrong="").replace("place, best)", "place, best * 1.001)")
    op = topk()
    assert verdict(tmp_path / "strict", op, kernel)[0] == "mismatch"
    op["outputs"][0]["tolerances"] = {"float32": [1e-2, 1e-2]}
    assert verdict(tmp_path / "loose", op, kernel) == (None, "")


def test_outputs_that_torch_does_not_return_are_no_kernels_fault(tmp_path: Path) -> None:
    op = topk()
    op["outputs"] = op["outputs"][:1]
    class_, said = verdict(tmp_path, op, TOPK.format(wrong=""))
    assert class_ == "unfit-cases" and said == "torch returns 2 outputs, and `outputs` names 1: `values`"


ARGMAX = """
@triton.jit
def argmax_kernel(x_ptr, out_ptr, N, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * rows + offsets * columns, mask=offsets < N, other=float("-inf"))
    at = {at}(tl.where(x == tl.max(x), offsets, {other}))
    tl.store(out_ptr + row, at.to(tl.int64))


def wrapper(input, dim):
    assert dim in (-1, 1)
    out = torch.empty(input.shape[:1], dtype=torch.int64, device="cuda")
    if out.numel():
        argmax_kernel[(input.shape[0],)](input, out, input.shape[1], *input.stride(), BLOCK=64)
    return out
"""

ENDS = {
    "the first": ("tl.min", "1 << 20", None),
    "the last": ("tl.max", "-1", None),
    "any": ("tl.min", "0", "mismatch"),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_index_of_a_largest_value_may_be_any(name: str, tmp_path: Path) -> None:
    at, other, class_ = ENDS[name]
    few = tensor("input", ["M", "N"], init=FEW)
    outputs = [output("indices", "indices", of="input", dim=-1)]
    op = declared("torch.argmax", [few], ROWS, kwargs={"dim": -1}, outputs=outputs)
    found, said = verdict(tmp_path, op, ARGMAX.format(at=at, other=other))
    assert found == class_, said


NONZERO = """
@triton.jit
def nonzero_kernel(x_ptr, count_ptr, out_ptr, numel, N, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    is_set = (tl.load(x_ptr + offsets, mask=offsets < numel, other=0) != 0).to(tl.int32)
    count = tl.sum(is_set)
    tl.store(count_ptr, count)
    # From the last to the first: another order than torch's.
    place = count - tl.cumsum(is_set, 0)
    tl.store(out_ptr + 2 * place, (offsets // N).to(tl.int64), mask=is_set == 1)
    tl.store(out_ptr + 2 * place + 1, (offsets % N{wrong}).to(tl.int64), mask=is_set == 1)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty((x.numel(), 2), dtype=torch.int64, device="cuda")
    count = torch.zeros(1, dtype=torch.int32, device="cuda")
    if x.numel():
        nonzero_kernel[(1,)](x, count, out, x.numel(), x.shape[1], BLOCK=triton.next_power_of_2(x.numel()))
    return out[: int(count.item())]
"""


@pytest.mark.parametrize(
    ("compare", "wrong", "class_"), [("rows", "", None), ("rows", " + 1", "mismatch"), ("close", "", "mismatch")]
)
def test_rows_in_any_order_of_a_shape_that_depends_on_values(
    compare: str, wrong: str, class_: str | None, tmp_path: Path
) -> None:
    mask = tensor("input", ["M", "N"], dtype="bool", init={"kind": "mask", "p": 0.5})
    op = declared("torch.nonzero", [mask], ROWS, outputs=[output("places", compare)])
    found, said = verdict(tmp_path, op, NONZERO.format(wrong=wrong))
    assert found == class_, said


def test_rows_in_any_order_may_come_in_another_order_in_the_next_run(tmp_path: Path) -> None:
    mask = tensor("input", ["M", "N"], dtype="bool", init={"kind": "mask", "p": 0.5})
    op = declared("torch.nonzero", [mask], ROWS, outputs=[output("places", "rows")])
    # As atomics have it: the second run takes places from the other end.
    turns = NONZERO.format(wrong="").replace("def wrapper(", "CALLS = []\n\n\ndef wrapper(")
    turns = turns.replace("    x = input", "    CALLS.append(1)\n    x = input").replace(
        "BLOCK=tri", "TURN=len(CALLS) % 2, BLOCK=tri"
    )
    turns = turns.replace("BLOCK: tl.constexpr", "TURN: tl.constexpr, BLOCK: tl.constexpr")
    turns = turns.replace(
        "    tl.store(out_ptr + 2 * place,",
        "    if TURN:\n        place = count - 1 - place\n    tl.store(out_ptr + 2 * place,",
        1,
    )
    assert verdict(tmp_path, op, turns) == (None, "")


UNIQUE = """
@triton.jit
def unique_kernel(x_ptr, seen_ptr, numel, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < numel
    x = tl.load(x_ptr + offsets, mask=inside, other=0)
    tl.store(seen_ptr + x, x, mask=inside{skip})


def wrapper(input, sorted=True):
    x = input.contiguous()
    seen = torch.full((8,), -1, dtype=x.dtype, device="cuda")
    if x.numel():
        unique_kernel[(triton.cdiv(x.numel(), 64),)](x, seen, x.numel(), BLOCK=64)
    found = [int(one) for one in seen.cpu().numpy() if one >= 0][::-1]
    picked = torch.empty(len(found), dtype=x.dtype, device="cuda")
    if found:
        order = torch.tensor(found, dtype=x.dtype)
        unique_kernel[(1,)](torch.arange(len(found)), picked, len(found), BLOCK=8)
        picked.copy_(order)
    return picked
"""


@pytest.mark.parametrize(("skip", "class_"), [("", None), (" & (x > 0)", "shape")])
def test_a_set_in_any_order(skip: str, class_: str | None, tmp_path: Path) -> None:
    whole = tensor("input", ["M", "N"], dtype="int64", init={"kind": "randint", "low": 0, "high": 6})
    op = declared("torch.unique", [whole], ROWS, kwargs={"sorted": False}, outputs=[output("values", "set")])
    found, said = verdict(tmp_path, op, UNIQUE.format(skip=skip))
    assert found == class_, said


SORT = """
@triton.jit
def sort_kernel(x_ptr, values_ptr, indices_ptr, N, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    for at in range(N):
        own = tl.load(x_ptr + row * rows + at * columns)
        x = tl.load(x_ptr + row * rows + offsets * columns, mask=offsets < N, other=float("inf"))
        # Of equal values the last comes first.
        place = tl.sum(((x < own) | ((x == own) & (offsets > at))).to(tl.int32) * (offsets < N))
        tl.store(values_ptr + row * N + place, own)
        tl.store(indices_ptr + row * N + place, {index})


def wrapper(input, dim=-1):
    assert dim in (-1, 1)
    values = torch.empty(input.shape, dtype=input.dtype, device="cuda")
    indices = torch.zeros(input.shape, dtype=torch.int64, device="cuda")
    if values.numel():
        sort_kernel[(input.shape[0],)](input, values, indices, input.shape[1], *input.stride(), BLOCK=triton.next_power_of_2(input.shape[1]))
    return values, indices
"""


@pytest.mark.parametrize(("index", "class_"), [("at", None), ("(at + 1) % N", "mismatch")])
def test_sort_without_stability(index: str, class_: str | None, tmp_path: Path) -> None:
    few = tensor("input", ["M", "N"], init=FEW)
    outputs = [output("values", "exact"), output("indices", "indices", of="input", dim=-1)]
    op = declared("torch.sort", [few], ROWS, outputs=outputs)
    found, said = verdict(tmp_path, op, SORT.format(index=index))
    assert found == class_, said


SCALE = """
@triton.jit
def scale_kernel(x_ptr, out_ptr, N, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * rows + offsets * columns, mask=offsets < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.max(tl.abs(x)) / 448.0{wrong})


def wrapper(x):
    out = torch.empty(x.shape[:1], dtype=torch.float32, device="cuda")
    if x.numel():
        scale_kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

SCALES = "def scales(x):\n    return x.float().abs().amax(-1) / 448.0\n"


@pytest.mark.parametrize(("wrong", "class_"), [("", None), (" * 1.05", "mismatch"), (" + 0.001", "mismatch")])
def test_small_results_of_a_wider_type_are_held_to_their_size(wrong: str, class_: str | None, tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(SCALES, encoding="utf-8")
    reference = {"file": "reference.py", "name": "scales", "init": {}, "root": str(tmp_path)}
    edges = {"special": "of a row that holds NaN no kernel asks for the scale"}
    op = declared("", [tensor("x", ["M", "N"])], ROWS, torch=None, reference=reference, dtypes=["bfloat16"])
    op["edges"] = edges
    assert verdict(tmp_path / "check", op, SCALE.format(wrong=wrong))[0] == class_


PADDED = '''"""Sines of the rows that count, and the places of those that are positive, in front."""

import torch


def padded(x, lengths):
    live = torch.arange(x.shape[1], device=x.device)[None, :] < lengths[:, None]
    count = (live & (x > 0)).int().cumsum(1)
    return torch.where(live, torch.sin(x), torch.nan), torch.where(live, count, -1).int()
'''

PADDED_KERNEL = """
@triton.jit
def kernel(x, lengths, out, counts, S, sm, sn, sl, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    live = at < tl.load(lengths + row * sl)
    value = tl.load(x + row * sm + at * sn, mask=live, other=0.0)
    tl.store(out + row * S + at, tl.sin(value), mask=live)
    tl.store(counts + row * S + at, tl.cumsum((value > 0).to(tl.int32), 0), mask=live)


def wrapper(x, lengths):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    counts = torch.empty(x.shape, dtype=torch.int32, device=x.device)
    if out.numel():
        block = triton.next_power_of_2(x.shape[1])
        kernel[(x.shape[0],)](x, lengths, out, counts, x.shape[1], *x.stride(), lengths.stride(0), BLOCK=block)
    return out, counts
"""


def padded(folder: Path, *told: object) -> dict[str, Any]:
    """Returns the op, of whose two outputs nothing is asked where torch has what is `told`."""
    (folder / "reference.py").write_text(PADDED, encoding="utf-8")
    reference = {"file": "reference.py", "name": "padded", "init": {}, "root": str(folder)}
    lengths = tensor("lengths", ["M"], dtype="int32", init={"kind": "randint", "low": 0, "high": "N+1"})
    outputs = [
        output(name, how) if one is None else output(name, how, unset=one)
        for name, how, one in zip(("out", "counts"), ("close", "exact"), told, strict=True)
    ]
    given = [tensor("x", ["M", "N"]), lengths]
    return declared("", given, {"M": 5, "N": 24}, torch=None, reference=reference, outputs=outputs)


def test_what_is_unset_may_be_anything_and_nothing_else_may(tmp_path: Path) -> None:
    """Returns nothing. What the kernel does not write differs from run to run."""
    require_passed(tmp_path / "honest", padded(tmp_path, "nan", -1), PADDED_KERNEL)
    for told in (("nan", None), (None, -1), ("nan", -2)):
        class_, _ = verdict(tmp_path / str(told), padded(tmp_path, *told), PADDED_KERNEL)
        assert class_ in WRONG, told
    for written, instead in (
        ("at < tl.load", "at + 1 < tl.load"),
        ("tl.sin(value)", "tl.cos(value)"),
        ("value > 0", "value >= 1"),
    ):
        require_rejected(tmp_path / instead, padded(tmp_path, "nan", -1), PADDED_KERNEL, written, instead)


def test_a_number_that_is_unset_is_that_of_the_results_type() -> None:
    how: Any = {"unset": 0.1}
    assert unset.places(how, torch.tensor([0.1, 0.2])).tolist() == [True, False]
    assert unset.places(how, torch.tensor([0.1, 0.2], dtype=torch.float16)).tolist() == [True, False]
    assert unset.places({"unset": "nan"}, torch.tensor([1, 2])) is None
    assert unset.places({}, torch.tensor([math.nan])) is None
