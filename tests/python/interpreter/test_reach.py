"""What measured sizes launch, found again in small cases, on wrappers that are a function of lengths alone, and through a whole check."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import NORMAL, declared, tensor
from checks import check as small_check
from test_check import check, declaration

from t2t_harness.cases import cases, reach


def op(large: int = 4096, **changes: Any) -> dict[str, Any]:
    """Returns an op of rows, checked at 16 and measured at `large`."""
    return {
        "dtypes": ["float32"],
        "inputs": [{"name": "input", "shape": ["M", "N"], "init": NORMAL}],
        "sizes": {"small": {"M": 16, "N": 16}, "large": {"M": 32, "N": 32}},
        "check_sizes": {"small": {"M": 16, "N": 16}},
        "measured": {"small": {"M": 256, "N": 256}, "large": {"M": large, "N": large}},
        **changes,
    }


def path(kernel: str, **constants: int) -> reach.Path:
    return kernel, json.dumps(constants, sort_keys=True)


def by_length(case: cases.Case) -> list[reach.Path]:
    length = case.binding["N"]
    return [path("k_short")] if length <= 128 else [path("k_long", BLOCK=512)]


def test_a_kernel_for_long_rows_is_reached_where_it_begins_and_beyond_its_block() -> None:
    found = reach.explored(op(), {path("k_short")}, by_length, 32768)
    assert [one["binding"] for one in found.cases] == [{"M": 2, "N": 129}, {"M": 2, "N": 1281}]
    assert found.missed == []
    names = [case.name for case in reach.cases_of(op(), found.cases, 32768)]
    assert names == ["reach/large[M=2,N=129]/float32", "reach/large[M=2,N=1281]/float32"]


def test_constants_that_follow_a_length_are_reached_by_the_shortest_that_has_them() -> None:
    def launched(case: cases.Case) -> list[reach.Path]:
        return [path("k", BLOCK=1 << (case.binding["N"] - 1).bit_length())]

    found = reach.explored(op(), {path("k", BLOCK=16)}, launched, 32768)
    assert [one["binding"] for one in found.cases] == [{"M": 2, "N": 2049}, {"M": 2, "N": 129}]


def test_what_no_small_case_launches_is_missed_with_its_name_and_the_reason() -> None:
    def launched(case: cases.Case) -> list[reach.Path]:
        return [path("k_wide" if case.binding["N"] > 100_000 else "k")]

    found = reach.explored(op(200_000), {path("k")}, launched, 32768)
    (one,) = found.missed
    assert (one["size"], one["kernel"], one["constants"]) == ("large", "k_wide", {})
    assert "200002 elements" in one["reason"] and found.cases == []


def test_a_fixed_dim_keeps_its_length_or_that_of_the_check() -> None:
    def launched(case: cases.Case) -> list[reach.Path]:
        return [path("k", HEAD=case.binding["D"] if case.binding["M"] > 64 else 16)]

    sizes = {"small": {"M": 16, "D": 16}, "large": {"M": 32, "D": 16}}
    fixed = op(
        inputs=[{"name": "input", "shape": ["M", "D"]}],
        sizes=sizes,
        check_sizes={"small": sizes["small"]},
        measured={"large": {"M": 4096, "D": 64}},
    )
    found = reach.explored(fixed, {path("k", HEAD=16)}, launched, 32768)
    assert found.cases[0]["binding"] == {"M": 65, "D": 64}


def test_a_wrapper_that_raises_or_ends_the_process_is_told_and_no_more() -> None:
    def raises(case: cases.Case) -> list[reach.Path]:
        raise ValueError("no such size")

    found = reach.rehearsed(lambda: reach.explored(op(), set(), raises, 32768))
    assert [one["reason"] for one in found.missed] == ["cannot be told: ValueError: no such size"] * 2
    found = reach.rehearsed(lambda: os._exit(3))
    assert [one["kernel"] for one in found.missed] == [None]


def test_a_size_for_which_there_is_no_memory_says_so() -> None:
    def starved(case: cases.Case) -> list[reach.Path]:
        raise RuntimeError("[enforce fail at alloc.cpp:1] DefaultCPUAllocator: can't allocate memory: you tried to")

    found = reach.explored(op(), set(), starved, 32768)
    assert {one["reason"] for one in found.missed} == {"cannot be told: it takes more memory than there is"}


def test_what_a_candidate_tells_that_is_no_case_is_passed_over() -> None:
    told: list[Any] = [None, {}, {"size": "large", "binding": {"M": 2}}, {"size": "x", "binding": {"M": 2, "N": 2}}]
    told += [{"size": "large", "binding": {"M": True, "N": 2}}, {"size": "large", "binding": {"M": 2, "N": 10**9}}]
    assert reach.cases_of(op(), told, 32768) == []


DISPATCHES = """

@triton.jit
def long_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * FACTOR, mask=offsets < n)


def triton_double(input, other):
    x = input.contiguous()
    out = torch.empty_like(x)
    kernel = long_kernel if x.numel() > 3000 else double_kernel
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
    return out
"""


def test_a_kernel_that_is_wrong_where_only_measured_sizes_launch_it_is_rejected(tmp_path: Path) -> None:
    measured = {"large": {"M": 512, "N": 512}}
    (tmp_path / "right").mkdir()
    right = check(tmp_path / "right", DISPATCHES.replace("FACTOR", "2.0"), {**declaration(), "measured": measured})
    assert right["outcome"] == "passed", right["documents"]["evidence"]["failure"]
    assert right["documents"]["verdict"]["missed"] == []
    assert any(name.startswith("reach/large[") for name in right["documents"]["verdict"]["cases"])
    (tmp_path / "wrong").mkdir()
    wrong = check(tmp_path / "wrong", DISPATCHES.replace("FACTOR", "3.0"), {**declaration(), "measured": measured})
    assert (wrong["outcome"], wrong["class"]) == ("rejected", "mismatch")
    assert wrong["documents"]["evidence"]["failure"]["case"].startswith("reach/large[")


LOOKS_AT_INDICES = """
@triton.jit
def pick_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    index = tl.load(index_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, tl.load(x_ptr + index, mask=mask), mask=mask)


def wrapper(input, dim, index):
    input, index = input.contiguous(), index.contiguous()
    assert 0 <= int(index.max()) < input.shape[0], "out of bounds"
    out = torch.empty_like(index, dtype=input.dtype)
    block = 32 if index.numel() < 100 else 64
    pick_kernel[(triton.cdiv(index.numel(), block),)](input, index, out, index.numel(), BLOCK=block)
    return out
"""


def test_a_wrapper_that_looks_at_indices_before_it_launches_is_rehearsed_with_some(tmp_path: Path) -> None:
    index = tensor("index", ["K"], dtype="int64", init={"kind": "randint", "low": 0, "high": "N"})
    edges = {"empty": "the greatest of none is asked for"}
    more = {
        "kwargs": {"dim": 0},
        "seeds": 1,
        "allow": ["max"],
        "edges": edges,
        "measured": {"large": {"N": 4096, "K": 4096}},
    }
    op = declared("torch.gather", [tensor("input", ["N"]), index], {"N": 20, "K": 12}, **more)
    documents = small_check(tmp_path, op, LOOKS_AT_INDICES)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    assert documents["verdict"]["missed"] == []
    assert any(name.startswith("reach/large[") for name in documents["verdict"]["cases"])
