"""What the analysis makes of a declaration: what is random is refused until it says so, and lengths keep their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from t2t_harness.phases.analyze import analyze

CATALOGUE = Path(__file__).resolve().parents[3] / "assets" / "ops_catalogue.json"
F = "torch.nn.functional."


def tensor(name: str, shape: list[int | str], **more: Any) -> dict[str, Any]:
    init = {"kind": "normal", "mean": 0.0, "std": 1.0}
    plain = {"dtype": None, "init": init, "requires_grad": False, "layout": "contiguous", "optional": False}
    return {"name": name, "shape": shape, **plain, "list": None, **more}


def reply(torch_name: str, inputs: list[dict[str, Any]], kwargs: dict[str, Any], **more: Any) -> dict[str, Any]:
    op = {
        "name": "op",
        "torch": torch_name,
        "inputs": inputs,
        "outputs": None,
        "random": None,
        "kwargs": kwargs,
        "dtypes": ["float32"],
        "sizes": {"small": {"M": 6, "N": 20}},
        "precision": "ieee",
        **more,
    }
    return analyze({"op": op, "catalogue": str(CATALOGUE)})


X = tensor("input", ["M", "N"])
SELF = tensor("self", ["M", "N"])
HEADS = [tensor(name, [2, 2, "M", 16]) for name in ("query", "key", "value")]

RANDOM = {
    "dropout": (F + "dropout", [X], {"p": 0.5}, "aten.bernoulli_", "{kind: dropout, p: p}"),
    "dropout2d": (F + "dropout2d", [tensor("input", [2, 3, "M", "N"])], {}, "aten.bernoulli_", "{kind: dropout"),
    "bernoulli": ("torch.bernoulli", [X], {}, "aten.bernoulli", "{kind: bernoulli}"),
    "rand": ("torch.rand", [], {"size": ["M", "N"]}, "aten.rand", "{kind: uniform}"),
    "randn_like": ("torch.randn_like", [X], {}, "aten.randn_like", "{kind: normal}"),
    "multinomial": ("torch.multinomial", [X], {"num_samples": 3}, "aten.multinomial", "{kind: multinomial}"),
    "attention": (F + "scaled_dot_product_attention", HEADS, {"dropout_p": 0.1}, "aten.bernoulli_", "random: {kind"),
    "rrelu in training": (F + "rrelu", [X], {"training": True}, "aten.rrelu_with_noise", "random: {kind"),
}


@pytest.mark.parametrize("name", RANDOM)
def test_an_op_that_draws_random_numbers_says_what_must_hold(name: str) -> None:
    torch_name, inputs, kwargs, op, hint = RANDOM[name]
    found = reply(torch_name, inputs, kwargs)
    failure = found["documents"]["failure"]
    assert (found["outcome"], failure["class"], failure["size"]) == ("rejected", "Undeclared", "small")
    assert op in failure["message"] and hint in failure["hint"]
    assert reply(torch_name, inputs, kwargs, random={"kind": "judged", "by": "holds"})["outcome"] == "passed"


CALM = {
    "in evaluation": (F + "dropout", [X], {"p": 0.5, "training": False}),
    "of nothing": (F + "dropout", [X], {"p": 0.0}),
    "attention": (F + "scaled_dot_product_attention", HEADS, {}),
    "rrelu in evaluation": (F + "rrelu", [X], {"training": False}),
    "native": ("torch.native_dropout", [X], {"p": 0.5, "train": False}),
}


@pytest.mark.parametrize("name", CALM)
def test_an_op_that_draws_none_is_not_random(name: str) -> None:
    torch_name, inputs, kwargs = CALM[name]
    assert reply(torch_name, inputs, kwargs)["outcome"] == "passed"
    refused = reply(torch_name, inputs, kwargs, random={"kind": "dropout", "p": 0.5})["documents"]["failure"]
    assert refused["message"] == "`random` is declared, and torch draws no random numbers here"


def test_outputs_are_as_many_as_torch_returns() -> None:
    output = {"compare": "close", "of": None, "dim": None, "tolerances": {}}
    failure = reply("torch.topk", [X], {"k": 2}, outputs=[{"name": "values", **output}])["documents"]["failure"]
    assert failure["message"] == "torch returns 2 outputs, and `outputs` names 1: `values`"
    assert "NAME: ignore" in failure["hint"]
    # What depends on values is not known here, and no fault.
    mask = tensor("input", ["M", "N"], dtype="bool", init={"kind": "mask", "p": 0.5})
    found = reply("torch.nonzero", [mask], {}, outputs=[{"name": "places", **output}])["documents"]["analysis"]
    assert found["outputs"] is None and found["unknown"][0]["op"] == "aten.nonzero.default"


LENGTHS = {
    "a dim": ("torch.neg", [X], {}, ["M", "N"]),
    "an expression": ("torch.neg", [tensor("input", ["(M+1)*N", "N//4"])], {}, ["(M+1)*N", "N//4"]),
    "half of an input": (F + "glu", [tensor("input", ["M", "2*N"])], {"dim": -1}, ["M", "N"]),
    "both of a list": (
        "torch.cat",
        [tensor(f"tensors.{n}", ["M", "N"], list="tensors") for n in range(3)],
        {"dim": 1},
        ["M", "3*N"],
    ),
    "of no input": ("torch.full", [], {"size": ["2*N", 3], "fill_value": 1.0}, ["2*N", 3]),
    "mixed": (F + "pad", [X], {"pad": [1, 2]}, ["M", None]),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_of_outputs_have_names(name: str) -> None:
    torch_name, inputs, kwargs, shape = LENGTHS[name]
    assert reply(torch_name, inputs, kwargs)["documents"]["analysis"]["outputs"][0]["shape"] == shape
