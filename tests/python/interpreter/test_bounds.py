"""Kernels that read or write outside of all memory that their call has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from test_check import check, declaration

from t2t_harness.faults import bounds

HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
"""

WRAPPER = """


def triton_double(input, other):
    input = input.contiguous()
    out = torch.empty(input.shape, device=input.device)
    n = input.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 32),)](input, other, out, n, BLOCK=32)
    return out
"""

HONEST = """def kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)
"""


def judged(tmp_path: Path, kernel: str, wrapper: str = WRAPPER) -> dict[str, Any]:
    return check(tmp_path, HEAD + kernel + wrapper, declaration(seeds=1))


def failure_of(reply: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = reply["documents"]["evidence"]["failure"]
    return found


def test_an_honest_kernel_reads_and_writes_within(tmp_path: Path) -> None:
    reply = judged(tmp_path, HONEST)
    assert reply["outcome"] == "passed", failure_of(reply)
    assert not any("outside" in note for note in reply["documents"]["evidence"]["notes"])


@pytest.mark.parametrize(
    "write",
    [
        "tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n))",
        "tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at <= n)",
        "tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)\n    tl.store(out - 1, 0.0)",
        "tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)\n    tl.atomic_add(out + n, 1.0)",
    ],
    ids=["no mask", "one too many", "before", "atomic"],
)
def test_a_write_outside_is_found_with_its_line(tmp_path: Path, write: str) -> None:
    lines = HONEST.splitlines()
    reply = judged(tmp_path, "\n".join([*lines[:2], f"    {write}"]) + "\n")
    record = failure_of(reply)
    assert (reply["outcome"], record["class"]) == ("rejected", "out-of-bounds")
    assert "`kernel` writes" in record["message"] and "of `out`" in record["message"]
    assert record["excerpt"].startswith("tl.")


def test_a_read_outside_that_a_result_depends_on_is_a_wrong_result(tmp_path: Path) -> None:
    kernel = HONEST.replace(
        "tl.load(x + at, mask=at < n)", "(tl.load(x + at, mask=at < n) + 0.0 * tl.load(x + at + 1))"
    )
    reply = judged(tmp_path, kernel)
    assert (reply["outcome"], failure_of(reply)["class"]) == ("rejected", "nan")


def test_a_read_outside_that_no_result_depends_on_is_told(tmp_path: Path) -> None:
    reply = judged(tmp_path, HONEST.replace("tl.load(x + at, mask=at < n)", "tl.where(at < n, tl.load(x + at), 0.0)"))
    assert reply["outcome"] == "passed", failure_of(reply)
    (note,) = [one for one in reply["documents"]["evidence"]["notes"] if "outside" in one]
    assert "`kernel` reads" in note and "of `x`" in note


def test_memory_that_a_kernel_finds_through_a_table_of_addresses_is_its_call_s(tmp_path: Path) -> None:
    kernel = """def kernel(table, n, BLOCK: tl.constexpr):
    x = tl.load(table).to(tl.pointer_type(tl.float32))
    out = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)
"""
    wrapper = """


def triton_double(input, other):
    input = input.contiguous()
    out = torch.empty(input.shape, device=input.device)
    work = torch.empty(8, device=input.device)
    table = torch.tensor([input.data_ptr(), out.data_ptr()], dtype=torch.int64, device=input.device)
    n = input.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 32),)](table, n, BLOCK=32)
    return out
"""
    reply = judged(tmp_path, kernel, wrapper)
    # No launch is given the result itself, which is another matter.
    assert failure_of(reply)["class"] == "torch-fallback"


def test_what_a_wrapper_catches_is_found_all_the_same(tmp_path: Path) -> None:
    wrapper = WRAPPER.replace(
        "        kernel[(triton.cdiv(n, 32),)](input, other, out, n, BLOCK=32)\n",
        """        try:
            kernel[(triton.cdiv(n, 32),)](input, other, out, n, BLOCK=32)
        except Exception:
            pass
""",
    )
    lines = HONEST.splitlines()
    write = "tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)\n    tl.store(out + n, 0.0)"
    reply = judged(tmp_path, "\n".join([*lines[:2], f"    {write}"]) + "\n", wrapper)
    assert (reply["outcome"], failure_of(reply)["class"]) == ("rejected", "out-of-bounds")


SUMS = """def kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    {body}


def triton_double(input, other):
    x = input.contiguous()
    out = torch.empty(x.shape, device=x.device)
    n = x.shape[-1] if x.numel() else 0
    if n > 0:
        kernel[(x.numel() // n,)](x, out, n, BLOCK=2 * triton.next_power_of_2(n))
    return out
"""


@pytest.mark.parametrize(
    ("body", "class_"),
    [
        (
            "mine = tl.load(x + row * n + at, mask=at < n)\n    whole = tl.sum(mine, axis=0) - tl.sum("
            "tl.load(x + row * n + at, mask=at < n, other=0.0), axis=0)\n"
            "    tl.store(out + row * n + at, 2.0 * mine + whole, mask=at < n)",
            "nan",
        ),
        (
            "mine = tl.load(x + row * n + at, mask=at < n)\n    whole = tl.sum(tl.where(at < n, mine, 0.0), axis=0)\n"
            "    tl.store(out + row * n + at, 2.0 * mine + tl.where(whole > 0.0, 0.0, 0.0), mask=at < n)",
            None,
        ),
    ],
    ids=["summed", "left out"],
)
def test_what_a_masked_lane_holds_nobody_may_rely_on(tmp_path: Path, body: str, class_: str | None) -> None:
    reply = check(tmp_path, HEAD + SUMS.format(body=body), declaration(seeds=1))
    record = failure_of(reply)
    assert (record and record["class"]) == class_, record


def test_one_before_the_first_byte_of_an_empty_tensor_is_outside() -> None:
    import numpy as np
    import torch

    known = bounds.Bounds(is_on=True)
    known.add([torch.empty(0), torch.empty(4)])
    before = np.array([2**64 - 4], dtype=np.uint64)
    lanes = known.outside(before, np.array([True]), 4)
    assert lanes is not None and lanes.all()


def test_a_place_before_an_empty_tensor_is_before_it_and_one_far_away_is_far() -> None:
    """Returns nothing. An empty tensor is at address 0, before which addresses are the largest ones."""
    known = bounds.Bounds(kernel="kernel", spans={0: (0, "x")})
    lanes = np.ones(1, dtype=bool)
    before = np.array([(1 << 64) - 8], dtype=np.uint64)
    told = "`kernel` writes 4 bytes outside of its tensors, "
    assert known.told(before, lanes, 4, "writes") == f"{told}the first 8 bytes before the beginning of `x`"
    assert known.told(np.array([1 << 50], dtype=np.uint64), lanes, 4, "writes") == f"{told}far from all of them"
