"""Gradients of an op that holds an input for a constant, through a whole check; its wrapper returns None beside the result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import check, declared, tensor
from test_outputs import output

from t2t_harness.cases import cases, inputs
from t2t_harness.judging import autograd, oracle

REFERENCE = '''"""What is right."""

import torch


def weighted(input, weight):
    """Returns the product, in which the weight is a constant, and what stands for None."""
    return input * weight.detach(), torch.zeros(())
'''

KERNEL = """
@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * tl.load(y_ptr + offsets, mask=mask), mask=mask)


def product(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        product_kernel[(triton.cdiv(x.numel(), 32),)](x, y, out, x.numel(), BLOCK=32)
    return out


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return product(input, weight), None

    @staticmethod
    def backward(ctx, upstream, _):
        input, weight = ctx.saved_tensors
        return product(upstream, weight), OF_WEIGHT


wrapper = Weighted.apply
"""


def op(root: Path) -> dict[str, Any]:
    """Returns the op, its reference written below `root`."""
    file = root / "references/weighted.py"
    file.parent.mkdir(parents=True)
    file.write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "references/weighted.py", "name": "weighted", "init": {}, "root": str(root)}
    given = [tensor("input", ["M", "N"]), tensor("weight", ["M", "N"])]
    outputs = [output("product"), output("nothing", "ignore")]
    more = {"reference": reference, "outputs": outputs, "backward": True, "seeds": 1}
    return {**declared("", given, {"M": 8, "N": 12}), **more, "torch": None}


@pytest.mark.parametrize(("of_weight", "class_"), [("None", None), ("product(upstream, input)", "mismatch")])
def test_what_is_a_constant_has_no_gradient_and_need_not_be_told_from_zeros(
    tmp_path: Path, of_weight: str, class_: str | None
) -> None:
    documents = check(tmp_path, op(tmp_path / "workspace"), KERNEL.replace("OF_WEIGHT", of_weight))
    found, failure = documents["verdict"], documents["evidence"]["failure"]
    assert found["class"] == class_, failure
    assert class_ is None or failure["message"].startswith("gradient of `weight`")


OVER = '''"""What is right."""

import torch


class Over(torch.autograd.Function):
    """The square, which leaves its gradient where its input was."""

    @staticmethod
    def forward(ctx, input):
        ctx.input = input
        return input * input

    @staticmethod
    def backward(ctx, upstream):
        return ctx.input.detach().mul_(2 * upstream)


def square(input):
    """Returns the square of `input`, which holds its gradient after the way back."""
    return Over.apply(input)
'''

SQUARE = """
@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, factor * x * tl.load(y_ptr + offsets, mask=mask), mask=mask)


def product(x, y, out, factor):
    if x.numel():
        product_kernel[(triton.cdiv(x.numel(), 32),)](x, y, out, x.numel(), factor, BLOCK=32)
    return out


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return product(x, x, torch.empty_like(x), 1.0)

    @staticmethod
    def backward(ctx, upstream):
        return product(ctx.x, upstream.contiguous(), ctx.x.detach(), FACTOR)


wrapper = Square.apply
"""


@pytest.mark.parametrize(("factor", "class_"), [("2.0", None), ("3.0", "mismatch")])
def test_a_backward_pass_that_writes_over_its_inputs_as_declared_runs_once(
    tmp_path: Path, factor: str, class_: str | None
) -> None:
    file = tmp_path / "workspace/references/over.py"
    file.parent.mkdir(parents=True)
    file.write_text(OVER, encoding="utf-8")
    reference = {"file": "references/over.py", "name": "square", "init": {}, "root": str(tmp_path / "workspace")}
    edges = dict.fromkeys(("transposed", "strided", "padded"), "what is not dense is not written over")
    more = {"reference": reference, "mutates": ["input"], "backward": True, "seeds": 1, "torch": None}
    declaration = {**declared("", [tensor("input", ["M", "N"])], {"M": 8, "N": 12}), **more, "edges": edges}
    documents = check(tmp_path, declaration, SQUARE.replace("FACTOR", factor))
    assert documents["verdict"]["class"] == class_, documents["evidence"]["failure"]


def test_only_what_the_outputs_do_not_depend_on_is_unused(tmp_path: Path) -> None:
    declaration = op(tmp_path)
    case = cases.declared_cases(declaration)[0]
    right = oracle.reference(declaration, case, inputs.make_inputs(declaration, case))
    assert right.unused == {"grad.weight"}
    assert not right.plain["grad.weight"].any() and right.plain["grad.input"].any()


def test_a_defect_of_the_harness_is_no_refusal_of_torch() -> None:
    with pytest.raises(KeyError) as own:
        autograd.upstream_layout(cases.Case("edge/x", "edge", "float32", {}, layout="no such layout"), 2)
    assert oracle.is_own(own.value)
    with pytest.raises(KeyError) as elsewhere:
        _ = {"here": 1}["there"]
    assert not oracle.is_own(elsewhere.value)
