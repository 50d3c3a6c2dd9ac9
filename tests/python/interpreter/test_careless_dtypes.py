"""Kernels that are wrong where two inputs have different types are rejected; those that promote them as torch does pass, and those that refuse them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checks import both_tests, declared, tensor

from t2t_harness.cases import inputs as inputs_of
from t2t_harness.cases import probe_dtypes

MUL = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


def wrapper(input, other):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, y.dtype), device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](x, y, out, out.numel(), BLOCK=64)
    return out
"""

REFUSES = MUL.replace(
    "    x, y = ", '    if input.dtype != other.dtype:\n        raise RuntimeError("one type alone")\n    x, y = '
)

INPUTS = [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])]

DIMS = {"M": 6, "N": 20}

OP = declared("torch.mul", INPUTS, DIMS, dtypes=["float32", "float16"])

FIRST = MUL.replace("torch.promote_types(x.dtype, y.dtype)", "x.dtype")
"""Whoever takes two types for one says so by the type of the result."""

HONEST = {"promotes": (OP, MUL), "refuses": (OP, REFUSES), "has the type of the first": (OP, FIRST)}

FAULTS = {
    "the second is rounded to the type of the first": (
        "promotes",
        "y = input.contiguous(), other.contiguous()\n    out = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, y.dtype)",
        "y = input.contiguous(), other.contiguous().to(input.dtype)\n"
        "    out = torch.empty(x.shape, dtype=torch.promote_types(input.dtype, other.dtype)",
    ),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS, ("mismatch",))


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("torch.mul", {}, [("other", "bfloat16"), ("input", "bfloat16")]),
        ("torch.mul", {"dtypes": ["float32"]}, []),
        ("torch.mul", {"backward": True}, []),
        ("torch.Tensor.mul_", {"mutates": ["input"]}, []),
        ("torch.matmul", {}, []),
    ],
)
def test_types_are_mixed_where_torch_promotes_them(
    name: str, more: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    op: Any = declared(name, INPUTS, DIMS, **{"dtypes": ["bfloat16", "float32"], **more})
    found = list(probe_dtypes.mixed(op))
    assert [pair for case in found for pair in (case.dtypes or {}).items()] == expected
    for case in found:
        made = inputs_of.make_inputs(op, case)
        assert {one.dtype for one in made.values()} == {torch.float32, torch.bfloat16}
        assert torch.mul(*made.values()).dtype is torch.float32
