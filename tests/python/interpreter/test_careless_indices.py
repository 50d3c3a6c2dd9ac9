"""Kernels that are wrong where indices count from the end: each is rejected, and passes without its fault."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checks import both_tests, declared, tensor

from t2t_harness.cases import probe_indices, probing, unusual

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
    assert [case.values for case in probe_indices.indices(op)] == ["negative"] * bool(expected)
    assert all(
        length == probing.tiny(op)[dim] for case in probe_indices.indices(op) for dim, length in case.binding.items()
    )


def test_indices_from_the_end_mean_the_same_places() -> None:
    drawn = torch.tensor([[4, 0, 3], [1, -2, 2]])
    made = unusual.negative(drawn, 5)
    assert made.tolist() == [[-1, 0, -2], [1, -2, 2]]
    assert torch.equal(made % 5, drawn % 5)
