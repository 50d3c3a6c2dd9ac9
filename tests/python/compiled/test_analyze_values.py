"""References that the analyze phase cannot follow on tensors without values, in part or at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_analyze import DIMS, MN, M, N, request

from t2t_harness.phases import traced
from t2t_harness.phases.analyze import _exponent as growing
from t2t_harness.phases.analyze import analyze

CONSTRUCTORS = {
    "numbers": "self.rates = [one.item() for one in torch.linspace(0.5, 1.0, 4)]",
    "a mask": "table = torch.arange(dim)\n        self.rates = [1.0, 1.0, float(table[table < 5].max())]",
    "numpy": "self.rates = torch.linspace(0.5, 1.0, 4).numpy().tolist()",
    "a lazy layer": "self.rates = [1.0, 1.0, 2.0]\n        self.layer = torch.nn.LazyLinear(3)\n        self.layer(torch.zeros(1, dim))",
}


@pytest.mark.parametrize("constructed", CONSTRUCTORS.values(), ids=CONSTRUCTORS)
def test_a_constructor_may_ask_for_values(tmp_path: Path, constructed: str) -> None:
    text = f"""import torch

class Scaled(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        {constructed}
        self.weight = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return x * self.weight * self.rates[2]
"""
    found = analyze(referring(tmp_path, text, "Scaled", {"dim": "N"}))["documents"]
    # The product with the weight, and that with the number; the weight is read, too.
    assert found["analysis"]["sizes"]["small"] | {"intensity": None} == {
        "dims": DIMS,
        "outputs": [{"shape": [M, N], "dtype": "float32"}],
        "flops": 2 * M * N,
        "bytes": 4 * (2 * M * N + N),
        "intensity": None,
        "bound": "memory",
    }
    assert (found["analysis"]["outputs"], found["lengths"]) == ([{"shape": MN, "dtype": "float32"}], {})


def test_a_table_that_was_made_at_import_is_one_without_values(tmp_path: Path) -> None:
    text = "import torch\n\nTABLE = torch.tensor([0.5, 2.0])\n\ndef scaled(x):\n    return x * TABLE[1]\n"
    found = analyze(referring(tmp_path, text, "scaled"))["documents"]["analysis"]
    assert found["sizes"]["small"]["flops"] == M * N
    assert found["growth"]["work"] == {"M": 1.0, "N": 1.0}


NUMPY = """import numpy as np
import torch

def medians(x):
    if x.shape[1] % 2:
        raise ValueError("an even number of columns is wanted")
    return torch.from_numpy(np.median(x.cpu().numpy(), axis=1)).to(x.device)
"""


def test_a_reference_that_computes_without_torch_is_taken_and_nothing_else_is_known(tmp_path: Path) -> None:
    found = analyze(referring(tmp_path, NUMPY, "medians"))["documents"]
    analysis = found["analysis"]
    assert (analysis["outputs"], analysis["sizes"]["small"]["flops"], analysis["growth"]["work"]["M"]) == (None,) * 3
    assert [(one["op"], "without values" in one["why"]) for one in analysis["unknown"]] == [("the reference", True)]
    # Lengths are asked for with values.
    assert found["lengths"] == {"N": {"least": 2, "step": 2, "only": [], "divides": None, "within": None}}


def test_what_is_refused_with_values_too_is_rejected_by_those_words(tmp_path: Path) -> None:
    failure = analyze(referring(tmp_path, NUMPY.replace("% 2", "> 1"), "medians"))["documents"]["failure"]
    assert failure == {"class": "ValueError", "message": "an even number of columns is wanted", "size": "small"}


@pytest.mark.parametrize(
    ("returned", "said"),
    [("float(x.sum())", "it returns a `float`"), ("(float(x.sum()), x.shape[0])", "it returns no tensor")],
    ids=["a number", "numbers"],
)
def test_a_reference_whose_result_is_no_tensor_is_rejected(tmp_path: Path, returned: str, said: str) -> None:
    text = f"def summed(x):\n    return {returned}\n"
    failure = analyze(referring(tmp_path, text, "summed"))["documents"]["failure"]
    assert failure["class"] == "TypeError" and failure["message"].startswith(said)


@pytest.mark.parametrize(
    ("once", "twice", "exponent"), [(4, 8, 1.0), (4, 32, 3.0), (8, 4, -1.0), (0, 0, 0.0), (0, 4, None), (None, 4, None)]
)
def test_work_may_fall_where_a_dim_grows(once: int | None, twice: int | None, exponent: float | None) -> None:
    assert growing(once, twice) == exponent


def test_a_reference_that_loops_over_elements_is_not_followed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """def summed(x):
    out = x[0] * 0
    for row in x:
        out = out + row
    return out
"""
    asked = referring(tmp_path, text, "summed")
    asked["op"]["sizes"] = {"small": DIMS, "large": {"M": 500, "N": 4}}
    monkeypatch.setattr(traced, "MOST_DECLARED", 300)
    found = analyze(asked)["documents"]["analysis"]
    assert found["sizes"]["small"]["flops"] == M * N + N
    assert (found["sizes"]["large"]["flops"], found["sizes"]["large"]["bytes"]) == (None, None)
    assert found["growth"]["work"]["N"] == 1.0


def test_a_size_that_alone_is_refused_is_named(tmp_path: Path) -> None:
    text = "def halved(x):\n    assert x.shape[0] < 99, 'too many rows'\n    return x / 2\n"
    asked = referring(tmp_path, text, "halved")
    asked["op"]["sizes"] = {"small": DIMS, "large": {"M": 100, "N": 4}}
    assert analyze(asked)["documents"]["failure"]["size"] == "large"


def referring(folder: Path, text: str, name: str, init: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns the request of an op on `x` that is `name` in the reference `text`, which is written into `folder`."""
    (folder / "reference.py").write_text(text, encoding="utf-8")
    asked = request("torch.exp", {"x": MN}, {}, DIMS)
    reference = {"root": str(folder), "file": "reference.py", "name": name, "init": init or {}}
    asked["op"] |= {"torch": None, "reference": reference, "mutates": [], "overwrites": []}
    return asked
