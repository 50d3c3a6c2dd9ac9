"""Kernels whose gradients are NaN at corners where torch's are numbers: zeros in both inputs, rows of zeros, an argument that is zero. Each is rejected on the interpreter; a kernel with another convention there passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks import both_tests, check, declared, require_passed, tensor, verdict
from test_careless_forward import ELEMENTS, HONEST, POSITIVE, ROWS, SMOOTH_OP

from t2t_harness.cases import cases, inputs, probe_corners, probing
from t2t_harness.judging import corners

LIBDEVICE = "from triton.language.extra import libdevice\n\n"

POW = (
    LIBDEVICE
    + ELEMENTS.replace("FORWARD", "libdevice.pow(x, y)")
    .replace("OF_X", "tl.where(y == 0, 0.0, y * libdevice.pow(x, y - 1.0))")
    .replace("OF_Y", "tl.where((x == 0) & (y >= 0), 0.0, libdevice.pow(x, y) * tl.log(x))")
    + """
def wrapper(input, exponent):
    return Op.apply(input, exponent, 1.0)
"""
)

ATAN2 = (
    LIBDEVICE
    + ELEMENTS.replace("FORWARD", "libdevice.atan2(x, y)")
    .replace("OF_X", "y * tl.where(x * x + y * y == 0, 0.0, 1.0 / (x * x + y * y))")
    .replace("OF_Y", "-x * tl.where(x * x + y * y == 0, 0.0, 1.0 / (x * x + y * y))")
    + """
def wrapper(input, other):
    return Op.apply(input, other, 1.0)
"""
)

COSINE = """
@triton.jit
def forward_kernel(x_ptr, y_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    y = tl.load(y_ptr + row * N + at, mask=at < N, other=0.0)
    x_norm, y_norm = tl.sqrt(tl.sum(x * x, axis=0)), tl.sqrt(tl.sum(y * y, axis=0))
    tl.store(out_ptr + row, tl.sum(x * y, axis=0) / (larger(x_norm, eps) * larger(y_norm, eps)))


@triton.jit
def larger(norm, eps):
    return tl.where(norm < eps, eps, norm)


@triton.jit
def backward_kernel(x_ptr, y_ptr, up_ptr, out_ptr, grad_ptr, N, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    y = tl.load(y_ptr + row * N + at, mask=at < N, other=0.0)
    x_norm, y_norm = tl.sqrt(tl.sum(x * x, axis=0)), tl.sqrt(tl.sum(y * y, axis=0))
    both = larger(x_norm, eps) * larger(y_norm, eps)
    along = tl.load(out_ptr + row) * x * tl.where(x_norm == 0, 0.0, 1.0 / (larger(x_norm, eps) * x_norm))
    grad = tl.load(up_ptr + row) * (y / both - along)
    tl.store(grad_ptr + row * N + at, grad, mask=at < N)


class Cosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, eps):
        x, y = x.contiguous(), y.contiguous()
        out, N = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device), x.shape[-1]
        ctx.save_for_backward(x, y, out)
        ctx.eps, block = eps, triton.next_power_of_2(max(N, 1))
        if out.numel():
            forward_kernel[(out.numel(),)](x, y, out, N, eps, BLOCK=block)
        return out

    @staticmethod
    def backward(ctx, upstream):
        (x, y, out), up = ctx.saved_tensors, upstream.contiguous()
        grads, N = (torch.empty_like(x), torch.empty_like(y)), x.shape[-1]
        for (one, other), grad in zip(((x, y), (y, x)), grads):
            if x.numel():
                block = triton.next_power_of_2(N)
                backward_kernel[(out.numel(),)](one, other, up, out, grad, N, ctx.eps, BLOCK=block)
        return *grads, None


def wrapper(x1, x2, dim=1, eps=1e-8):
    if dim not in (-1, x1.dim() - 1):
        raise NotImplementedError("rows alone")
    return Cosine.apply(x1, x2, float(eps))
"""

KERNELS = {
    "pow": (
        declared(
            "torch.pow",
            [tensor("input", ["M", "N"], init=POSITIVE), tensor("exponent", ["M", "N"], init=POSITIVE)],
            ROWS,
            backward=True,
        ),
        POW,
    ),
    "atan2": (
        declared("torch.atan2", [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])], ROWS, backward=True),
        ATAN2,
    ),
    "cosine": (
        declared(
            "torch.nn.functional.cosine_similarity",
            [tensor("x1", ["M", "N"]), tensor("x2", ["M", "N"])],
            ROWS,
            kwargs={"dim": 1, "eps": 1e-8},
            backward=True,
        ),
        COSINE,
    ),
    "smooth": HONEST["smooth"],
    "norm": HONEST["norm"],
}

FAULTS = {
    "the power of a power of zero": (
        "pow",
        "tl.where(y == 0, 0.0, y * libdevice.pow(x, y - 1.0))",
        "y * libdevice.pow(x, y - 1.0)",
    ),
    "the logarithm of zero": ("pow", "(x == 0) & (y >= 0)", "(x == 0) & (y > 0)"),
    "no angle": ("atan2", "y * tl.where(x * x + y * y == 0, 0.0, 1.0 / (x * x + y * y))", "y / (x * x + y * y)"),
    "nothing over nothing": (
        "smooth",
        "-tl.where(tl.abs(x - y) < beta",
        "-tl.where(tl.abs(x - y) <= beta",
    ),
    "rows of zeros": ("norm", "tl.where(norm == 0, 0.0, up / norm)", "up / norm"),
    "two rows of zeros": (
        "cosine",
        "tl.where(x_norm == 0, 0.0, 1.0 / (larger(x_norm, eps) * x_norm))",
        "1.0 / (larger(x_norm, eps) * x_norm)",
    ),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(KERNELS, FAULTS, ("nan",))


def test_another_gradient_at_a_corner_is_no_fault(tmp_path: Path) -> None:
    op, kernel = KERNELS["pow"]
    documents = check(tmp_path, op, kernel.replace("(x == 0) & (y >= 0), 0.0", "(x == 0) & (y >= 0), 5.0"))
    told = {row["name"]: row for row in documents["evidence"]["cases"]}
    row = told["edge/corners[all]/float32"]
    assert row["rule"] == corners.RULE and row["verdict"] == "passed", row["reason"]


def test_which_corners_there_are() -> None:
    op: Any = SMOOTH_OP
    others = [
        probing.probe(op, f"kwarg[beta={beta}]", ROWS, kwargs={"reduction": "none", "beta": beta})
        for beta in (0.25, 0.0, 2.5)
    ]
    found = list(probe_corners.corners(op, others))
    assert [case.name.split("/")[1] for case in found] == ["corners[all]", "corners[beta=0.0]", "corners[beta=0.25]"]
    assert [case.values for case in found] == ["zeros", "ties", "ties"]
    assert all(case.has_own_budget and not case.asks and probe_corners.is_corner(case) for case in found)
    labels = tensor("target", ["M"], dtype="int64", init={"kind": "randint", "low": 0, "high": "N"})
    labelled: Any = {**op, "inputs": [tensor("input", ["M", "N"]), labels]}
    assert [case.of for case in probe_corners.corners(labelled, [])] == ["input"]
    pairs: Any = KERNELS["atan2"][0]
    assert [case.values for case in probe_corners.corners(pairs, [])] == [cases.CORNERS]
    for more in ({"backward": False}, {"edges": {"zeros": "none"}}):
        assert not list(probe_corners.corners({**op, **more}, others))
    assert len(list(probe_corners.corners({**op, "edges": {"kwargs": "none"}}, others))) == 1


def test_numbers_of_either_sign_meet() -> None:
    op: Any = KERNELS["atan2"][0]
    (case,) = probe_corners.corners(op, [])
    made = inputs.make_inputs(op, case)
    met = {
        (str(float(x)), str(float(y)))
        for x, y in zip(made["input"].reshape(-1), made["other"].reshape(-1), strict=True)
    }
    told = ("0.0", "-0.0", "1.0", "-1.0")
    assert {(one, other) for one in told for other in told} <= met
    # Numbers that an input may not hold are left out, all of them, too.
    narrow: Any = {
        **op,
        "inputs": [
            tensor(name, ["M", "N"], init={"kind": "uniform", "low": 2.0, "high": 3.0}) for name in ("input", "other")
        ],
    }
    assert all(bool((value >= 2).all()) for value in inputs.make_inputs(narrow, case).values())


@pytest.mark.parametrize(
    ("out", "plain", "wide", "passes"),
    [
        (7.0, 1.0, 1.0, True),
        (float("nan"), 1.0, 1.0, False),
        (float("inf"), 1.0, 1.0, False),
        (float("nan"), float("inf"), 1.0, True),
        (float("nan"), 1.0, float("nan"), True),
    ],
)
def test_a_gradient_is_a_number_where_torch_s_is_one_in_both_types(
    out: float, plain: float, wide: float, passes: bool
) -> None:
    made = (torch.tensor([0.0, out]), torch.tensor([0.0, plain]), torch.tensor([0.0, wide], dtype=torch.float64))
    assert corners.finite(*made).passed == passes


CLAMPED = """
@triton.jit
def forward(x_ptr, out_ptr, total, limit, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total, other=0.0)
    tl.store(out_ptr + at, tl.where(x > limit, limit, x), mask=at < total)


@triton.jit
def backward(x_ptr, dy_ptr, dx_ptr, total, limit, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total, other=0.0)
    dy = tl.load(dy_ptr + at, mask=at < total, other=0.0)
    tl.store(dx_ptr + at, tl.where(x > limit, 0.0, tl.where(x == x, dy, x)), mask=at < total)


class Clamped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        x = x.contiguous()
        ctx.save_for_backward(x)
        ctx.limit, out = limit, torch.empty_like(x)
        if out.numel():
            forward[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), limit, BLOCK=128)
        return out

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx, dy = torch.empty_like(x), dy.contiguous()
        if dx.numel():
            backward[(triton.cdiv(dx.numel(), 128),)](x, dy, dx, dx.numel(), ctx.limit, BLOCK=128)
        return dx, None


def wrapper(input, max):
    return Clamped.apply(input, float(max))
"""


def test_a_gradient_of_nan_is_a_convention_where_the_input_is_nan(tmp_path: Path) -> None:
    rows = tensor("input", ["M", "N"], requires_grad=True)
    op = declared("torch.clamp", [rows], {"M": 8, "N": 24}, seeds=1, kwargs={"max": 0.5}, backward=True)
    require_passed(tmp_path / "right", op, CLAMPED)
    # NaN where the input is infinite is no convention.
    wrong = CLAMPED.replace("tl.where(x == x, dy, x)", "dy + 0.0 * x")
    assert verdict(tmp_path / "wrong", op, wrong)[0] == "nan"
