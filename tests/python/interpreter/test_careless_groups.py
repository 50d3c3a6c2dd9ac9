"""Kernels that are wrong for another number of groups than the declared one: each is rejected, and passes without its fault."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checks import both_tests, declared, tensor

from t2t_harness.cases import called_with, probe_groups
from t2t_harness.cases import inputs as inputs_of
from t2t_harness.op.declaration import resolve

CONVOLUTION = """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, C, O, L, OL, K, inside, made, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    place, o, b = at % OL, at // OL % O, at // (OL * O)
    first = o // made * inside
    sums = tl.zeros((BLOCK,), tl.float32)
    for c in range(inside):
        for tap in range(K):
            x = tl.load(x_ptr + (b * C + first + c) * L + place + tap, mask=mask, other=0.0)
            w = tl.load(w_ptr + (o * inside + c) * K + tap, mask=mask, other=0.0)
            sums += x * w
    tl.store(out_ptr + at, sums, mask=mask)


def wrapper(input, weight, groups=1):
    x, w = input.contiguous(), weight.contiguous()
    B, C, L = x.shape
    O, inside, K = w.shape
    if L < K:
        raise ValueError("there is no such result")
    out = torch.empty((B, O, L - K + 1), dtype=x.dtype, device=x.device)
    if out.numel():
        grid = (triton.cdiv(out.numel(), 64),)
        kernel[grid](x, w, out, C, O, L, L - K + 1, K, inside, O // groups, out.numel(), BLOCK=64)
    return out
"""
"""Sums of windows, of the channels of a group."""

NORM = """
@triton.jit
def kernel(x_ptr, out_ptr, count, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        total += tl.load(x_ptr + row * count + start + at, mask=start + at < count, other=0.0)
    mean = tl.sum(total, axis=0) / count
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        x = tl.load(x_ptr + row * count + start + at, mask=start + at < count, other=0.0) - mean
        squares += tl.where(start + at < count, x * x, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / count + eps)
    for start in range(0, count, BLOCK):
        x = tl.load(x_ptr + row * count + start + at, mask=start + at < count, other=0.0)
        tl.store(out_ptr + row * count + start + at, (x - mean) * scale, mask=start + at < count)


def wrapper(input, num_groups, eps=1e-5):
    x = input.contiguous()
    if x.shape[1] % num_groups:
        raise ValueError("the channels are no such groups")
    out = torch.empty_like(x)
    rows = x.shape[0] * num_groups
    if out.numel():
        kernel[(rows,)](x, out, out.numel() // rows, eps, BLOCK=64)
    return out
"""
"""The values of each group of channels, less their mean and over their deviation."""

IMAGE, WEIGHT = tensor("input", ["B", "C", "L"]), tensor("weight", ["O", "C", "K"])

DIMS = {"B": 2, "C": 4, "L": 13, "O": 6, "K": 3}

HONEST = {
    "declared": (
        declared("torch.nn.functional.conv1d", [IMAGE, WEIGHT], DIMS, kwargs={"groups": 1}),
        CONVOLUTION,
    ),
    "left out": (declared("torch.nn.functional.conv1d", [IMAGE, WEIGHT], DIMS), CONVOLUTION),
    "refused": (
        declared("torch.nn.functional.conv1d", [IMAGE, WEIGHT], DIMS),
        CONVOLUTION.replace("    B, C, L = x.shape", "    assert groups == 1\n    B, C, L = x.shape"),
    ),
    "norm of a number among the inputs": (
        declared(
            "torch.nn.functional.group_norm",
            [IMAGE, {"name": "num_groups", "scalar": 4}],
            {"B": 2, "C": 8, "L": 13},
        ),
        NORM,
    ),
    "norm": (
        declared("torch.nn.functional.group_norm", [IMAGE], {"B": 2, "C": 8, "L": 13}, kwargs={"num_groups": 4}),
        NORM,
    ),
}

FAULTS = {
    "all groups read the first channels": ("declared", "o // made * inside", "o * 0"),
    "the number of groups is not heeded": ("left out", "O // groups", "O"),
    "there are four groups": ("norm", "x.shape[0] * num_groups", "x.shape[0] * 4"),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)


@pytest.mark.parametrize(
    ("name", "weight", "told", "groups", "shape"),
    [
        ("conv1d", ["O", "C", "K"], 1, 2, [6, 2]),
        ("conv1d", ["O", "C // 2", "K"], 2, 1, [6, 4]),
        ("conv1d", ["C", 1, "K"], "C", None, []),
        ("conv1d", [3, 1, "K"], 3, None, []),
        ("conv_transpose1d", ["C", "O", "K"], 1, 2, [4, 3]),
        ("conv_transpose1d", ["C", "O", "K"], 2, 1, [4, 6]),
        ("conv1d", ["O", 3, "K"], 1, None, []),
    ],
)
def test_a_weight_has_the_shape_that_torch_wants_for_other_groups(
    name: str, weight: list[int | str], told: Any, groups: int | None, shape: list[int]
) -> None:
    image = tensor("input", ["B", 3, "L"]) if 3 in weight else IMAGE
    op = declared(f"torch.nn.functional.{name}", [image, tensor("weight", weight)], DIMS, kwargs={"groups": told})
    request: Any = {"op": op, "variant": {"entry": "wrapper", "file": "none.py"}, "root": ".", "lane": "interpreter"}
    found = list(probe_groups.groups(request))
    assert [case.name for case in found] == ([] if groups is None else [f"edge/kwarg[groups={groups}]/float32"])
    for case in found:
        made = inputs_of.make_inputs(op, case)
        assert list(made["weight"].shape[:2]) == shape
        result = resolve(op["torch"])(*made.values(), **called_with.kwargs_of(op, case))
        assert isinstance(result, torch.Tensor) and result.numel()
