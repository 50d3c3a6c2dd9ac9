"""What cases and results are called, and which arguments torch's functions are known to take."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from t2t_harness.cases import naming  # noqa: E402
from t2t_harness.cases.cases import Case  # noqa: E402
from t2t_harness.judging import oracle  # noqa: E402
from t2t_harness.op import arguments, result_names


def test_a_line_tells_of_the_kind_and_of_shapes_strides_and_dtypes() -> None:
    """Dense strides are left out: they say nothing."""
    case = Case("edge/strided/float32", "edge", "float32", {"M": 2}, layout="strided", values="large")
    inputs = {
        "input": torch.empty_strided((2, 3), (12, 2)),
        "other": torch.zeros(3, 1, dtype=torch.int64),
        "parts": [torch.zeros(2), None],
        "scale": 0.5,
    }
    told = naming.given(case, inputs, {"dim": -1})
    assert told == (
        "edge case with strided inputs and large values: input float32[2, 3] strides (12, 2), other int64[3, 1], "
        "parts [float32[2], None], scale 0.5, dim=-1"
    )
    assert len(naming.given(case, {}, {"long": "x" * 10_000})) == naming.LENGTH


def test_results_have_the_names_of_ops_yaml_or_of_torch() -> None:
    """The only output has none."""
    declaration = {
        "torch": "torch.topk",
        "inputs": [{"name": "input", "shape": [4], "dtype": None, "init": {"kind": "ones"}}],
        "kwargs": {"k": 2},
        "mutates": [],
        "overwrites": [],
        "backward": False,
    }
    case = Case("one", "declared", "float32", {})
    right = oracle.reference(declaration, case, {"input": torch.arange(4.0)})
    assert right.names == ("values", "indices")
    names = {str(position): name for position, name in enumerate(right.names)}
    assert result_names.result("1", True, names) == "output `indices`"
    assert (
        result_names.result("1", True, result_names.declared_outputs({"outputs": [{"name": "a"}, {"name": "b"}]}))
        == "output `b`"
    )
    assert [result_names.result(name, False, {}) for name in ("0", "grad.x", "after.x")] == [
        "",
        "gradient of `x`",
        "`x` after the call",
    ]
    assert result_names.result("1", True, {}) == "output 1"


def test_signatures_have_what_torch_takes_and_nothing_of_what_takes_all() -> None:
    """Each of these calls works, so none of its names may be called unknown."""
    names = ["softmax", "sum", "topk", "clamp", "linalg.norm", "nn.functional.gelu", "nn.functional.layer_norm"]
    names = [f"torch.{name}" for name in [*names, "nn.functional.max_pool2d", "einsum", "ops.aten.add"]]
    found = arguments.signatures(names)
    functions, common = found["functions"], set(found["common"])

    def takes(name: str, *arguments: str) -> bool:
        return set(arguments) <= set(functions[name]["parameters"]) | common

    assert takes("torch.softmax", "input", "dim", "dtype") and not takes("torch.softmax", "temperature")
    assert takes("torch.sum", "dim", "keepdim", "axis", "keepdims", "dtype", "out")
    assert takes("torch.topk", "k", "dim", "largest", "sorted") and not takes("torch.topk", "smallest")
    assert takes("torch.linalg.norm", "A", "ord", "dim", "keepdim")
    assert takes("torch.nn.functional.gelu", "approximate") and not takes("torch.nn.functional.gelu", "tanh")
    assert takes("torch.nn.functional.layer_norm", "normalized_shape", "weight", "bias", "eps")
    assert takes("torch.ops.aten.add", "other", "alpha") and not takes("torch.ops.aten.add", "beta")
    assert "torch.nn.functional.max_pool2d" not in functions, "what dispatches by a flag takes what it is given"
    assert functions["torch.topk"]["text"].startswith("(input, k, dim=None, largest=True, sorted=True")
