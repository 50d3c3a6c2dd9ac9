"""Kernels whose programs depend on the order in which they run, or are in each other's way, and those that may be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import check, declared, tensor

DIMS = {"M": 12, "N": 40}

SUMS = """@triton.jit
def kernel(x, out, work, lock, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + row * n + at, mask=(at < n) & (row < rows), other=0.0), axis=0)
    {body}


def wrapper(input):
    input = input.contiguous()
    rows, n = input.shape
    out = torch.{made}((), device=input.device)
    work = torch.{made}(rows + 1, device=input.device)
    lock = torch.zeros(1, dtype=torch.int32, device=input.device)
    kernel[(max(rows, 1),)](input, out, work, lock, rows, n, BLOCK=triton.next_power_of_2(max(n, 1)))
    return out
"""

DOUBLES: dict[str, Any] = {"kwargs": {"other": 2}, "edges": {"kwargs": None}}
"""Kernels that have the factor written into them."""

ROWS = """@triton.jit
def kernel(x, out, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    {body}


def wrapper(input, other):
    input = input.contiguous()
    rows, n = input.shape
    out = torch.{made}(input.shape, device=input.device)
    if rows * n:
        kernel[(rows,)](input, out, rows, n, BLOCK=triton.next_power_of_2(n))
    return out
"""


def failure_of(documents: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = documents["evidence"]["failure"]
    return found


def judged(tmp_path: Path, torch_name: str, source: str, **more: Any) -> dict[str, Any]:
    """Returns the documents of the check of a kernel of one matrix."""
    return check(tmp_path, declared(torch_name, [tensor("input", ["M", "N"])], DIMS, **more), source)


def require_conflict(documents: dict[str, Any], words: str, line: str | None = None) -> None:
    record = failure_of(documents)
    assert documents["verdict"]["class"] == "nondeterministic", record
    assert words in record["message"], record["message"]
    if line is not None:
        assert line in record["excerpt"], record


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("tl.store(out, tl.load(out) + part)", "reads what program"),
        (
            "if row == 0:\n        tl.store(out, part)\n    else:\n        tl.store(out, tl.load(out) + part)",
            "reads what",
        ),
        (
            "before = tl.load(work + row)\n    tl.store(work + row + 1, before + part)\n"
            "    if row == rows - 1:\n        tl.store(out, before + part)",
            "reads what program (0, 0, 0) stores in the same launch, in `work`",
        ),
        (
            "tl.store(work + row, part)\n    if row == rows - 1:\n"
            "        total = 0.0\n        for one in range(rows):\n            total += tl.load(work + one)\n"
            "        tl.store(out, total)",
            "reads what program (0, 0, 0) stores in the same launch, in `work`",
        ),
    ],
    ids=["lost update", "first one stores", "chain", "last one sums up"],
)
def test_a_sum_that_needs_the_order_of_programs_is_found(tmp_path: Path, body: str, words: str) -> None:
    documents = judged(tmp_path, "torch.sum", SUMS.format(body=body, made="zeros"))
    require_conflict(documents, words, "tl.load(")


def test_two_programs_that_store_different_values_are_found(tmp_path: Path) -> None:
    body = (
        """tl.store(out + row * n + at, tl.load(x + row * n + at, mask=at < n) * 2.0, mask=row * n + at < rows * n)"""
    )
    documents = judged(tmp_path, "torch.mul", ROWS.format(body=body, made="empty"), **DOUBLES)
    record = failure_of(documents)
    assert documents["verdict"]["class"] == "nondeterministic", record
    assert "`kernel`: program (1, 0, 0) stores other values than program (0, 0, 0) stored there, in `out`" in str(
        record
    )
    assert record["place"]["file"] == "kernels/op/v1.py"
    assert record["excerpt"].startswith("tl.store(")


def test_what_a_neighbour_makes_of_its_own_input_is_found(tmp_path: Path) -> None:
    # Program i doubles its row in place, and program i + 1 halves what it read of it.
    body = """mine = tl.load(x + row * n + at, mask=at < n)
    tl.store(out + row * n + at, mine * 2.0, mask=at < n)
    other = tl.load(out + (row + 1) % rows * n + at, mask=at < n)
    tl.store(out + row * n + at, mine * 2.0 + 0.0 * other, mask=at < n)"""
    documents = judged(tmp_path, "torch.mul", ROWS.format(body=body, made="zeros"), **DOUBLES)
    require_conflict(documents, "reads what program")


def test_an_order_that_no_address_shows_is_found(tmp_path: Path) -> None:
    # The last program's row is right if the ones before it were there, which it asks by a value that it ignores.
    body = """seen = 0.0
    for one in range(0, row):
        seen += tl.load(out + one * n).to(tl.float32) * 0.0
    mine = tl.load(x + row * n + at, mask=at < n)
    tl.store(out + row * n + at, mine * 2.0 + seen, mask=at < n)"""
    documents = judged(tmp_path, "torch.mul", ROWS.format(body=body, made="empty"), **DOUBLES)
    require_conflict(documents, "reads what program")


@pytest.mark.parametrize(
    "body",
    [
        "tl.atomic_add(out, part)",
        "tl.store(work + row, part)\n    if tl.atomic_add(work + rows, 1.0) == rows - 1.0:\n"
        "        total = 0.0\n        for one in range(rows):\n            total += tl.load(work + one)\n"
        "        tl.store(out, total)",
        "while tl.atomic_cas(lock, row, row) != row:\n        pass\n"
        "    tl.store(out, tl.load(out) + part)\n    tl.atomic_xchg(lock, row + 1)",
        "while tl.load(lock, volatile=True) != row:\n        pass\n"
        "    tl.store(out, tl.load(out) + part)\n    tl.store(lock, row + 1)",
    ],
    ids=["atomic", "last one by an atomic", "lock", "volatile"],
)
def test_programs_may_wait_for_each_other(tmp_path: Path, body: str) -> None:
    documents = judged(tmp_path, "torch.sum", SUMS.format(body=body, made="zeros"))
    assert documents["verdict"]["verdict"] == "passed", failure_of(documents)
    assert not any("no result depends" in note for note in documents["evidence"]["notes"])


def test_a_kernel_that_ends_in_one_order_alone_is_found(tmp_path: Path) -> None:
    body = (
        "while tl.load(lock) != row:\n        pass\n    tl.store(out, tl.load(out) + part)\n    tl.store(lock, row + 1)"
    )
    documents = judged(tmp_path, "torch.sum", SUMS.format(body=body, made="zeros"))
    require_conflict(documents, "does not end where programs run in another order")


@pytest.mark.parametrize(
    "body",
    [
        "tl.store(out + row * n + at, tl.load(x + row * n + at, mask=at < n) * 2.0, mask=at < n)",
        # The last block goes back to end where the row ends: two programs store the same values.
        "place = tl.minimum(row * n + at, rows * n - 1)\n    tl.store(out + place, tl.load(x + place) * 2.0)",
        # In place, and again.
        "tl.store(out + row * n + at, tl.load(x + row * n + at, mask=at < n), mask=at < n)\n"
        "    tl.store(out + row * n + at, tl.load(out + row * n + at, mask=at < n) * 2.0, mask=at < n)",
    ],
    ids=["plain", "same values", "own rows"],
)
def test_programs_that_are_not_in_each_other_s_way_pass(tmp_path: Path, body: str) -> None:
    documents = judged(tmp_path, "torch.mul", ROWS.format(body=body, made="empty"), **DOUBLES)
    assert documents["verdict"]["verdict"] == "passed", failure_of(documents)
    assert not any("no result depends" in note for note in documents["evidence"]["notes"])


def test_a_conflict_on_which_no_result_depends_is_told(tmp_path: Path) -> None:
    body = """mine = tl.load(x + row * n + at, mask=at < n)
    tl.store(out + row * n + at, mine, mask=at < n)
    whole = tl.load(out + tl.minimum(row * n + at, rows * n - 1))
    tl.store(out + row * n + at, tl.where(at < n, whole, 0.0) * 2.0, mask=at < n)"""
    documents = judged(tmp_path, "torch.mul", ROWS.format(body=body, made="zeros"), **DOUBLES)
    assert documents["verdict"]["verdict"] == "passed", failure_of(documents)
    (note,) = [one for one in documents["evidence"]["notes"] if "no result depends" in one]
    assert "reads what program" in note and "in `out`" in note


def test_where_runs_may_differ_two_programs_may_store_what_they_like(tmp_path: Path) -> None:
    body = """tl.store(out + row * n + at, tl.load(x + row * n + at, mask=at < n) * 2.0, mask=at < n)
    tl.store(count, row)"""
    source = ROWS.format(body=body, made="empty").replace("out, rows,", "out, count, rows,")
    source = source.replace("input, out, rows,", "input, out, count, rows,")
    source = source.replace("    if rows * n:", "    count = torch.zeros(1, dtype=torch.int32)\n    if rows * n:")
    documents = judged(tmp_path, "torch.mul", source, **DOUBLES, deterministic=False)
    assert documents["verdict"]["verdict"] == "passed", failure_of(documents)
    assert not any("no result depends" in note for note in documents["evidence"]["notes"])


@pytest.mark.parametrize(
    "body",
    [
        "tl.atomic_add(out, part)\n    if row == rows - 1:\n        tl.store(work, tl.load(out))",
        "tl.atomic_add(work, part)\n    if row == rows - 1:\n        tl.store(out, tl.load(work))",
        "if row == 0:\n        tl.store(out, part)\n    else:\n        tl.atomic_add(out, part)",
    ],
    ids=["of no consequence", "last one reads", "first one stores"],
)
def test_an_atomic_operation_does_not_hide_an_order(tmp_path: Path, body: str) -> None:
    documents = judged(tmp_path, "torch.sum", SUMS.format(body=body, made="zeros"))
    if "tl.store(work" in body:
        assert documents["verdict"]["verdict"] == "passed", failure_of(documents)
    else:
        require_conflict(documents, "the order in which programs run that use atomic operations")
