"""Which exceptions of a wrapper at another value of an argument say that it does not take that value, and which are faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from checks import both_tests, declared, tensor

from t2t_harness.cases.cases import Case
from t2t_harness.faults import declining
from t2t_harness.judging import refusal

SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * N + at, mask=at < N, other=0.0), axis=0))


@triton.jit
def spread_kernel(up_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + row * N + at, tl.load(up_ptr + row) + tl.zeros((BLOCK,), tl.float32), mask=at < N)


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, dim, keepdim):
        ctx.shape, ctx.keepdim = input.shape, keepdim
        rows = input.contiguous()
        out = torch.empty(rows.shape[:-1], dtype=rows.dtype, device=rows.device)
        if out.numel():
            kernel[(out.numel(),)](rows, out, rows.shape[-1], BLOCK=triton.next_power_of_2(max(rows.shape[-1], 1)))
        return out.unsqueeze(-1) if keepdim else out

    @staticmethod
    def backward(ctx, upstream):
        up = upstream.contiguous()
        out = torch.empty(ctx.shape, dtype=up.dtype, device=up.device)
        N = ctx.shape[-1]
        if out.numel():
            spread_kernel[(up.numel(),)](up, out, N, BLOCK=triton.next_power_of_2(N))
        return out, None, None


def wrapper(input, dim, keepdim=False):
    if dim not in (-1, input.dim() - 1):
        raise NotImplementedError("the last dim alone")
    return Sum.apply(input, dim, keepdim)
"""

NORM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, ORD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    size = tl.abs(tl.load(x_ptr + row * N + at, mask=at < N, other=0.0))
    if ORD == 2:
        found = tl.sqrt(tl.sum(size * size, axis=0))
    else:
        power = tl.where(at < N, tl.exp(ORD * tl.log(size)), 0.0)
        found = tl.exp(tl.log(tl.sum(power, axis=0)) * (1.0 / ORD))
    tl.store(out_ptr + row, found)


def wrapper(x, ord=2, dim=None, keepdim=False):
    if dim != -1 or not 0 < ord < 9:
        raise NotImplementedError("powers of rows")
    rows = x.contiguous()
    N = rows.shape[-1]
    out = torch.empty(rows.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(out.numel(),)](rows, out, N, float(ord), BLOCK=triton.next_power_of_2(max(N, 1)))
    return out.unsqueeze(-1) if keepdim else out
"""

ROWS: dict[str, int] = {"M": 16, "N": 24}

HONEST = {
    "sum": (
        declared("torch.sum", [tensor("input", ["M", "N"])], ROWS, kwargs={"dim": -1, "keepdim": False}, backward=True),
        SUM,
    ),
    "norm": (
        declared(
            "torch.linalg.vector_norm",
            [tensor("x", ["M", "N"])],
            ROWS,
            kwargs={"ord": 2, "dim": -1, "keepdim": False},
        ),
        NORM,
    ),
}

FAULTS = {
    "a TypeError in the backward pass": (
        "sum",
        "up = upstream.contiguous()",
        "up = upstream.narrow(-1 if ctx.keepdim else 0, None if ctx.keepdim else 0, upstream.shape[0]).contiguous()",
    ),
    "a ValueError of Python's": ("norm", "float(ord)", "float(ord if ord != 3 else 'three')"),
    "constants that are divided by zero": ("norm", "not 0 < ord < 9", "not 0 <= ord < 9"),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS, ("exception",))


def raises(dim: object) -> None:
    raise NotImplementedError(dim)


def raises_from_another(dim: object) -> None:
    try:
        _ = {0: 1}[dim]
    except KeyError as error:
        raise ValueError("the first dim alone") from error


def asserts(dim: object) -> None:
    assert dim == 0


def unpacks(dim: object) -> None:
    (_,) = (dim, dim)


def lacks_an_argument() -> None:
    pass


def has_torch_assert(dim: object) -> None:
    torch._check_not_implemented(dim == 0, lambda: "the first dim alone")


def decorated(function: Callable[..., None]) -> Callable[..., None]:
    def handing_on(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)

    return handing_on


def adds(dim: Any) -> None:
    _ = dim + 1


def divides(dim: object) -> None:
    _ = 1 / (0 if dim is None else 1)


def converts(dim: object) -> None:
    int(str(dim))


def asks_torch(dim: Any) -> None:
    torch.zeros(2, 3).sum(dim=dim + "")


def calls_wrongly(dim: object) -> None:
    raises()  # type: ignore[call-arg]


def raises_what_computing_raises(dim: object) -> None:
    raise RuntimeError(dim)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (raises, True),
        (raises_from_another, True),
        (asserts, True),
        (unpacks, True),
        (has_torch_assert, True),
        (lacks_an_argument, True),
        (decorated(lacks_an_argument), True),
        (torch.no_grad()(lacks_an_argument), True),
        (decorated(adds), False),
        (adds, False),
        (divides, False),
        (converts, False),
        (asks_torch, False),
        (calls_wrongly, False),
        (raises_what_computing_raises, False),
    ],
)
def test_a_refusal_is_a_statement(function: Callable[..., None], expected: bool) -> None:
    assert declining.is_deliberate(raised(function)) == expected


def raised(function: Callable[..., None]) -> BaseException:
    """Returns what the function raises where the harness calls it with None."""
    own: dict[str, Any] = {"__name__": "t2t_harness.phases.called"}
    exec(compile("def call(function):\n    function(None)\n", "call", "exec"), own)
    try:
        own["call"](function)
    except Exception as error:
        # The first frame is this one, the test's.
        assert error.__traceback__ is not None
        return error.with_traceback(error.__traceback__.tb_next)
    pytest.fail("nothing was raised")


@pytest.mark.parametrize(
    ("name", "length", "expected"),
    [
        ("edge/off-block[N=257]/float32", 257, True),
        ("edge/off-block[N=65]/float32", 65, False),
        ("edge/transposed/float32", 257, False),
    ],
    ids=["beyond all sizes", "within them", "no edge of a block"],
)
def test_a_length_beyond_all_sizes_may_be_refused(name: str, length: int, expected: bool) -> None:
    op = declared("torch.exp", [tensor("input", ["M", "N"])], {"M": 4, "N": 32})
    case = Case(name, "edge", "float32", {"M": 2, "N": length})
    facts: Any = {"failure": {"class": "exception"}, "is_deliberate": False}
    assert refusal.is_refusal(op, case, facts) is expected
    facts["failure"]["class"] = "mismatch"
    assert not refusal.is_refusal(op, case, facts)
