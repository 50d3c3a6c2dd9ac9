"""What is kept from call to call where an op writes to its inputs or a class has a state, gradients that lie otherwise than the inputs, and sorted inputs that are large. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import NORMAL, check, declared, require_passed, tensor

from t2t_harness.cases import cases, inputs

REFERENCE = """
import torch


def added(y, x, weight):
    y.add_(x @ weight.t())


def weighted(logits):
    return torch.softmax(logits, -1)


class Running(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("total", torch.zeros(dim))

    def forward(self, x):
        with torch.no_grad():
            self.total += x.sum(0)
        return x + self.total
"""

ADDED = """
@triton.jit
def kernel(y_ptr, x_ptr, w_ptr, M, N, K, ym, yn, xm, xk, wn, wk, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0)
    cols, depth = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    x = tl.load(x_ptr + row * xm + depth * xk, mask=depth < K, other=0.0)
    inside = (cols[:, None] < N) & (depth[None, :] < K)
    w = tl.load(w_ptr + cols[:, None] * wn + depth[None, :] * wk, mask=inside, other=0.0)
    y = tl.load(y_ptr + row * ym + cols * yn, mask=cols < N, other=0.0)
    tl.store(y_ptr + row * ym + cols * yn, y + tl.sum(w * x[None, :], 1), mask=cols < N)


def wrapper(y, x, weight):
    M, K = x.shape
    N = weight.shape[0]
    assert y.is_cuda and y.get_device() >= 0
    # HERE
    if M and N:
        block, depth = triton.next_power_of_2(N), triton.next_power_of_2(max(K, 1))
        kernel[(M,)](y, x, weight, M, N, K, *y.stride(), *x.stride(), *weight.stride(), BLOCK=block, DEPTH=depth)
"""

ON_TENSOR = """
    if not hasattr(weight, "packed"):
        weight.packed = weight.clone()
    weight = weight.packed
"""

BY_ADDRESS = """
    key = (weight.data_ptr(), tuple(weight.shape), weight.stride())
    weight = PACKED.setdefault(key, weight.clone())
"""

WEIGHTED = """
@triton.jit
def kernel(x_ptr, out_ptr, N, xm, xn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * xm + cols * xn, mask=cols < N, other=float("-inf"))
    top = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * N + cols, top / tl.sum(top, 0), mask=cols < N)


def wrapper(logits):
    M, N = logits.shape
    out = torch.empty((M, N), dtype=logits.dtype, device=logits.device)
    if M and N:
        kernel[(M,)](logits, out, N, *logits.stride(), BLOCK=triton.next_power_of_2(N))
    return out
"""

SCALED = """
@triton.jit
def kernel(x_ptr, out_ptr, M, N, xm, xn, om, on, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * xm + cols * xn, mask=cols < N, other=0.0)
    tl.store(out_ptr + row * om + cols * on, x * FACTOR, mask=cols < N)


def launch(x, strides, factor):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        kernel[(M,)](x, out, M, N, *strides, *out.stride(), FACTOR=factor, BLOCK=triton.next_power_of_2(N))
    return out


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, other):
        ctx.other, ctx.strides = other, input.stride()
        return launch(input, input.stride(), other)

    @staticmethod
    def backward(ctx, grad):
        return launch(grad, grad.stride(), ctx.other), None


def wrapper(input, other):
    return Scaled.apply(input, other)
"""

RUNNING = """
@triton.jit
def kernel(x_ptr, total_ptr, out_ptr, M, N, xm, xn, BLOCK: tl.constexpr):
    col, rows = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows * xm + col * xn, mask=rows < M, other=0.0)
    total = tl.load(total_ptr + col) + tl.sum(x, 0)
    tl.store(total_ptr + col, total)
    tl.store(out_ptr + rows * N + col, x + total, mask=rows < M)


class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("total", torch.zeros(dim))
        self.first = None

    def forward(self, x):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        # HERE
        if M and N:
            kernel[(N,)](x, self.total, out, M, N, *x.stride(), BLOCK=triton.next_power_of_2(M))
        return out
"""


def of(folder: Path, name: str, given: list[dict[str, Any]], size: dict[str, int], **more: Any) -> dict[str, Any]:
    """Returns the op of a reference, which is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    init = more.pop("init", {})
    reference = {"file": "reference.py", "name": name, "init": init, "root": str(folder)}
    return declared("", given, size, torch=None, reference=reference, **more)


def of_added(folder: Path) -> dict[str, Any]:
    given = [tensor("y", ["M", "N"]), tensor("x", ["M", "K"]), tensor("weight", ["N", "K"])]
    edges = {"special": "a product of zero and an infinity"}
    return of(folder, "added", given, {"M": 5, "N": 12, "K": 9}, mutates=["y"], edges=edges)


def test_what_writes_to_its_inputs_is_called_again_with_other_values(tmp_path: Path) -> None:
    require_passed(tmp_path / "right", of_added(tmp_path), ADDED)
    for place, kept in enumerate((ON_TENSOR, BY_ADDRESS)):
        wrong = "PACKED = {}\n" + ADDED.replace("    # HERE\n", kept.lstrip("\n"))
        failure = check(tmp_path / str(place), of_added(tmp_path), wrong)["evidence"]["failure"]
        assert failure is not None and "called again on the same tensors" in failure["message"], failure


def test_a_gradient_lies_otherwise_than_the_input(tmp_path: Path) -> None:
    kwargs = {"other": 3.0}
    op = declared("torch.mul", [tensor("input", ["M", "N"])], {"M": 5, "N": 12}, kwargs=kwargs, backward=True)
    require_passed(tmp_path / "right", op, SCALED)
    # Rows that are parts of longer ones, where the input's are not: nothing else tells the two apart.
    dense = "0 not in ctx.strides and ctx.strides[1] == grad.stride(1) == 1"
    wrong = SCALED.replace("launch(grad, grad.stride()", f"launch(grad, ctx.strides if {dense} else grad.stride()")
    failure = check(tmp_path / "wrong", op, wrong)["evidence"]["failure"]
    assert failure is not None and failure["case"] == "edge/flow[apart]/float32", failure


def of_weighted(folder: Path) -> dict[str, Any]:
    given = [tensor("logits", ["M", "N"], init={"kind": "sorted", "of": NORMAL})]
    return of(folder, "weighted", given, {"M": 5, "N": 12}, edges={"special": "sorted numbers"})


def test_sorted_inputs_are_large(tmp_path: Path) -> None:
    op = of_weighted(tmp_path)
    large = next(case for case in cases.fixed_edges(op) if case.values == "large")
    values = inputs.make_inputs(op, large)["logits"]
    assert values.abs().max() > 1e3 and values.equal(values.sort(dim=-1).values)
    require_passed(tmp_path / "right", op, WEIGHTED)
    wrong = WEIGHTED.replace("tl.exp(x - tl.max(x, 0))", "tl.exp(x)")
    failure = check(tmp_path / "wrong", op, wrong)["evidence"]["failure"]
    assert failure is not None, "an exponential that overflows"


@pytest.mark.parametrize(
    "instead",
    [
        "        self.first = x if self.first is None or self.first.shape != x.shape else self.first\n        x = self.first\n",
        "        self.total.zero_()\n",
    ],
    ids=["the first input is kept", "each call begins anew"],
)
def test_a_class_is_called_before_with_other_values(tmp_path: Path, instead: str) -> None:
    op = of(tmp_path, "Running", [tensor("x", ["M", "N"])], {"M": 5, "N": 12}, init={"dim": "N"})
    require_passed(tmp_path / "right", op, RUNNING)
    failure = check(tmp_path / "wrong", op, RUNNING.replace("        # HERE\n", instead))["evidence"]["failure"]
    assert failure is not None and failure["case"].startswith(("edge/again", "edge/weights")), failure
