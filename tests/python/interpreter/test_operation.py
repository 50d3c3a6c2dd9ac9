"""Ops that are references in Python: what is right, what is refused, and a check of a function and of a class from end to end."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from test_check import child, declaration, given

from t2t_harness.cases import cases, inputs
from t2t_harness.judging import oracle
from t2t_harness.op import operation
from t2t_harness.phases import analyze, baseline

REFERENCE = '''"""What is right."""
import torch


def double_gelu(input):
    """Twice the GELU."""
    return 2 * torch.nn.functional.gelu(input)


def running_sum(input):
    """A sum of a row, one column after another."""
    total = torch.zeros_like(input[:, 0])
    for column in range(input.shape[1]):
        total = total + input[:, column]
    return total


class Model(torch.nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features))
        self.register_buffer("seen", torch.zeros(()))
        self.scale = scale

    def forward(self, input):
        self.seen += 1
        return input * self.weight * self.scale * self.seen
'''

KERNEL = """import torch, triton
import triton.language as tl


@triton.jit
def double_gelu_kernel(x_ptr, o_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(o_ptr + offsets, FACTOR * x * (1 + tl.erf(x * 0.7071067811865476)), mask=offsets < n)


def launch(input, factor):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        double_gelu_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), FACTOR=factor, BLOCK=32)
    return out


def right(input):
    return launch(input, 1.0)


def wrong(input):
    return launch(input, 1.01)


def borrowed(input):
    from kernels.double.reference import double_gelu

    launch(input, 1.0)
    return double_gelu(input)


@triton.jit
def scale_kernel(x_ptr, w_ptr, o_ptr, n, columns, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    w = tl.load(w_ptr + offsets % columns, mask=mask)
    tl.store(o_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * w * scale, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features))
        self.scale, self.calls = scale, 0

    def forward(self, input):
        self.calls += 1
        x = input.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            grid = (triton.cdiv(x.numel(), 32),)
            scale_kernel[grid](x, self.weight, out, x.numel(), x.shape[-1], self.scale * self.calls, BLOCK=32)
        return out


class OtherWeights(ModelNew):
    def __init__(self, features, scale):
        super().__init__(features, scale)
        self.weight = torch.nn.Parameter(torch.randn(features))


class Computes(ModelNew):
    def forward(self, input):
        super().forward(input)
        return input * self.weight * self.scale
"""


def op(root: Path, name: str, init: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Returns the declaration of an op whose reference is `name` of REFERENCE, which is written below `root`."""
    file = root / "kernels/double/reference.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "kernels/double/reference.py", "name": name, "init": init or {}, "root": str(root)}
    return declaration(torch=None, reference=reference, kwargs={}, seeds=1, **changes)


def check(tmp_path: Path, name: str, entry: str, init: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Returns the verdict of the entry of KERNEL held against `name` of REFERENCE."""
    root, scratch = tmp_path / "workspace", tmp_path / "scratch"
    declared = op(root, name, init, **changes)
    scratch.mkdir()
    (root / "kernels/double/v1.py").write_text(KERNEL, encoding="utf-8")
    variant = {"name": "v1", "file": "kernels/double/v1.py", "entry": entry, "lanes": ["interpreter"]}
    request = {"op": declared, "root": str(root), "scratch": str(scratch), "lane": "interpreter", "variant": variant}
    _, end = child("candidate", "run", {**request, "inputs": None}, tmp_path)
    told = {**request, "prepared": None, "candidate": str(scratch), "end": end}
    judged, judge_end = child("judge", "judge", told, tmp_path)
    assert judged is not None, judge_end["stderr"]
    return judged


@pytest.fixture(autouse=True)
def _no_modules_stay() -> Any:
    yield
    for name in [name for name in sys.modules if name.startswith("kernels.double")]:
        del sys.modules[name]
    sys.modules.pop("kernels", None)
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "WorkspaceFinder"]


@pytest.mark.parametrize(("entry", "class_"), [("right", None), ("wrong", "mismatch"), ("borrowed", "torch-fallback")])
def test_a_function_is_what_kernels_are_held_against(tmp_path: Path, entry: str, class_: str | None) -> None:
    judged = check(tmp_path, "double_gelu", entry)
    assert judged["class"] == class_, judged["documents"]["evidence"]["failure"]


MODEL = {"features": "N", "scale": 0.5}


@pytest.mark.parametrize(
    ("entry", "class_"), [("ModelNew", None), ("OtherWeights", "mismatch"), ("Computes", "torch-fallback")]
)
def test_a_class_has_the_weights_of_the_reference(tmp_path: Path, entry: str, class_: str | None) -> None:
    judged = check(tmp_path, "Model", entry, MODEL)
    assert judged["class"] == class_, judged["documents"]["evidence"]["failure"]


def test_the_oracle_has_the_rounded_weights_in_float64_and_no_call_sees_an_earlier_one(tmp_path: Path) -> None:
    declared = op(tmp_path, "Model", MODEL, dtypes=["float16"])
    case = cases.declared_cases(declared)[0]
    made = inputs.make_inputs(declared, case)
    weight = operation.ready(declared, case.binding, "float16").weight
    for _ in range(2):
        right = oracle.reference(declared, case, made)
        assert right.oracle is not None
        assert (right.plain["0"].dtype, right.oracle["0"].dtype) == (torch.float16, torch.float64)
        assert right.oracle["0"].equal(made["input"].double() * weight.double() * 0.5)


def test_gradients_of_a_reference_are_those_of_its_inputs_and_weights(tmp_path: Path) -> None:
    declared = op(tmp_path, "Model", MODEL, backward=True)
    case = cases.declared_cases(declared)[0]
    right = oracle.reference(declared, case, inputs.make_inputs(declared, case))
    assert sorted(right.plain) == ["0", "grad.input", "module.after.seen", "module.grad.weight"]


def analysis_of(declared: dict[str, Any]) -> dict[str, Any]:
    return analyze.analyze({"op": declared, "catalogue": str(ROOT / "assets" / "ops_catalogue.json")})


def test_a_reference_is_analyzed_as_torch_is(tmp_path: Path) -> None:
    found = analysis_of(op(tmp_path, "double_gelu"))["documents"]["analysis"]
    assert found["operation"] == "kernels/double/reference.py::double_gelu"
    assert (found["signature"], found["documentation"]["summary"]) == ("(input)", "Twice the GELU.")
    assert [one["op"] for one in found["aten"]] == ["aten.gelu.default", "aten.mul.Tensor"]
    assert found["sizes"]["small"]["flops"] == 6 * 8 * 16
    assert found["sizes"]["small"]["bytes"] == 2 * 4 * 8 * 16


def test_a_reference_that_loops_over_a_dim_is_not_followed_far_out(tmp_path: Path) -> None:
    began = time.monotonic()
    found = analysis_of(op(tmp_path, "running_sum"))["documents"]["analysis"]
    # Far out, at 1024 times the first size, it makes half a million calls.
    assert time.monotonic() - began < 60
    assert found["sizes"]["small"]["flops"] == 8 * 16
    assert found["growth"]["work"] == {"M": 1.0, "N": 1.0}


def test_weights_count_as_bytes_that_are_read(tmp_path: Path) -> None:
    found = analysis_of(op(tmp_path, "Model", MODEL))["documents"]["analysis"]
    assert found["signature"] == "(self, input)"
    # The counter is read and written.
    assert found["sizes"]["small"]["bytes"] == 4 * (2 * 8 * 16 + 16 + 2)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gone", None, "kernels/double/reference.py has no callable `gone`"),
        ("double_gelu", "def double_gelu(:\n", "invalid syntax"),
        ("double_gelu", "from kernels.double.v1 import right as double_gelu\n", "may not import `kernels.double.v1`"),
        ("double_gelu", "def double_gelu(input):\n    raise ValueError('no')\n", "no"),
    ],
)
def test_a_reference_that_cannot_be_called_is_said(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    declared = op(tmp_path, name)
    (tmp_path / "kernels/double/v1.py").write_text("def right(input):\n    return input\n", encoding="utf-8")
    if text is not None:
        (tmp_path / "kernels/double/reference.py").write_text(text, encoding="utf-8")
    reply = analysis_of(declared)
    assert reply["outcome"] == "rejected"
    assert said in reply["documents"]["failure"]["message"]


def test_a_reference_is_measured_and_compiled_as_torch_is(tmp_path: Path) -> None:
    protocol = {"runs": 1, "warmup_ms": 0, "rep_ms": 1}
    for name, init in (("double_gelu", {}), ("Model", MODEL)):
        declared = op(tmp_path, name, init, sizes={"small": {"M": 8, "N": 16}})
        request = {"op": declared, "lane": "interpreter", "model": "interpreter", "protocol": protocol}
        reply = baseline.baseline({**request, "baselines": ["torch", "torch.compile"]})
        assert reply["documents"]["baseline"]["reasons"] == {}


def test_inputs_go_by_position_where_the_names_differ(tmp_path: Path) -> None:
    declared = op(tmp_path, "double_gelu", inputs=[given("x")])
    case = cases.declared_cases(declared)[0]
    made = inputs.make_inputs(declared, case)
    expected = 2 * torch.nn.functional.gelu(made["x"])
    assert oracle.reference(declared, case, made).plain["0"].equal(expected)
