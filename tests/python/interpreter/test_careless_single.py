"""A kernel that is right for a row and for a column, and wrong where a broadcast input has one element, is rejected; the honest kernel passes."""

from __future__ import annotations

import pytest
from checks import both_tests, declared, tensor

from t2t_harness.cases import inputs as inputs_of
from t2t_harness.cases import probe_values

ADD = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, xm, xn, ym, yn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + row * xm + at * xn, mask=at < N)
        y = tl.load(y_ptr + row * ym + at * yn, mask=at < N)
        tl.store(out_ptr + row * N + at, x + y, mask=at < N)


def wrapper(input, other, alpha=1):
    if alpha != 1:
        raise NotImplementedError("a plain sum alone")
    x, y = torch.broadcast_tensors(input, other)
    step = y.stride(1)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    M, N = x.shape
    if out.numel():
        kernel[(M,)](x, y, out, N, x.stride(0), x.stride(1), y.stride(0), step, BLOCK=64)
    return out
"""

REFUSES = ADD.replace(
    "    x, y = ", '    if other.dim() != input.dim():\n        raise RuntimeError("matrices alone")\n    x, y = '
)

INPUTS = [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])]

OP = declared("torch.add", INPUTS, {"M": 6, "N": 20}, broadcast=True)

HONEST = {"sum": (OP, ADD), "of matrices": (OP, REFUSES)}

FAULTS = {
    "one row has as many columns as the result": (
        "of matrices",
        "step = y.stride(1)",
        "step = 1 if other.shape[0] == 1 and input.shape[0] > 1 else y.stride(1)",
    ),
    "a number has a row of its own": ("sum", "step = y.stride(1)", "step = y.stride(1) if other.dim() else 1"),
    "the first input has all columns": (
        "sum",
        "x.stride(1), y.stride(0)",
        "x.stride(1) or int(input.shape[0] == 1), y.stride(0)",
    ),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)


@pytest.mark.parametrize(("is_broadcast", "count"), [(True, 3), (False, 0)])
def test_one_element_is_asked_for_where_inputs_broadcast(is_broadcast: bool, count: int) -> None:
    layouts = [{**given, "layout": "transposed"} for given in INPUTS]
    op = declared("torch.add", layouts, {"M": 6, "N": 20}, broadcast=is_broadcast)
    found = list(probe_values.single(op))
    assert len(found) == count
    for case in found:
        made = inputs_of.make_inputs(op, case)
        assert sorted(one.numel() == 1 for one in made.values()) == [False, True]
