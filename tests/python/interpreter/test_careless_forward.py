"""Kernels with gradients whose forward pass is wrong at corners, at NaN and at ties, where gradients are a convention. Each is rejected on the interpreter; the honest kernel passes."""

from __future__ import annotations

from typing import Any

from checks import both_tests, declared, tensor

from t2t_harness.cases import cases, probe_values, probing

ELEMENTS = """
@triton.jit
def forward_kernel(x_ptr, y_ptr, out_ptr, n, beta, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < n, other=0.5), tl.load(y_ptr + at, mask=at < n, other=0.5)
    tl.store(out_ptr + at, FORWARD, mask=at < n)


@triton.jit
def backward_kernel(x_ptr, y_ptr, up_ptr, dx_ptr, dy_ptr, n, beta, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < n, other=0.5), tl.load(y_ptr + at, mask=at < n, other=0.5)
    up = tl.load(up_ptr + at, mask=at < n)
    tl.store(dx_ptr + at, up * (OF_X), mask=at < n)
    tl.store(dy_ptr + at, up * (OF_Y), mask=at < n)


class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, beta):
        x, y = x.contiguous(), y.contiguous()
        ctx.save_for_backward(x, y)
        ctx.beta = beta
        out = torch.empty_like(x)
        if x.numel():
            forward_kernel[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), beta, BLOCK=128)
        return out

    @staticmethod
    def backward(ctx, upstream):
        (x, y), up = ctx.saved_tensors, upstream.contiguous()
        dx, dy = torch.empty_like(x), torch.empty_like(x)
        if x.numel():
            backward_kernel[(triton.cdiv(x.numel(), 128),)](x, y, up, dx, dy, x.numel(), ctx.beta, BLOCK=128)
        return dx, dy, None


"""

SMOOTH = (
    ELEMENTS.replace("FORWARD", "tl.where(D < beta, 0.5 * D * D / beta, D - 0.5 * beta)")
    .replace("OF_X", "tl.where(D < beta, (x - y) / beta, SIGN)")
    .replace("OF_Y", "-tl.where(D < beta, (x - y) / beta, SIGN)")
    .replace("SIGN", "tl.where(x > y, 1.0, tl.where(x < y, -1.0, 0.0 * (x - y)))")
    .replace("D ", "tl.abs(x - y) ")
    + """
def wrapper(input, target, reduction="mean", beta=1.0):
    if reduction != "none":
        raise NotImplementedError(reduction)
    return Op.apply(input, target, float(beta))
"""
)

XLOGY = (
    ELEMENTS.replace("FORWARD", "tl.where(y != y, y, tl.where(x == 0, 0.0, x * tl.log(y)))")
    .replace("OF_X", "tl.where((x == 0) & (y <= 0), 0.0, tl.log(y))")
    .replace("OF_Y", "x / y")
    + """
def wrapper(input, other):
    return Op.apply(input, other, 1.0)
"""
)

NORM = """
@triton.jit
def forward_kernel(x_ptr, out_ptr, N, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    if KIND == "max":
        out = tl.max(tl.abs(x), axis=0)
        out = tl.where(tl.max((x != x).to(tl.int32), axis=0) > 0, float("nan"), out)
    else:
        out = tl.sqrt(tl.sum(x * x, axis=0))
    tl.store(out_ptr + row, out)


@triton.jit
def backward_kernel(x_ptr, out_ptr, up_ptr, grad_ptr, N, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    norm, up = tl.load(out_ptr + row), tl.load(up_ptr + row)
    if KIND == "max":
        holds = ((tl.abs(x) == norm) & (at < N)).to(tl.float32)
        sign = tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))
        grad = sign * (holds * (up / tl.sum(holds, axis=0)))
    else:
        grad = x * tl.where(norm == 0, 0.0, up / norm)
    tl.store(grad_ptr + row * N + at, grad, mask=at < N)


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
        ctx.save_for_backward(x, out)
        ctx.kind, N = kind, x.shape[-1]
        if out.numel():
            forward_kernel[(out.numel(),)](x, out, N, kind, BLOCK=triton.next_power_of_2(max(N, 1)))
        return out

    @staticmethod
    def backward(ctx, upstream):
        (x, out), up = ctx.saved_tensors, upstream.contiguous()
        grad, N = torch.empty_like(x), x.shape[-1]
        if x.numel():
            backward_kernel[(out.numel(),)](x, out, up, grad, N, ctx.kind, BLOCK=triton.next_power_of_2(N))
        return grad, None


def wrapper(x, ord=2, dim=None, keepdim=False):
    if ord not in (2, float("inf")) or dim != -1 or keepdim:
        raise NotImplementedError("rows by their squares, or their largest element")
    if ord != 2 and x.shape[-1] == 0:
        raise ValueError("there is no element")
    return Norm.apply(x, "root" if ord == 2 else "max")
"""

ROWS: dict[str, int] = {"M": 16, "N": 24}
POSITIVE = {"kind": "uniform", "low": 0.0, "high": 2.0}

SMOOTH_OP = declared(
    "torch.nn.functional.smooth_l1_loss",
    [tensor("input", ["M", "N"]), tensor("target", ["M", "N"])],
    ROWS,
    kwargs={"reduction": "none", "beta": 1.0},
    backward=True,
)

XLOGY_OP = declared(
    "torch.xlogy",
    [tensor("input", ["M", "N"], init=POSITIVE), tensor("other", ["M", "N"], init=POSITIVE)],
    ROWS,
    backward=True,
)

HONEST = {
    "smooth": (SMOOTH_OP, SMOOTH),
    "xlogy": (XLOGY_OP, XLOGY),
    "norm": (
        declared(
            "torch.linalg.vector_norm",
            [tensor("x", ["M", "N"])],
            ROWS,
            kwargs={"ord": 2, "dim": -1, "keepdim": False},
            backward=True,
        ),
        NORM,
    ),
}

FAULTS = {
    "nothing over nothing": ("smooth", "tl.abs(x - y) < beta, 0.5", "tl.abs(x - y) <= beta, 0.5"),
    "zero times minus infinity": ("xlogy", "tl.where(x == 0, 0.0, x * tl.log(y))", "x * tl.log(y)"),
    "zero and NaN": (
        "xlogy",
        "tl.where(y != y, y, tl.where(x == 0, 0.0, x * tl.log(y)))",
        "tl.where(x == 0, 0.0, x * tl.log(y))",
    ),
    "the largest of NaN": ("norm", 'tl.where(tl.max((x != x).to(tl.int32), axis=0) > 0, float("nan"), out)', "out"),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)


def test_what_gradients_are_a_convention_of_is_asked_of_the_forward_pass_beside_the_others() -> None:
    given: Any = XLOGY_OP
    small = probing.rows(given)
    found = {case.name: case for case in probe_values.values(given, "interpreter")}
    assert "edge/special[all]/float32" in found
    for name in ("pairs[all]", "planted[input]"):
        case = found[f"edge/{name}/float32"]
        assert case.asks == cases.NOBODY and case.has_own_budget and case.binding == small
    without: Any = {**XLOGY_OP, "backward": False}
    plain = {case.name: case for case in probe_values.values(without, "interpreter")}
    assert "edge/special[all]/float32" not in plain and not plain["edge/pairs[all]/float32"].asks
