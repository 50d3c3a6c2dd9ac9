"""Gradients of an op that changes an input which has one: the kernel's autograd function has to say so, and to keep what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import declared, require_passed, require_rejected, tensor

REFERENCE = """
import torch


def squared(x):
    return x.mul_(x.clone())


def scaled(x, y):
    x.mul_(y)
"""

SQUARED = """
@triton.jit
def forward_kernel(x_ptr, kept_ptr, M, N, xm, xn, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < M * N
    x_at = x_ptr + at // N * xm + at % N * xn
    x = tl.load(x_at, mask=inside, other=0.0)
    tl.store(kept_ptr + at, x, mask=inside)
    tl.store(x_at, x * x, mask=inside)


@triton.jit
def backward_kernel(kept_ptr, flow_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(kept_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, 2 * x * tl.load(flow_ptr + at, mask=inside, other=0.0), mask=inside)


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        kept = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        if x.numel():
            forward_kernel[(triton.cdiv(x.numel(), 64),)](x, kept, *x.shape, *x.stride(), BLOCK=64)
        ctx.mark_dirty(x)
        ctx.save_for_backward(kept)
        return x

    @staticmethod
    def backward(ctx, flow):
        (kept,) = ctx.saved_tensors
        flow, out = flow.contiguous(), torch.empty_like(kept)
        if kept.numel():
            backward_kernel[(triton.cdiv(kept.numel(), 64),)](kept, flow, out, kept.numel(), BLOCK=64)
        return out


wrapper = Squared.apply
"""

SCALED = """
@triton.jit
def forward_kernel(x_ptr, y_ptr, kept_ptr, M, N, xm, xn, ym, yn, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < M * N
    x_at = x_ptr + at // N * xm + at % N * xn
    x = tl.load(x_at, mask=inside, other=0.0)
    tl.store(kept_ptr + at, x, mask=inside)
    tl.store(x_at, x * tl.load(y_ptr + at // N * ym + at % N * yn, mask=inside, other=0.0), mask=inside)


@triton.jit
def backward_kernel(kept_ptr, y_ptr, flow_ptr, dx_ptr, dy_ptr, N, n, ym, yn, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    flow = tl.load(flow_ptr + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + at // N * ym + at % N * yn, mask=inside, other=0.0)
    tl.store(dx_ptr + at, flow * y, mask=inside)
    tl.store(dy_ptr + at, flow * tl.load(kept_ptr + at, mask=inside, other=0.0), mask=inside)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        kept = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        if x.numel():
            grid = (triton.cdiv(x.numel(), 64),)
            forward_kernel[grid](x, y, kept, *x.shape, *x.stride(), *y.stride(), BLOCK=64)
        ctx.mark_dirty(x)
        ctx.save_for_backward(kept, y)
        return x

    @staticmethod
    def backward(ctx, flow):
        kept, y = ctx.saved_tensors
        flow, dx, dy = flow.contiguous(), torch.empty_like(kept), torch.empty_like(kept)
        if kept.numel():
            grid = (triton.cdiv(kept.numel(), 64),)
            backward_kernel[grid](kept, y, flow, dx, dy, y.shape[1], kept.numel(), *y.stride(), BLOCK=64)
        return dx, dy


def wrapper(x, y):
    Scaled.apply(x, y)
"""


def op(folder: Path, name: str, *inputs: str) -> dict[str, Any]:
    """Returns the op of a reference, which is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    given = [tensor(one, ["M", "N"]) for one in inputs]
    return declared("", given, {"M": 9, "N": 14}, torch=None, reference=reference, mutates=["x"], backward=True)


def test_an_input_that_has_a_gradient_is_changed_in_place(tmp_path: Path) -> None:
    """Returns nothing: of one that is returned, and of one that is not."""
    require_passed(tmp_path / "squared", op(tmp_path, "squared", "x"), SQUARED)
    require_passed(tmp_path / "scaled", op(tmp_path, "scaled", "x", "y"), SCALED)


@pytest.mark.parametrize(
    ("name", "written", "instead"),
    [
        ("squared", "ctx.mark_dirty(x)", "pass"),
        ("squared", "ctx.save_for_backward(kept)", "ctx.save_for_backward(x.clone())"),
        ("scaled", "ctx.mark_dirty(x)", "pass"),
        ("scaled", "return dx, dy", "return flow, dy"),
        ("scaled", "return dx, dy", "return dx, dx"),
    ],
)
def test_one_that_says_or_keeps_something_else_is_rejected(
    tmp_path: Path, name: str, written: str, instead: str
) -> None:
    """Returns nothing: autograd is not told of the change, what was changed is kept for what it was, or a gradient is another's."""
    inputs, kernel = (("x",), SQUARED) if name == "squared" else (("x", "y"), SCALED)
    require_rejected(tmp_path, op(tmp_path, name, *inputs), kernel, written, instead)


ENERGY = """
@triton.jit
def forward_kernel(x_ptr, out_ptr, N, xm, xn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x_at = x_ptr + row * xm + cols * xn
    x = tl.load(x_at, mask=cols < N, other=0.0)
    tl.store(out_ptr + row, tl.sum(x * x, 0))
    # The gradient lies where the input was, as that of a loss does where the logits were.
    tl.store(x_at, 2 * x, mask=cols < N)


@triton.jit
def backward_kernel(x_ptr, flow_ptr, N, xm, xn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x_at = x_ptr + row * xm + cols * xn
    tl.store(x_at, tl.load(x_at, mask=cols < N) * tl.load(flow_ptr + row), mask=cols < N)


class Energy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        if out.numel():
            forward_kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
        ctx.save_for_backward(x.detach())
        return out

    @staticmethod
    def backward(ctx, flow):
        (x,) = ctx.saved_tensors
        if x.numel():
            grid = (x.shape[0],)
            backward_kernel[grid](x, flow.contiguous(), x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
        return x


wrapper = Energy.apply
"""


def energy(folder: Path, *overwrites: str) -> dict[str, Any]:
    """Returns the op of the sums of squares, whose kernel keeps its gradient in the memory of its input."""
    folder.mkdir(exist_ok=True)
    (folder / "reference.py").write_text("def energy(x):\n    return (x * x).sum(-1)\n", encoding="utf-8")
    reference = {"file": "reference.py", "name": "energy", "init": {}, "root": str(folder)}
    named = {"overwrites": list(overwrites), "reference": reference, "backward": True, "torch": None}
    return declared("", [tensor("x", ["M", "N"])], {"M": 9, "N": 14}, **named)


def test_an_input_may_be_written_over_where_the_op_says_so(tmp_path: Path) -> None:
    """Returns nothing: what it holds after the call is not looked at, its gradient is."""
    require_passed(tmp_path / "right", energy(tmp_path / "right", "x"), ENERGY)
    require_rejected(
        tmp_path / "wrong", energy(tmp_path / "wrong", "x"), ENERGY, "tl.store(x_at, 2 * x", "tl.store(x_at, x"
    )
    classes = ("mutated-input",)
    require_rejected(tmp_path / "told", energy(tmp_path / "told"), ENERGY, "# The", "# Its", classes)
