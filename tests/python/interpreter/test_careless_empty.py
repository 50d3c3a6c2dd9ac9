"""Kernels that are wrong where a dim that is summed up, or the last one, has no element. Each is rejected on the interpreter; the honest kernel passes, and so does one that refuses such inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, tensor

from t2t_harness.cases import probe_values

SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, stride, step, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        at = start + cols
        total += tl.load(x_ptr + row * stride + at * step, mask=at < N, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def wrapper(input, dim=-1):
    rows = input.movedim(dim, -1)
    out = torch.empty(rows.shape[:-1], dtype=input.dtype, device=input.device)
    if out.numel() == 0:
        return out
    kernel[(out.numel(),)](rows, out, rows.shape[-1], rows.stride(0), rows.stride(1), BLOCK=128)
    return out
"""

MATMUL = """
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, K, N, am, ak, bk, bn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        total = tl.zeros((BLOCK,), tl.float32)
        for k in range(0, K):
            total += tl.load(a_ptr + row * am + k * ak) * tl.load(b_ptr + k * bk + at * bn, mask=at < N, other=0.0)
        tl.store(out_ptr + row * N + at, total, mask=at < N)


def wrapper(input, other):
    (M, K), N = input.shape, other.shape[1]
    out = torch.empty(M, N, dtype=input.dtype, device=input.device)
    if out.numel() == 0:
        return out
    kernel[(M,)](input, other, out, K, N, *input.stride(), *other.stride(), BLOCK=64)
    return out
"""

SUMS = declared("torch.sum", [tensor("input", ["M", "N"])], {"M": 8, "N": 24}, kwargs={"dim": -1}, seeds=1)

PRODUCTS = declared(
    "torch.matmul", [tensor("input", ["M", "K"]), tensor("other", ["K", "N"])], {"M": 8, "K": 12, "N": 10}, seeds=1
)

KERNELS = {"sum": (SUMS, SUM, "edge/empty[N]/float32"), "matmul": (PRODUCTS, MATMUL, "edge/empty[K]/float32")}


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_not_written_for_nothing_is_rejected(tmp_path: Path, name: str) -> None:
    declaration, honest, case = KERNELS[name]
    require_passed(tmp_path / "right", declaration, honest)
    documents = check(tmp_path / "wrong", declaration, honest.replace("if out.numel() == 0", "if input.numel() == 0"))
    failure = documents["evidence"]["failure"]
    assert failure is not None and failure["case"] == case


def test_a_kernel_that_refuses_it_passes(tmp_path: Path) -> None:
    refuses = SUM.replace("    kernel[", "    assert rows.shape[-1] > 0\n    kernel[")
    documents = check(tmp_path, SUMS, refuses)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    told = {case["name"]: case["verdict"] for case in documents["evidence"]["cases"]}
    assert told["edge/empty[N]/float32"] == "dropped"


def test_a_maximum_of_nothing_is_not_asked_for(tmp_path: Path) -> None:
    kernel = SUM.replace("tl.zeros((BLOCK,), tl.float32)", "tl.full((BLOCK,), float('-inf'), tl.float32)")
    kernel = kernel.replace("total += tl.load", "x = tl.load").replace("other=0.0)", "other=float('-inf'))")
    kernel = kernel.replace(
        "    tl.store(", "        total = tl.maximum(total, x, propagate_nan=tl.PropagateNan.ALL)\n    tl.store("
    ).replace("tl.sum(total, axis=0)", "tl.max(tl.where(total != total, float('inf'), total), axis=0)")
    largest = {**SUMS, "torch": "torch.amax", "edges": {"special": "NaN is taken for infinity"}}
    documents = check(tmp_path, largest, kernel)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    told = {case["name"]: case["verdict"] for case in documents["evidence"]["cases"]}
    assert told["edge/empty[N]/float32"] == "dropped"


def test_a_mean_of_nothing_is_not_asked_for(tmp_path: Path) -> None:
    """torch's is NaN, and some have 0."""
    means = SUM.replace("tl.sum(total, axis=0)", "tl.sum(total, axis=0) / tl.maximum(N, 1)")
    documents = check(tmp_path, {**SUMS, "torch": "torch.mean"}, means)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    told = {case["name"]: case["verdict"] for case in documents["evidence"]["cases"]}
    assert told["edge/empty[N]/float32"] == "dropped"


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("torch.add", [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])]),
        (
            "torch.nn.functional.scaled_dot_product_attention",
            [tensor(name, ["M", "N", "K"]) for name in ("q", "k", "v")],
        ),
        (
            "torch.nn.functional.embedding",
            [
                tensor("input", ["M"], dtype="int64", init={"kind": "randint", "low": 0, "high": "N"}),
                tensor("weight", ["N", "K"]),
            ],
        ),
    ],
    ids=["elements", "attention", "indices"],
)
def test_other_dims_are_not_without_elements_where_that_says_nothing(name: str, inputs: list[dict[str, Any]]) -> None:
    declaration: Any = declared(name, inputs, {"M": 8, "N": 24, "K": 16})
    assert list(probe_values.empty(declaration)) == []


SCATTERED = declared(
    "torch.scatter_add",
    [
        tensor("input", ["M", "N"]),
        tensor("index", ["M", "K"], dtype="int64", init={"kind": "randint", "low": 0, "high": "N"}),
        tensor("src", ["M", "K"]),
    ],
    {"M": 8, "N": 12, "K": 10},
    kwargs={"dim": 1},
    seeds=1,
    sizes={"small": {"M": 8, "N": 12, "K": 10}, "large": {"M": 8, "N": 48, "K": 40}},
)

SCATTER_ADD = """
@triton.jit
def kernel(out_ptr, index_ptr, src_ptr, total, K, N, stride, DIM: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    row, col = at // K, at % K
    to = tl.load(index_ptr + at, mask=inside, other=0)
    value = tl.load(src_ptr + row * stride + col, mask=inside, other=0.0)
    place = row * N + to if DIM == 1 else to * N + col
    tl.atomic_add(out_ptr + place, value, mask=inside)


def wrapper(input, dim, index, src):
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    out.copy_(input)
    total = index.numel()
    if total == 0:
        return out
    index, src = index.contiguous(), src.contiguous()
    kernel[(triton.cdiv(total, 256),)](out, index, src, total, index.shape[1], input.shape[1], src.stride(0), dim % 2, BLOCK=256)
    return out
"""


def test_what_is_added_nowhere_needs_no_launch(tmp_path: Path) -> None:
    judged = check(tmp_path / "right", SCATTERED, SCATTER_ADD)
    assert judged["verdict"]["verdict"] == "passed", judged["evidence"]["failure"]
    assert "dims tried at one length alone, which all sizes have: M = 8" in judged["evidence"]["notes"]
    kept = SCATTER_ADD.replace("out.copy_(input)\n    total", "out.fill_(0.0)\n    total")
    documents = check(tmp_path / "wrong", SCATTERED, kept)
    assert documents["evidence"]["failure"]["class"] == "mismatch"
