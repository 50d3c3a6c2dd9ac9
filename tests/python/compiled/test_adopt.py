"""What `t2t adopt` reads off wrappers and ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from t2t_harness.phases.adopt import adopt

SOURCE = """
import torch, triton


@triton.jit
def kernel(x_ptr): ...


def fused_softmax(x: torch.Tensor, axis=-1): ...


def norm(x, w, b, epsilon): ...


class LigerGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a): ...


class Scale(torch.nn.Module):
    def __init__(self, n): ...

    def forward(self, input): ...


def product(a, b, activation=""): ...


def loss(logits, labels): ...


def lookup(table, indices): ...


def rms(x, w, eps): ...


def groups(x, num_groups, w, b, eps): ...


def reduce(input, dim): ...


def swapped(other, input): ...


def add(input, other): ...


def weird(x, config): ...


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, scale=0.5, reduction="mean", softcap=None): ...


def _fast_sum(input): ...


class _Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input): ...


_private_kernel = kernel
gelu = LigerGELU.apply
fast_gelu = gelu
total = _fast_sum
loop = loop
"""


def told(tmp_path: Path, name: str, entry: str | None, **more: Any) -> dict[str, Any]:
    (tmp_path / "lib.py").write_text(SOURCE, encoding="utf-8")
    request = {"root": str(tmp_path), "name": name, "what": "lib.py", "file": "lib.py", "entry": entry, **more}
    document: dict[str, Any] = adopt(request)["documents"]
    return document


MN = ["M", "N"]


@pytest.mark.parametrize(
    ("name", "entry", "torch_name", "shapes", "kwargs", "call"),
    [
        ("softmax", "fused_softmax", "nn.functional.softmax", {"input": MN}, {"dim": -1}, "entry(input, dim)"),
        (
            "layer_norm",
            "norm",
            "nn.functional.layer_norm",
            {"input": MN, "weight": ["N"], "bias": ["N"]},
            {"normalized_shape": ["N"], "eps": 1e-05},
            "entry(input, weight, bias, eps)",
        ),
        ("gelu", "LigerGELU", "nn.functional.gelu", {"input": MN}, {}, "entry(input)"),
        ("matmul", "product", "matmul", {"input": ["M", "K"], "other": ["K", "N"]}, {}, "entry(input, other)"),
        ("bmm", "product", "bmm", {"input": ["B", "M", "K"], "mat2": ["B", "K", "N"]}, {}, "entry(input, mat2)"),
        (
            "cross_entropy",
            "loss",
            "nn.functional.cross_entropy",
            {"input": MN, "target": ["M"]},
            {},
            "entry(input, target)",
        ),
        (
            "cross_entropy",
            "Loss",
            "nn.functional.cross_entropy",
            {"input": MN, "target": ["M"]},
            {"reduction": "mean"},
            "entry(input, target, 0.5, reduction)",
        ),
        (
            "embedding",
            "lookup",
            "nn.functional.embedding",
            {"input": ["M"], "weight": ["V", "N"]},
            {},
            "entry(weight, input)",
        ),
        (
            "rms_norm",
            "rms",
            "nn.functional.rms_norm",
            {"input": MN, "weight": ["N"]},
            {"normalized_shape": ["N"], "eps": 1e-6},
            "entry(input, weight, eps)",
        ),
        (
            "group_norm",
            "groups",
            "nn.functional.group_norm",
            {"input": MN, "weight": ["N"], "bias": ["N"]},
            {"num_groups": 4, "eps": 1e-5},
            "entry(input, num_groups, weight, bias, eps)",
        ),
        ("sum", "reduce", "sum", {"input": MN}, {"dim": -1}, None),
        ("sub", "swapped", "sub", {"input": MN, "other": MN}, {}, None),
        ("add", None, "add", {"input": MN, "other": MN}, {}, None),
    ],
)
def test_arguments_are_mapped(
    tmp_path: Path, name: str, entry: str | None, torch_name: str, shapes: Any, kwargs: Any, call: str | None
) -> None:
    found = told(tmp_path, name, entry)["entry"]
    assert found["torch"] == f"torch.{torch_name}"
    assert [(one["name"], one["shape"]) for one in found["inputs"]] == list(shapes.items())
    assert (found["kwargs"], found["call"]) == (kwargs, call)


def test_places_are_integers(tmp_path: Path) -> None:
    ids, _ = told(tmp_path, "embedding", "lookup")["entry"]["inputs"]
    assert (ids["dtype"], ids["init"]) == ("int64", {"randint": [0, "V"]})


def test_an_autograd_function_is_applied(tmp_path: Path) -> None:
    assert told(tmp_path, "gelu", "LigerGELU")["entry"]["entry"] == "LigerGELU.apply"


@pytest.mark.parametrize(
    ("name", "op", "entry"),
    [
        ("gelu", "gelu", "LigerGELU.apply"),
        ("fast_gelu", "gelu", "LigerGELU.apply"),
        ("_fast_sum", "sum", "_fast_sum"),
        ("_Relu", "relu", "_Relu.apply"),
        ("total", "sum", "_fast_sum"),
    ],
)
def test_a_name_that_is_given_may_be_private_or_another_one(tmp_path: Path, name: str, op: str, entry: str) -> None:
    found = told(tmp_path, op, name)["entry"]
    assert (found["entry"], found["call"]) == (entry, "entry(input)" if entry.endswith(".apply") else None)


def test_a_reference_stands_for_torch(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text("def scaled(input):\n    return input * 2\n", encoding="utf-8")
    found = told(tmp_path, "scale", "Scale", reference="reference.py::scaled")["entry"]
    assert (found["torch"], found["reference"], found["call"]) == (None, "reference.py::scaled", None)
    assert [one["name"] for one in found["inputs"]] == ["input"]


REFERENCES = """
import torch


def rms(x, w, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def added(x, residual, norm_weight):
    residual.add_(x)
    x.copy_(torch.nn.functional.rms_norm(residual, residual.shape[-1:], norm_weight))


def product(x, w):
    return x @ w


def routed(x, weight, k=4):
    return torch.softmax(x @ weight.t(), -1).topk(k, -1)


def distances(a, b):
    return (a * a).sum(-1)[:, None] + (b * b).sum(-1) - 2 * a @ b.t()


def both(a, b):
    return a + b


def plain(x, y):
    return x + y


def gated(x):
    half = x.shape[-1] // 2
    return torch.nn.functional.silu(x[..., :half]) * x[..., half:]


def grouped(x, groups: int):
    return x.view(groups, 7, 11, -1)


def typed(x, groups):
    return x.view(int(groups), 7, 11, -1)


def heads(q, k, v, scale: float):
    batch, kinds, rows, lanes, width = q.shape
    return q


class Norm(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()

    def forward(self, x):
        return x
"""


def of_reference(tmp_path: Path, name: str, parameters: str) -> dict[str, Any]:
    (tmp_path / "ref.py").write_text(REFERENCES, encoding="utf-8")
    (tmp_path / "own.py").write_text(f"def own({parameters}): ...\n", encoding="utf-8")
    return told(tmp_path, "own", "own", file="own.py", reference=f"ref.py::{name}")


@pytest.mark.parametrize(
    ("name", "parameters", "shapes"),
    [
        ("rms", "x, w, eps=1e-6", {"x": MN, "w": ["N"]}),
        ("added", "x, residual, norm_weight", {"x": MN, "residual": MN, "norm_weight": ["N"]}),
        ("product", "x, w", {"x": MN, "w": ["N", "K"]}),
        ("routed", "x, weight, k=4", {"x": MN, "weight": ["K", "N"]}),
        ("distances", "a, b", {"a": MN, "b": ["K", "N"]}),
        ("both", "a, b", {"a": MN, "b": MN}),
        ("plain", "x, y", {"x": MN, "y": MN}),
        ("gated", "x", {"x": ["M", "2*N"]}),
    ],
)
def test_shapes_follow_what_the_reference_takes(tmp_path: Path, name: str, parameters: str, shapes: Any) -> None:
    found = of_reference(tmp_path, name, parameters)["entry"]
    assert {one["name"]: one["shape"] for one in found["inputs"]} == shapes


@pytest.mark.parametrize(
    ("name", "parameters", "first", "needed"),
    [
        ("grouped", "x, groups", "TypeError: view()", ", with `kwargs: {groups: …}`: docs"),
        ("typed", "x, groups: int", "TypeError: ", ", with `kwargs: {groups: …}`: docs"),
        ("heads", "q, k, v, scale", "ValueError: not enough values to unpack (expected 5, got 2)", "scale: …"),
        ("Norm", "x", "missing 1 required positional argument: 'hidden'", "by hand: docs"),
    ],
)
def test_where_no_shapes_are_found_the_first_try_is_shown(
    tmp_path: Path, name: str, parameters: str, first: str, needed: str
) -> None:
    unclear = of_reference(tmp_path, name, parameters)["unclear"]
    assert "; tried were floats of [M, N], with weights of [N], as products, and with" in unclear["message"]
    assert first in unclear["message"].partition("The first try: ")[2]
    assert needed in unclear["hint"]


@pytest.mark.parametrize(
    ("name", "entry", "more", "said"),
    [
        ("relu", "weird", {}, "`weird` has `config`, which is none of the op's arguments: input"),
        ("relu", None, {}, "lib.py has several wrappers, or none"),
        ("relu", "kernel", {}, "lib.py has no wrapper `kernel`; it has `fused_softmax`, "),
        ("relu", "_private_kernel", {}, "lib.py has no wrapper `_private_kernel`"),
        ("relu", "loop", {}, "lib.py has no wrapper `loop`"),
        ("frobnicate", "add", {}, "torch has no function `frobnicate`"),
        (
            "relu",
            "add",
            {"file": None, "module": "no_such_module_here"},
            "no module `no_such_module_here` is installed",
        ),
        ("relu", "add", {"file": "gone.py"}, "cannot read gone.py"),
        ("relu", "add", {"reference": "gone.py::f"}, "the reference cannot be used: FileNotFoundError"),
    ],
)
def test_what_is_not_clear_is_said(tmp_path: Path, name: str, entry: str | None, more: Any, said: str) -> None:
    unclear = told(tmp_path, name, entry, **more)["unclear"]
    assert said in unclear["message"]
    assert unclear["hint"]
