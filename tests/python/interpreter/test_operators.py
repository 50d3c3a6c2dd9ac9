"""Operators: objects with a method for each pass. Their gradients are judged as those of autograd functions are, through whole checks on the interpreter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import check, declared, tensor
from test_outputs import output

from t2t_harness.cases import cases, inputs, operators
from t2t_harness.faults.misfit import Misfit
from t2t_harness.sources import methods

SOFTMAX = """
@triton.jit
def forward_kernel(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + at, mask=at < N, other=-float("inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + tl.program_id(0) * N + at, power / tl.sum(power, axis=0), mask=at < N)


@triton.jit
def backward_kernel(dy_ptr, y_ptr, dx_ptr, stride, N, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    y = tl.load(y_ptr + row * N + at, mask=at < N, other=0.0)
    dy = tl.load(dy_ptr + row * stride + at, mask=at < N, other=0.0)
    tl.store(dx_ptr + row * N + at, y * (dy - tl.sum(dy * y, axis=0)), mask=at < N)


class Softmax:
    def forward(self, x, dim=-1):
        if dim not in (-1, 1) or x.dim() != 2:
            raise NotImplementedError("rows of a matrix alone")
        x = x if x.stride(-1) == 1 else x.contiguous()
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        if y.numel():
            forward_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y

    def backward(self, grad_output, output):
        dy = grad_output if grad_output.stride(-1) == 1 else grad_output.contiguous()
        dx = torch.empty(output.shape, dtype=output.dtype, device=output.device)
        if dx.numel():
            block = triton.next_power_of_2(dx.shape[1])
            backward_kernel[(dx.shape[0],)](dy, output, dx, dy.stride(0), dx.shape[1], BLOCK=block)
        return dx


_made = None


def get_softmax():
    global _made
    _made = _made or Softmax()
    return _made


softmax = Softmax()
"""


def softmax_op(**more: Any) -> dict[str, Any]:
    """Returns softmax over the last dim, checked backward."""
    given = [tensor("input", ["M", "N"], requires_grad=True)]
    told = {"kwargs": {"dim": -1}, "backward": True, "seeds": 1, "fixed": [], "allow": [], "edges": {}, **more}
    return declared("torch.nn.functional.softmax", given, {"M": 4, "N": 12}, **told)


FACTORY = {"entry": "get_softmax", "methods": {"forward": "forward", "backward": "backward"}}


@pytest.mark.parametrize(
    "variant",
    [
        FACTORY,
        {"entry": "softmax"},
        {"entry": "Softmax"},
        {
            "entry": "get_softmax",
            "methods": {"forward": "forward(input, dim=dim)", "backward": "backward(grad, output=output)"},
        },
    ],
    ids=["a factory", "an object", "a class", "in full"],
)
def test_an_operator_is_judged_by_both_passes(tmp_path: Path, variant: dict[str, Any]) -> None:
    documents = check(tmp_path, softmax_op(), SOFTMAX, **variant)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    assert documents["evidence"]["cases"][0]["launches"] == 2


WRONG = {
    "a gradient without its sum": ("y * (dy - tl.sum(dy * y, axis=0))", "y * dy", "mismatch"),
    "a gradient of another shape": ("        return dx\n", "        return dx.reshape(-1)\n", "shape"),
    "a gradient of another dtype": ("        return dx\n", "        return dx.double()\n", "dtype"),
    "two gradients": ("        return dx\n", "        return dx, dx\n", "type"),
    "torch's backward": (
        "        return dx\n",
        "        return torch._softmax_backward_data(dy, output, -1, output.dtype)\n",
        "torch-fallback",
    ),
    "it writes to the gradient that flows in": (
        "        return dx\n",
        "        return dy.copy_(dx)\n",
        "mutated-input",
    ),
    "it keeps the output of the last call": (
        "        return y\n",
        "        self.kept = y\n        return y\n",
        "mismatch",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_backward_pass_is_rejected(tmp_path: Path, fault: str) -> None:
    written, instead, class_ = WRONG[fault]
    assert written in SOFTMAX
    kernel = SOFTMAX.replace(written, instead)
    if "keeps" in fault:
        kernel = kernel.replace("(dy, output, dx, dy", "(dy, self.kept, dx, dy")
    documents = check(tmp_path, softmax_op(), kernel, **FACTORY)
    assert documents["verdict"]["class"] == class_, documents["evidence"]["failure"]


def test_an_entry_without_the_method_is_an_exception_that_names_it(tmp_path: Path) -> None:
    told = {"entry": "get_softmax", "methods": {"forward": "forward", "backward": "backwards"}}
    documents = check(tmp_path, softmax_op(), SOFTMAX, **told)
    assert documents["verdict"]["class"] == "exception"
    assert "has no method `backwards`" in documents["evidence"]["failure"]["message"]


def test_a_parameter_that_means_nothing_is_an_exception_that_says_how_to_declare_it(tmp_path: Path) -> None:
    kernel = SOFTMAX.replace(
        "def backward(self, grad_output, output):", "def backward(self, grad_output, result, output=None):"
    )
    documents = check(tmp_path, softmax_op(), kernel, **FACTORY)
    assert documents["verdict"]["class"] == "exception"
    message = documents["evidence"]["failure"]["message"]
    assert "the parameter `result` of `backward`" in message and "methods: {backward:" in message


def test_parameters_mean_inputs_kwargs_outputs_and_gradients_by_their_names() -> None:
    class Norm:
        def forward(self, x, w, eps): ...

        def backward(self, dy, x, w, /, mean, grad_rstd, eps, *, scale=1.0, y=None): ...

    aliases = methods.aliases(methods.parameters_of(Norm().forward), "forward", ["input", "weight", "eps"])
    assert aliases == {"x": "input", "w": "weight", "eps": "eps"}
    written = methods.by_names(
        methods.parameters_of(Norm().backward),
        "backward",
        ["input", "weight", "eps"],
        ["result", "mean", "rstd"],
        aliases,
    )
    assert written == "backward(grad, input, weight, mean=mean, grad_rstd=grad_rstd, eps=eps, y=output)"
    assert methods.by_names(methods.parameters_of(max), "backward", [], [], {}) == "backward(grad, output)"
    assert methods.aliases(methods.parameters_of(Norm().forward), "forward(weight, 2, eps=eps)", []) == {
        "x": "weight",
        "eps": "eps",
    }


BOTH = """
class Both:
    def forward(self, x, tensors):
        return product(x, tensors[0]), product(x, tensors[1])

    def backward(self, grad, x, tensors):
        one, other = grad
        return ADDED, product(one, x), product(other, x)


both = Both()


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * tl.load(y_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def sum_kernel(x_ptr, y_ptr, a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    one = tl.load(x_ptr + at, mask=at < n) * tl.load(y_ptr + at, mask=at < n)
    other = tl.load(a_ptr + at, mask=at < n) * tl.load(b_ptr + at, mask=at < n)
    tl.store(out_ptr + at, one + other, mask=at < n)


def product(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        product_kernel[(triton.cdiv(x.numel(), 32),)](x, y, out, x.numel(), BLOCK=32)
    return out


def added(*given):
    given = [one.contiguous() for one in given]
    out = torch.empty_like(given[0])
    if out.numel():
        sum_kernel[(triton.cdiv(out.numel(), 32),)](*given, out, out.numel(), BLOCK=32)
    return out
"""

TWICE = '''"""What is right."""


def twice(x, tensors):
    """Returns the products of `x` with both tensors."""
    return x * tensors[0], x * tensors[1]
'''


@pytest.mark.parametrize(
    ("sum_", "class_"),
    [("added(one, tensors[0], other, tensors[1])", None), ("product(one, tensors[0])", "mismatch")],
)
def test_several_outputs_and_lists_of_inputs_have_gradients(tmp_path: Path, sum_: str, class_: str | None) -> None:
    file = tmp_path / "workspace/references/twice.py"
    file.parent.mkdir(parents=True)
    file.write_text(TWICE, encoding="utf-8")
    reference = {"file": "references/twice.py", "name": "twice", "init": {}, "root": str(tmp_path / "workspace")}
    members = [tensor(f"tensors.{number}", ["M", "N"], list="tensors", requires_grad=True) for number in range(2)]
    given = [tensor("x", ["M", "N"], requires_grad=True), *members]
    more = {"reference": reference, "backward": True, "seeds": 1, "torch": None}
    op = {**declared("", given, {"M": 4, "N": 12}, outputs=[output("one"), output("other")]), **more}
    documents = check(tmp_path, op, BOTH.replace("ADDED", sum_), entry="both")
    assert documents["verdict"]["class"] == class_, documents["evidence"]["failure"]


def test_what_changes_between_the_passes_is_an_error_as_in_autograd() -> None:
    import torch

    class Square:
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return input * input

        def backward(self, grad: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
            return 2 * grad * input

    op = declared("torch.square", [tensor("input", ["M"])], {"M": 4}, backward=True)
    case = cases.declared_cases(op)[0]
    given = inputs.make_inputs(op, case)
    leaves = {"input": given["input"].detach().requires_grad_()}
    backward = operators.backward_of(Square(), methods.DEFAULT, op, leaves)
    operator = operators.Operator(Square().forward, backward, leaves)
    made = operator(leaves["input"])
    assert isinstance(made, torch.Tensor)
    [found] = torch.autograd.grad(made.sum(), [leaves["input"]])
    assert found.equal(2 * given["input"])
    made = operator(leaves["input"])
    given["input"].add_(1)
    assert isinstance(made, torch.Tensor)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()  # type: ignore[no-untyped-call]


def test_gradients_are_given_for_each_tensor_or_for_each_that_has_one() -> None:
    import torch

    leaves = {"x": torch.zeros(2), "index": torch.zeros(2, dtype=torch.int64), "w": torch.zeros(3)}
    backward = operators.Backward(print, operators.parsed("backward(grad)"), leaves, ())
    operator = operators.Operator(print, backward, leaves)
    x, w = torch.ones(2), torch.ones(3)
    assert operators.in_places(operator, (x, None, w)) == [x, None, w]
    assert operators.in_places(operator, [x, w]) == [x, None, w]
    with pytest.raises(Misfit, match="one gradient, and 2 inputs have one: x, w"):
        operators.in_places(operator, x)
    with pytest.raises(Misfit, match="`int` for the gradient of `w`"):
        operators.in_places(operator, (x, 1))


def test_a_backward_pass_takes_named_outputs_their_gradients_lists_and_constants() -> None:
    import torch

    told: list[object] = []

    def back(*args: object, **kwargs: object) -> None:
        told.extend([*args, kwargs])

    x, one, other, gradient = (torch.full((2,), float(number)) for number in range(4))
    known = {"x": x, "tensors": [one, other], "dim": 3, "left": None, "unused": torch.zeros(1)}
    call = operators.parsed("back(grad_mean, rstd, tensors, [x, dim], left, keep=True)")
    backward = operators.Backward(back, call, known, ("mean", "rstd"))
    assert [one.data_ptr() for one in backward.kept] == [one.data_ptr() for one in (x, one, other)]
    backward([x, one, other, "the mean", "the rstd"], [gradient, None], several=True)
    assert told[:2] == [gradient, "the rstd"] and told[4:] == [None, {"keep": True}]
    assert told[2] == [one, other] and told[3] == [x, 3]
    # What takes no output has none kept for it.
    alone = operators.Backward(back, operators.parsed("back(grad, x)"), known, ("mean", "rstd"))
    told.clear()
    alone([x], [gradient], several=False)
    assert not alone.takes_outputs and told == [gradient, x, {}]
