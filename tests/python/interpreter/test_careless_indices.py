"""Kernels that are wrong where indices count from the end, or are fewer than what they are for, or where elements are copied often: each is rejected, and passes without its fault."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checks import both_tests, declared, tensor

from t2t_harness.cases import cases, probe_indices, unusual_integers
from t2t_harness.cases import inputs as inputs_of

TAKE = """
@triton.jit
def kernel(x_ptr, index_ptr, out_ptr, n, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    index = tl.where(index < 0, index + total, index)
    tl.store(out_ptr + at, tl.load(x_ptr + index, mask=at < n), mask=at < n)


def wrapper(input, index):
    x, index = input.contiguous(), index.contiguous()
    out = torch.empty(index.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](x, index, out, out.numel(), x.numel(), BLOCK=64)
    return out
"""
"""Elements by their places in memory."""


GATHER = """
@triton.jit
def kernel(x_ptr, index_ptr, out_ptr, n, width, step, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, tl.load(x_ptr + index * step + at % width, mask=at < n), mask=at < n)


def wrapper(input, dim, index):
    if dim % 2:
        raise NotImplementedError("rows alone")
    x, index = input.contiguous(), index.contiguous()
    out = torch.empty(index.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](x, index, out, out.numel(), index.shape[1], x.shape[1], BLOCK=64)
    return out
"""
"""Elements of columns."""

SCATTER_ADD = """
@triton.jit
def kernel(out_ptr, index_ptr, src_ptr, n, width, step, src_step, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // width, at % width
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    value = tl.load(src_ptr + row * src_step + column, mask=at < n)
    tl.atomic_add(out_ptr + row * step + index, value, mask=at < n)


def wrapper(input, dim, index, src):
    if dim % 2 == 0:
        raise NotImplementedError("columns alone")
    out, index, src = input.clone(memory_format=torch.contiguous_format), index.contiguous(), src.contiguous()
    if index.numel():
        grid = (triton.cdiv(index.numel(), 64),)
        kernel[grid](out, index, src, index.numel(), index.shape[1], out.shape[1], src.shape[1], BLOCK=64)
    return out
"""
"""Sums of elements by the columns that they are for."""

ALONG = """
@triton.jit
def kernel(x_ptr, index_ptr, out_ptr, N, K, step, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    index = tl.load(index_ptr + row * step + at, mask=at < K, other=0)
    index = tl.where(index < 0, index + N, index)
    tl.store(out_ptr + row * K + at, tl.load(x_ptr + row * N + index, mask=at < K), mask=at < K)


def wrapper(input, indices, dim):
    if dim % 2 == 0:
        raise NotImplementedError("columns alone")
    x, index = input.contiguous(), indices.contiguous()
    (M, N), K = x.shape, index.shape[1]
    out = torch.empty((M, K), dtype=x.dtype, device=x.device)
    if out.numel():
        step = K if index.shape[0] == M else 0
        kernel[(M,)](x, index, out, N, K, step, BLOCK=triton.next_power_of_2(K))
    return out
"""
"""Elements of rows, of which all may have the same places."""


REPEAT = """
@triton.jit
def kernel(x_ptr, ends_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    first, last = tl.load(ends_ptr + row), tl.load(ends_ptr + row + 1)
    for start in range(first, last, BLOCK):
        at = start + cols
        for column in range(N):
            x = tl.load(x_ptr + row * N + column)
            tl.store(out_ptr + at * N + column, x + tl.zeros((BLOCK,), tl.float32), mask=at < last)


def wrapper(input, repeats, dim=None):
    if dim is None or dim % 2:
        raise NotImplementedError("rows alone")
    ends = [0]
    for count in repeats.tolist():
        ends.append(ends[-1] + count)
    x = input.contiguous()
    out = torch.empty((ends[-1], x.shape[1]), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, torch.tensor(ends, device=x.device), out, x.shape[1], BLOCK=16)
    return out
"""
"""Rows, each as often as it is asked for."""


def places(name: str, shape: list[int | str], high: str, **more: Any) -> dict[str, Any]:
    """Returns a declared input of indices below `high`."""
    return tensor(name, shape, dtype="int64", init={"kind": "randint", "low": 0, "high": high}, **more)


HONEST = {
    "take": (
        declared(
            "torch.take",
            [tensor("input", ["M", "N"]), places("index", ["K"], "M * N")],
            {"M": 6, "N": 20, "K": 37},
        ),
        TAKE,
    ),
    "gather": (
        declared(
            "torch.gather",
            [tensor("input", ["M", "N"]), places("index", ["K", "N"], "M")],
            {"M": 12, "N": 20, "K": 7},
            kwargs={"dim": 0},
        ),
        GATHER,
    ),
    "scatter-add": (
        declared(
            "torch.scatter_add",
            [tensor("input", ["M", "N"]), places("index", ["M", "K"], "N"), tensor("src", ["M", "K"])],
            {"M": 6, "N": 20, "K": 13},
            kwargs={"dim": 1},
            deterministic=False,
        ),
        SCATTER_ADD,
    ),
    "repeat": (
        declared(
            "torch.repeat_interleave",
            [
                tensor("input", ["M", "N"]),
                tensor("repeats", ["M"], dtype="int64", init={"kind": "randint", "low": 0, "high": 4}),
            ],
            {"M": 6, "N": 20},
            kwargs={"dim": 0},
        ),
        REPEAT,
    ),
    "take-along": (
        declared(
            "torch.take_along_dim",
            [tensor("input", ["M", "N"]), places("indices", ["M", "K"], "N")],
            {"M": 6, "N": 20, "K": 13},
            kwargs={"dim": 1},
        ),
        ALONG,
    ),
}

FAULTS = {
    "an index below zero is no other than the rest": (
        "take",
        "tl.where(index < 0, index + total, index)",
        "index",
    ),
    "an index below zero counts from the end of a row": (
        "take",
        "index + total, index",
        "index + 20, index",
    ),
    "an index below zero is read as it is, in rows": (
        "take-along",
        "index = tl.where(index < 0, index + N, index)",
        "",
    ),
    "the input has as many columns as the index": ("gather", "x.shape[1], BLOCK", "index.shape[1], BLOCK"),
    "what is added lies as the index does": ("scatter-add", "src.shape[1], BLOCK", "index.shape[1], BLOCK"),
    "a row is copied 16 times at most": ("repeat", "range(first, last, BLOCK)", "range(first, first + 1)"),
    "a row is copied 512 times at most": (
        "repeat",
        "range(first, last,",
        "range(first, tl.minimum(last, first + 512),",
    ),
    "each row has indices of its own": ("take-along", "K if index.shape[0] == M else 0", "K"),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)

INPUT = tensor("input", ["M", "N"])

DIMS = {"M": 5, "N": 19, "K": 2}


@pytest.mark.parametrize(
    ("name", "inputs", "kwargs", "expected"),
    [
        ("torch.take", [INPUT, places("index", ["K"], "M")], {}, {"index": 95}),
        ("torch.Tensor.put_", [INPUT, places("index", ["K"], "M"), tensor("source", ["K"])], {}, {"index": 95}),
        ("torch.index_fill", [INPUT, places("index", ["K"], "M")], {"dim": 1, "value": 2.0}, {"index": 19}),
        ("torch.take_along_dim", [INPUT, places("indices", ["M", "K"], "N")], {"dim": -1}, {"indices": 19}),
        ("torch.take_along_dim", [INPUT, places("indices", ["K"], "N")], {}, {}),
        ("torch.gather", [INPUT, places("index", ["M", "K"], "N")], {"dim": 1}, {}),
        ("torch.index_select", [INPUT, places("index", ["K"], "M")], {"dim": 0}, {}),
        (
            "torch.index_put",
            [INPUT, *(places(f"indices.{n}", ["K"], "M", list="indices") for n in range(2)), tensor("values", ["K"])],
            {},
            {"indices.0": 5, "indices.1": 19},
        ),
    ],
)
def test_torch_takes_an_index_below_zero_where_it_is_asked(
    name: str, inputs: list[dict[str, Any]], kwargs: dict[str, Any], expected: dict[str, int]
) -> None:
    op = declared(name, inputs, DIMS, kwargs=kwargs)
    shapes = {given["name"]: [DIMS[str(dim)] for dim in given["shape"]] for given in inputs}
    assert probe_indices.counted(op, shapes) == expected
    values = [case.values for case in probe_indices.indices(op) if case.shapes is None]
    assert values == ["negative"] * bool(expected)


@pytest.mark.parametrize(
    ("name", "backward", "dim", "expected"),
    [
        ("torch.gather", False, 0, {"index": [6, 8]}),
        ("torch.Tensor.scatter_add_", False, 1, {"index": [6, 8]}),
        ("torch.scatter_reduce", True, 1, {"index": [6, 8], "src": [6, 8]}),
        ("torch.index_add", False, 0, None),
        ("torch.gather", False, 2, None),
    ],
)
def test_fewer_indices_are_asked_for_where_torch_takes_them(
    name: str, backward: bool, dim: int, expected: dict[str, list[int]] | None
) -> None:
    inputs = [INPUT, places("index", ["M", "N"], "M"), tensor("src", ["M", "N"])]
    op = declared(name, inputs, {"M": 16, "N": 32}, kwargs={"dim": dim}, backward=backward)
    found = [case for case in probe_indices.indices(op) if case.shapes is not None]
    assert [case.shapes for case in found] == ([] if expected is None else [expected])
    for case in found:
        assert list(cases.fewer(op, case)) == []
        assert inputs_of.make_inputs(op, case)["index"].shape == (6, 8)


@pytest.mark.parametrize(
    ("more", "expected"),
    [({}, [[1, 259, 1, 67, 1], [1, 1, 1031, 1, 1]]), ({"output_size": 12}, [])],
)
def test_counts_are_large_where_the_result_may_have_any_length(more: dict[str, int], expected: list[list[int]]) -> None:
    ones = tensor("repeats", ["M"], dtype="int64", init={"kind": "randint", "low": 1, "high": 2})
    op = declared("torch.repeat_interleave", [INPUT, ones], {"M": 6, "N": 20}, kwargs={"dim": 0, **more})
    made = [inputs_of.make_inputs(op, case)["repeats"].tolist() for case in probe_indices.counts(op)]
    assert made == expected
    assert unusual_integers.counts(torch.ones(1, dtype=torch.int64)).tolist() == [259]


def test_indices_from_the_end_mean_the_same_places() -> None:
    drawn = torch.tensor([[4, 0, 3], [1, -2, 2]])
    made = unusual_integers.negative(drawn, 5)
    assert made.tolist() == [[-1, 0, -2], [1, -2, 2]]
    assert torch.equal(made % 5, drawn % 5)
