"""Ops whose inputs say where segments of rows begin and end: what is drawn for them, and faults that show in segments of many rows alone. Beside each the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, require_passed, tensor

from t2t_harness.cases import arguments_compared, bindings, cases, inputs, probe_segments, probes
from t2t_harness.op import valueless
from t2t_harness.phases import permitted

REFERENCE = """
import torch

def summed(x, ends, reduce="sum"):
    counts = ends[1:] - ends[:-1]
    places = torch.repeat_interleave(torch.arange(counts.numel(), device=x.device), counts.long())
    out = x.new_zeros(counts.numel(), x.shape[1]).index_add_(0, places, x)
    return out / counts.clamp(min=1)[:, None] if reduce == "mean" else out

def moving(x, ends, longest, window=-1):
    out = torch.zeros_like(x)
    for first, last in zip(ends.tolist()[:-1], ends.tolist()[1:]):
        for row in range(first, last):
            out[row] = x[max(first, row - window) if window >= 0 else first : row + 1].sum(0)
    return out
"""

SUMMED = """
@triton.jit
def kernel(x_ptr, ends_ptr, out_ptr, D, st, sd, MEAN: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    segment, d = tl.program_id(0), tl.arange(0, BD)
    first, last = tl.load(ends_ptr + segment), tl.load(ends_ptr + segment + 1)
    total = tl.zeros((BD,), tl.float32)
    for t in range(first, last, BT):
        rows = t + tl.arange(0, BT)
        mask = (rows[:, None] < last) & (d[None, :] < D)
        total += tl.sum(tl.load(x_ptr + rows[:, None] * st + d[None, :] * sd, mask=mask, other=0.0), 0)
    count = tl.maximum(last - first, 1)
    tl.store(out_ptr + segment * D + d, total / count if MEAN else total, mask=d < D)

def wrapper(x, ends, reduce="sum"):
    if reduce not in ("sum", "mean"):
        raise ValueError(reduce)
    D, ends = x.shape[1], ends.contiguous()
    out = torch.empty((ends.numel() - 1, D), dtype=x.dtype, device=x.device)
    if out.numel():
        block = triton.next_power_of_2(D)
        kernel[(ends.numel() - 1,)](x, ends, out, D, *x.stride(), MEAN=reduce == "mean", BT=16, BD=block)
    return out
"""

MOVING = """
@triton.jit
def kernel(x_ptr, ends_ptr, out_ptr, D, st, sd, window, BT: tl.constexpr, BD: tl.constexpr):
    segment, d = tl.program_id(1), tl.arange(0, BD)
    first, last = tl.load(ends_ptr + segment), tl.load(ends_ptr + segment + 1)
    begin = first + tl.program_id(0) * BT
    rows = begin + tl.arange(0, BT)
    least = tl.where(window >= 0, tl.maximum(first, rows - window), first)
    total = tl.zeros((BT, BD), tl.float32)
    for row in range(tl.min(least), tl.minimum(begin + BT, last)):
        x = tl.load(x_ptr + row * st + d * sd, mask=d < D, other=0.0)
        total += tl.where(((row >= least) & (row <= rows))[:, None], x[None, :], 0.0)
    tl.store(out_ptr + rows[:, None] * D + d[None, :], total, mask=(rows[:, None] < last) & (d[None, :] < D))

def wrapper(x, ends, longest, window=-1):
    (T, D), ends = x.shape, ends.contiguous()
    out = torch.empty((T, D), dtype=x.dtype, device=x.device)
    if out.numel():
        grid = (triton.cdiv(min(longest, T), 16), ends.numel() - 1)
        kernel[grid](x, ends, out, D, *x.stride(), window, BT=16, BD=triton.next_power_of_2(D))
    return out
"""

FAULTS = {
    "a mean of sixteen at most": (
        SUMMED,
        "count = tl.maximum(last - first, 1)",
        "count = tl.minimum(tl.maximum(last - first, 1), BT)",
    ),
    "the first block of a segment alone": (
        SUMMED,
        "range(first, last, BT)",
        "range(first, tl.minimum(last, first + BT), BT)",
    ),
    "as many blocks as in even segments": (MOVING, "min(longest, T), 16)", "T, 16 * (ends.numel() - 1))"),
    "a window that begins in its own block": (
        MOVING,
        "range(tl.min(least), ",
        "range(tl.where(window >= 1, begin, tl.min(least)), ",
    ),
    "the window of the first segment": (MOVING, "tl.maximum(first, rows - window)", "rows - window"),
}


def segmented(folder: Path, kernel: str, along: int | str = "E + 1", rows: str = "T") -> dict[str, Any]:
    """Returns the op that `kernel` is for, whose offsets are as many as `along` says, for as many `rows`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    is_moving = kernel.startswith(MOVING[:60]) and "longest" in kernel
    reference = {"file": "reference.py", "name": "moving" if is_moving else "summed", "init": {}, "root": str(folder)}
    ends = tensor("ends", [along], dtype="int32", init={"kind": "offsets", "total": rows})
    kwargs = {"longest": 4096, "window": -1} if is_moving else {"reduce": "sum"}
    binding = {"T": 24, "D": 6, "E": 4}
    return declared("", [tensor("x", [rows, "D"]), ends], binding, torch=None, reference=reference, kwargs=kwargs)


@pytest.mark.parametrize("kernel", [SUMMED, MOVING], ids=["summed", "moving"])
@pytest.mark.parametrize("along", ["E + 1", "E"])
def test_honest_kernels_pass(tmp_path: Path, kernel: str, along: str) -> None:
    # A length that is true of all inputs, and that the reference does not read, is tried at no other value.
    require_passed(tmp_path / "right", segmented(tmp_path, kernel, along), kernel)


@pytest.mark.parametrize(("kernel", "written", "instead"), FAULTS.values(), ids=FAULTS)
def test_faults_are_seen(tmp_path: Path, kernel: str, written: str, instead: str) -> None:
    assert written in kernel
    documents = check(tmp_path / "wrong", segmented(tmp_path, kernel), kernel.replace(written, instead))
    assert documents["verdict"]["class"] in ("mismatch", "nan", "out-of-bounds"), documents["evidence"]["failure"]


@pytest.mark.parametrize("rows", ["2 * T", "T + E"])
def test_faults_are_seen_where_the_rows_are_an_expression_of_dims(tmp_path: Path, rows: str) -> None:
    kernel, written, instead = FAULTS["a window that begins in its own block"]
    documents = check(tmp_path / "wrong", segmented(tmp_path, kernel, rows=rows), kernel.replace(written, instead))
    assert documents["verdict"]["class"] == "mismatch", documents["evidence"]["failure"]
    require_passed(tmp_path / "right", segmented(tmp_path, kernel, rows=rows), kernel)


@pytest.mark.parametrize("along", ["E + 1", "E"])
def test_offsets_begin_and_end_as_declared_in_every_case(tmp_path: Path, along: str) -> None:
    op = segmented(tmp_path, MOVING, along)
    op["kwargs"]["block"] = 16
    request = {"op": op, "lane": "interpreter", "root": "", "variant": {"module": "torch"}}
    listed = [*cases.declared_cases(op), *cases.fixed_edges(op), *probes.cases_of(request, [])]
    assert {"edge/planted[ends]/float32", "edge/bounds/float32"} <= {case.name for case in listed}
    for case in listed:
        made = inputs.make_inputs(op, case)["ends"]
        assert made.numel() >= 2 and bool((made.diff() >= 0).all()), case.name
        assert made[0] == 0 and made[-1] == case.binding["T"], case.name


def test_there_are_no_offsets_without_a_first_and_a_last(tmp_path: Path) -> None:
    op = segmented(tmp_path, SUMMED)
    assert bindings.is_possible(op, {"T": 4, "D": 2, "E": 1})
    assert not bindings.is_possible(op, {"T": 4, "D": 2, "E": 0})


def test_what_is_asked_of_an_op_without_values_has_rows_in_its_segments(tmp_path: Path) -> None:
    op = segmented(tmp_path, MOVING)
    given = valueless.inputs(op, {"T": 24, "D": 6, "E": 4}, "float32")
    valueless.zero(op, {"T": 24, "D": 6, "E": 4}, given)
    assert given["ends"].tolist() == [0, 6, 12, 18, 24] and not torch.count_nonzero(given["x"])
    # Between zeros the op would be nothing but its fills, which no wrapper could then call.
    assert permitted.own_operations(op) == frozenset()


def test_segments_of_several_blocks_are_not_made_shorter(tmp_path: Path) -> None:
    op = segmented(tmp_path, MOVING)
    request = {"op": op, "lane": "interpreter", "root": str(tmp_path), "variant": {}}
    found = {case.name.split("/")[1]: case for case in probes.cases_of(request, [])}
    assert probe_segments.is_of_segments(op, found["segments[T=131]"])
    windows = [case for word, case in found.items() if word.startswith("kwarg[window=") and "T=131" in word]
    assert windows
    assert all(probe_segments.is_of_segments(op, case) for case in windows)
    assert not any(probe_segments.is_of_segments(op, one) for case in windows for one in cases.smaller(op, case))
    assert not probe_segments.is_of_segments(op, found["kwarg[window=0]"])


def test_an_argument_that_the_reference_does_not_read_is_known(tmp_path: Path) -> None:
    op = segmented(tmp_path, MOVING)
    assert arguments_compared.is_ignored(op, "longest")
    assert not any(arguments_compared.is_ignored(op, name) for name in ("window", "x", "other"))
    (tmp_path / "reference.py").write_text(
        REFERENCE.replace("out = torch.zeros_like(x)\n", "out = eval('x * longest')\n")
    )
    assert not arguments_compared.is_ignored(op, "longest")
