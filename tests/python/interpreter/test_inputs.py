"""Inputs that are more than a tensor of one shape: a right kernel passes, and one that heeds only a part of them does not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, tensor, verdict
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from t2t_harness.cases import bindings, cases, declared_inputs, inputs, probes
from t2t_harness.op import declaration as reading
from t2t_harness.op import expression

ADD = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def run(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        add_kernel[(triton.cdiv(out.numel(), 64),)](x, y, out, out.numel(), BLOCK=64)
    return out


"""

COPY = """
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, N, WIDTH, START, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets // N * WIDTH + START + offsets % N, x, mask=mask)


def wrapper(tensors, dim):
    parts = [one.contiguous() for one in tensors{part}]
    width = sum(one.shape[1] for one in tensors)
    out = torch.zeros((tensors[0].shape[0], width), device="cuda")
    start = 0
    for part in parts:
        if part.numel():
            copy_kernel[(triton.cdiv(part.numel(), 64),)](part, out, part.numel(), part.shape[1], width, start, BLOCK=64)
        start += part.shape[1]
    return out
"""


@pytest.mark.parametrize(("part", "class_"), [("", None), ("[:1]", "mismatch")])
def test_a_list_of_tensors_is_one_argument(part: str, class_: str | None, tmp_path: Path) -> None:
    members = [tensor(f"tensors.{n}", shape, list="tensors") for n, shape in enumerate((["M", "N"], ["M", "2*N"]))]
    op = declared("torch.cat", members, {"M": 8, "N": 12}, kwargs={"dim": 1})
    found, said = verdict(tmp_path, op, COPY.format(part=part))
    assert found == class_, said


def test_a_changed_member_of_a_list_is_named(tmp_path: Path) -> None:
    members = [tensor(f"tensors.{n}", ["M", "N"], list="tensors") for n in range(2)]
    op = declared("torch.cat", members, {"M": 8, "N": 12}, kwargs={"dim": 1})
    kernel = (
        COPY.format(part="") + "\n\nright = wrapper\n\n\ndef wrapper(tensors, dim):\n    out = right(tensors, dim)\n"
    )
    found, said = verdict(tmp_path, op, kernel + "    tensors[1].zero_()\n    return out\n")
    assert found == "mutated-input" and "`tensors.1`" in said


FILL = """
@triton.jit
def fill_kernel(out_ptr, n, start, step, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, (start + step * offsets).to(tl.int64), mask=offsets < n)


def wrapper(start, end, step):
    out = torch.empty(max(triton.cdiv(end - start, step), 0), dtype=torch.int64, device="cuda")
    if out.numel():
        fill_kernel[(triton.cdiv(out.numel(), 64),)](out, out.numel(), {start}, step, BLOCK=64)
    return out
"""


@pytest.mark.parametrize(("start", "class_"), [("start", None), ("1", "mismatch"), ("0", "mismatch")])
def test_an_op_may_have_no_inputs(start: str, class_: str | None, tmp_path: Path) -> None:
    op = declared("torch.arange", [], {"N": 100}, kwargs={"start": 0, "end": "2*N", "step": 3})
    found, said = verdict(tmp_path, op, FILL.format(start=start))
    assert found == class_, said


def test_a_range_is_tried_where_a_float_does_not_tell_its_numbers_apart(tmp_path: Path) -> None:
    op = declared("torch.arange", [], {"N": 100}, kwargs={"start": 0, "end": "2*N", "step": 3})
    rounded = FILL.replace("start + step * offsets", "start + step * offsets.to(tl.float32)")
    assert verdict(tmp_path, op, rounded.format(start="start"))[0] == "mismatch"


SCALAR = "def wrapper(input, other):\n    return run(input, torch.full_like(input, {value}))\n"


@pytest.mark.parametrize(("value", "class_"), [("other", None), ("1", "mismatch")])
def test_a_scalar_stands_in_an_inputs_place(value: str, class_: str | None, tmp_path: Path) -> None:
    given = [tensor("input", ["M", "N"]), {"name": "other", "scalar": 0.5}]
    op = declared("torch.add", given, {"M": 8, "N": 12})
    found, said = verdict(tmp_path, op, ADD + SCALAR.format(value=value))
    assert found == class_, said


OPTIONAL = """
@triton.jit
def norm_kernel(x_ptr, w_ptr, out_ptr, N, HAS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < N
    x = tl.load(x_ptr + row * N + offsets, mask=mask, other=0.0)
    mean = tl.sum(x) / N
    centred = tl.where(mask, x - mean, 0.0)
    out = centred / tl.sqrt(tl.sum(centred * centred) / N + 1e-5)
    if HAS:
        out = out * tl.load(w_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + row * N + offsets, out, mask=mask)


def wrapper(input, normalized_shape, weight):
    x = input.contiguous()
    out = torch.empty_like(x)
    {first}
    if out.numel():
        has = weight is not None
        w = weight.contiguous() if has else x
        norm_kernel[(x.shape[0],)](x, w, out, x.shape[1], HAS=has, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

ABSENT = {"heeded": ("", None), "not heeded": ("weight.shape", "exception")}


@pytest.mark.parametrize("name", ABSENT)
def test_an_optional_input_is_absent_in_some_cases(name: str, tmp_path: Path) -> None:
    first, class_ = ABSENT[name]
    given = [tensor("input", ["M", "N"]), tensor("weight", ["N"], optional=True)]
    op = declared("torch.nn.functional.layer_norm", given, {"M": 8, "N": 24}, kwargs={"normalized_shape": ["N"]})
    op["tolerances"]["float32"] = [1e-4, 1e-4]
    documents = check(tmp_path, op, OPTIONAL.format(first=first))
    told = documents["verdict"]
    assert told["class"] == class_, documents["evidence"]["failure"]
    assert told["cases"]["small/float32/without-weight"] == ("passed" if class_ is None else "rejected")


def test_several_layouts_are_taken_in_turns() -> None:
    given = tensor("input", ["M", "N"], layout=["contiguous", "strided", "transposed"])
    op = declared("torch.neg", [given], {"M": 4, "N": 6})
    made = [inputs.make_inputs(op, case)["input"] for case in cases.declared_cases(op)]
    assert [one.stride() for one in made] == [(6, 1), (12, 2), (1, 4)]


def test_lengths_are_expressions_of_dims() -> None:
    given = [
        tensor("a", ["2*N", "(M+1)//2"]),
        tensor("b", ["N-3", 5], init={"kind": "randint", "low": 0, "high": "M*N"}),
    ]
    op = declared("torch.neg", given, {"M": 8, "N": 16})
    made = inputs.make_inputs(op, cases.declared_cases(op)[0])
    assert (made["a"].shape, made["b"].shape) == ((32, 4), (13, 5))
    assert 100 < made["b"].max() < 128
    assert bindings.dims(op) == ["N", "M"]
    # Where a length would be below zero there is no case.
    edges = {case.name: case.binding for case in cases.fixed_edges(op)}
    assert not {"edge/empty/float32", "edge/one/float32"} & edges.keys()
    assert all(binding["N"] >= 3 for binding in edges.values())
    assert reading.bind_kwargs({"size": ["2*N", "M"], "mode": "M-style"}, {"M": 2, "N": 3}) == {
        "size": [6, 2],
        "mode": "M-style",
    }


@pytest.mark.parametrize("text", ["", "2N", "N/2", "N**2", "-N", "(N", "N)", "__import__('os')", "N.shape"])
def test_what_is_no_expression_of_dims_is_evaluated_never(text: str) -> None:
    assert not expression.stands_for(text, {"N": 4})


INITS: dict[str, tuple[dict[str, Any], str]] = {
    "permutation": ({"kind": "permutation"}, "int64"),
    "distinct": ({"kind": "distinct", "low": 5, "high": 100}, "int64"),
    "unique between": ({"kind": "unique_between", "low": 5, "high": 1100}, "int32"),
    "sorted": ({"kind": "sorted", "of": {"kind": "normal", "mean": 0.0, "std": 1.0}}, "float32"),
    "unique": ({"kind": "unique"}, "float32"),
    "unique of 16 bits": ({"kind": "unique"}, "float16"),
    "mask": ({"kind": "mask", "p": 0.25}, "bool"),
    "triangular": ({"kind": "triangular", "side": "lower"}, "float32"),
    "block_sparse": ({"kind": "block_sparse", "block": 8, "density": 0.5}, "float32"),
    "low_rank": ({"kind": "low_rank", "rank": 2}, "float64"),
    "ill_conditioned": ({"kind": "ill_conditioned", "condition": 1e6}, "float64"),
}


def holds(name: str, value: torch.Tensor) -> bool:
    """Tells whether a matrix of 32 × 32 is what the init promises."""
    wide = value.double()
    if name == "permutation":
        return bool((wide.sort(dim=-1).values == torch.arange(32)).all()) and not wide[0].equal(wide[1])
    if name == "distinct":
        is_within = bool(((wide >= 5) & (wide < 100)).all()) and float(wide.max()) > 50
        return is_within and all(row.unique().numel() == 32 for row in wide) and not wide[0].equal(wide[1])
    if name == "unique between":
        return bool(((wide >= 5) & (wide < 1100)).all()) and wide.unique().numel() == wide.numel()
    if name == "sorted":
        return bool((wide.diff(dim=-1) >= 0).all()) and wide.unique().numel() == 32 * 32
    if name.startswith("unique"):
        return wide.unique().numel() == 32 * 32 and not wide.equal(wide.sort(dim=-1).values)
    if name == "mask":
        return 0.15 < float(wide.mean()) < 0.35
    if name == "triangular":
        return bool((wide.triu(1) == 0).all()) and bool((wide.tril() != 0).sum() == 32 * 33 / 2)
    if name == "block_sparse":
        blocks = wide.reshape(4, 8, 4, 8).transpose(1, 2).reshape(16, 64)
        return set((blocks != 0).sum(dim=-1).tolist()) == {0, 64}
    values = torch.linalg.svdvals(wide)
    if name == "low_rank":
        return bool(values[1] > 1) and bool(values[2] < 1e-10)
    return abs(float(values[0] / values[-1]) / 1e6 - 1) < 1e-3


@pytest.mark.parametrize("name", INITS)
def test_values_are_what_the_init_promises(name: str) -> None:
    init, dtype = INITS[name]
    op = declared("torch.neg", [tensor("input", ["N", "N"], init=init, dtype=dtype)], {"N": 32})
    case = cases.declared_cases(op)[0]
    made = inputs.make_inputs(op, case)["input"]
    assert made.dtype == declared_inputs.dtype_of(dtype) and holds(name, made)
    assert made.equal(inputs.make_inputs(op, cases.from_facts(json.loads(json.dumps(case.facts()))))["input"])


def test_integers_in_order_stay_so_in_every_case() -> None:
    init = {"kind": "sorted", "of": {"kind": "randint", "low": 0, "high": 64}}
    op = declared("torch.neg", [tensor("input", ["M", "N"], init=init, dtype="int64")], {"M": 6, "N": 24})
    op["kwargs"] = {"block": 16}
    request = {"op": op, "lane": "interpreter", "root": "", "variant": {"module": "torch"}}
    listed = [*cases.declared_cases(op), *probes.cases_of(request, [])]
    assert "edge/planted[input]/float32" in {case.name for case in listed}
    for case in listed:
        made = inputs.make_inputs(op, case)["input"]
        assert bool((made.diff(dim=-1) >= 0).all()), case.name


def test_another_dim_is_empty_where_the_first_one_must_be_longer() -> None:
    op = declared("", [tensor("x", ["N", "D"]), tensor("y", ["N - 3", "D"])], {"N": 12, "D": 8})
    empty = next(case for case in cases.fixed_edges(op) if case.name == "edge/empty/float32")
    assert empty.binding["D"] == 0 and empty.binding["N"] > 3


def test_values_may_come_from_a_file(tmp_path: Path) -> None:
    stored = torch.arange(12.0).reshape(3, 4)
    save_file({"weight": stored}, str(tmp_path / "x.safetensors"))
    init = {"kind": "file", "path": str(tmp_path / "x.safetensors"), "name": "weight"}
    for shape in ((3, 4), (2, 3), (5, 6)):
        op = declared("torch.neg", [tensor("input", ["M", "N"], init=init)], dict(zip("MN", shape, strict=True)))
        made = inputs.make_inputs(op, cases.declared_cases(op)[0])["input"]
        assert made.equal(stored.repeat(2, 2)[: shape[0], : shape[1]])
    with pytest.raises(ValueError, match="no tensor `bias`"):
        op["inputs"][0]["init"] = {**init, "name": "bias"}
        inputs.make_inputs(op, cases.declared_cases(op)[0])


def test_inputs_without_values_lie_as_those_with_values_do() -> None:
    op = declared("torch.add", [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])], {"M": 16, "N": 16})
    edges = cases.fixed_edges(op, bindings.limit_of("cuda"))
    probed = probes.cases_of({"op": op, "lane": "cuda", "root": "", "variant": {"module": "torch"}}, edges)
    listed = [*cases.declared_cases(op), *edges, *probed]
    strides = [
        [[value.stride() for value in make(op, case).values()] for case in listed]
        for make in (declared_inputs.unfilled, inputs.make_inputs)
    ]
    assert strides[0] == strides[1]
    assert any(0 in one for made in strides[0] for one in made)


@pytest.mark.parametrize("fixed", [None, ["W"], ["N"]])
def test_a_dim_that_is_fixed_has_its_length_in_all_edges_of_a_single_size(fixed: list[str] | None) -> None:
    size = {"M": 12, "N": 40, "W": 4}
    op = declared("", [tensor("x", ["M", "N"]), tensor("weight", ["M", "W"])], size, fixed=fixed) | {
        "sizes": {"small": size}
    }
    lengths = {dim: {case.binding[dim] for case in cases.fixed_edges(op)} for dim in size}
    assert {dim for dim, found in lengths.items() if found == {size[dim]}} == {*(fixed or ())}
