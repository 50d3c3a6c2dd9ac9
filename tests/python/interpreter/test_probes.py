"""Cases that owe nothing to the kernel's blocks: what only they show is rejected, and its honest twin passes. Each runs as a whole check, on the interpreter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, tensor, verdict

from t2t_harness.cases import (
    arguments_values,
    bindings,
    budget,
    cases,
    inputs,
    literals,
    probe_arguments,
    probe_values,
    probes,
    probing,
    unusual,
)
from t2t_harness.judging import autograd, comparing, otherwise, progress, rules
from t2t_harness.judging.trial import Trial
from t2t_harness.triton import effort

ROWS = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    total = 0.0
    for start in range(0, {end}, BLOCK_SIZE):
        x = tl.load(x_ptr + row * N + start + cols, mask=start + cols < N, other=0.0)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + row, total)


def wrapper(input, dim=-1):
    {first}
    x = input.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK_SIZE={block})
    return out
"""
"""Sums of rows."""

REFUSES = "assert dim in (-1, 1)"

ADD = """
BM, BN = 16, 32


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, M, N, alpha, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    cols = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (rows < {rows}) & (cols < N)
    x = tl.load(x_ptr + rows * N + cols, mask=mask)
    y = tl.load(y_ptr + rows * N + cols, mask=mask)
    tl.store(out_ptr + rows * N + cols, {value}, mask=mask)


def wrapper(input, other, *, alpha=1):
    x, y = (one.contiguous() for one in torch.broadcast_tensors(input, other))
    out = torch.empty_like(x)
    M, N = x.shape
    if out.numel():
        kernel[(triton.cdiv(M, BM), triton.cdiv(N, BN))](x, y, out, M, N, float(alpha), BM=BM, BN=BN)
    return out
"""
"""A sum of two matrices, in blocks that no dim has the name of."""


def sums(**more: Any) -> dict[str, Any]:
    return declared("torch.sum", [tensor("input", ["M", "N"])], {"M": 16, "N": 16}, kwargs={"dim": -1}, **more)


def adds(**more: Any) -> dict[str, Any]:
    inputs = [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])]
    return declared("torch.add", inputs, {"M": 16, "N": 16}, kwargs={"alpha": 0.5}, **more)


def rows(end: str = "N", first: str = REFUSES, block: str = "256") -> str:
    return ROWS.format(end=end, first=first, block=block)


def added(rows: str = "M", value: str = "x + alpha * y") -> str:
    return ADD.format(rows=rows, value=value)


def rejected(tmp_path: Path, op: dict[str, Any], kernel: str) -> tuple[str | None, str | None]:
    """Returns the class of the rejection and the case that shows it."""
    documents = check(tmp_path, op, kernel)
    failure = documents["evidence"]["failure"]
    return documents["verdict"]["class"], None if failure is None else str(failure["case"])


def test_honest_kernels_pass(tmp_path: Path) -> None:
    assert verdict(tmp_path / "rows", sums(), rows()) == (None, "")
    assert verdict(tmp_path / "add", adds(), added()) == (None, "")


@pytest.mark.parametrize(
    "end",
    ["min(N, 1024)", "tl.minimum(N, 1024)", "4 * BLOCK_SIZE"],
    ids=["a literal", "a block that is capped", "a number of blocks"],
)
def test_what_is_wrong_for_long_rows_is_rejected(tmp_path: Path, end: str) -> None:
    class_, case = rejected(tmp_path, sums(), rows(end))
    assert class_ == "mismatch" and case == "edge/shape[N=1031]/float32"


def test_what_is_wrong_beyond_a_global_is_rejected(tmp_path: Path) -> None:
    kernel = "MOST = 3 * 1024\n" + rows("min(N, 3072)").replace("3072", "MOST_N").replace(
        "N, BLOCK_SIZE: tl.constexpr", "N, MOST_N: tl.constexpr, BLOCK_SIZE: tl.constexpr"
    ).replace("BLOCK_SIZE=256)", "MOST_N=MOST, BLOCK_SIZE=256)")
    class_, case = rejected(tmp_path, sums(), kernel)
    assert class_ == "mismatch" and case is not None and case.startswith("edge/")


def test_another_path_by_length_is_rejected(tmp_path: Path) -> None:
    first = REFUSES + "\n    if input.shape[1] > 40 and input.shape[1] < 100:\n        input = input[:, :40]"
    class_, case = rejected(tmp_path, sums(), rows(first=first))
    assert (class_, case) == ("mismatch", "edge/literal[N=41]/float32")


def test_blocks_of_any_name_are_tried_in_both_dims(tmp_path: Path) -> None:
    class_, case = rejected(tmp_path, adds(), added(rows="tl.minimum(M, 48)"))
    assert class_ in ("mismatch", "nan") and case == "edge/shape[M=131]/float32"


def test_special_values_are_in_each_input(tmp_path: Path) -> None:
    wrong = added(value="tl.where(y == y, x + alpha * y, x)")
    assert rejected(tmp_path, adds(), wrong) == ("nan", "edge/pairs[all]/float32")


@pytest.mark.parametrize("lane", ["interpreter", "cuda"])
def test_nan_in_the_second_of_two_inputs_comes_before_other_values(lane: str) -> None:
    op = adds(dtypes=["float32"])
    found = [case.name for case in probes.cases_of({"op": op, "lane": lane, "root": "/", "variant": {}}, [])]
    assert found.index("edge/pairs[all]/float32") < found.index("edge/small[input]/float32")


@pytest.mark.parametrize(
    ("torch_name", "more", "are_tried"),
    [("add", {}, False), ("add", {"backward": True}, True), ("max", {"kwargs": {"dim": 1}}, True)],
)
def test_rows_of_what_is_not_finite_are_tried_unless_each_element_shows_it(
    torch_name: str, more: dict[str, Any], are_tried: bool
) -> None:
    given = [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])][: 2 if torch_name == "add" else 1]
    op = declared(torch_name, given, {"M": 16, "N": 64}, **more)
    names = {
        case.name.split("/")[1].split("[")[0]
        for case in probes.cases_of({"op": op, "lane": "interpreter", "root": "", "variant": {"module": "torch"}}, [])
    }
    of_rows = {"nan-rows", "infinite-rows", "only", "special-late", "below", "cancelling", "offset"}
    assert names & of_rows == (of_rows if are_tried else set())
    assert {"small", "zeros", "denormal"} <= names
    assert ("ties" in names) == (torch_name == "add" and are_tried)


def test_an_argument_that_is_fixed_in_the_kernel_is_rejected_unless_that_is_declared(tmp_path: Path) -> None:
    wrong = added(value="x + 0.5 * y")
    assert rejected(tmp_path / "wrong", adds(), wrong) == ("mismatch", "edge/kwarg[alpha=0.2]/float32")
    assert verdict(tmp_path / "off", adds(edges={"kwargs": "it is always a half"}), wrong)[0] is None


def test_a_wrapper_may_refuse_another_argument_and_the_log_says_so(tmp_path: Path) -> None:
    evidence = check(tmp_path / "refuses", sums(), rows())["evidence"]
    assert any("refuses other arguments" in note and "dim=0" in note for note in evidence["notes"])
    class_, case = rejected(tmp_path / "ignores", sums(), rows(first="pass"))
    assert class_ in ("shape", "mismatch") and case == "edge/kwarg[dim=0]/float32"


NORM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + tl.program_id(0) * N + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    {variance}
    tl.store(out_ptr + tl.program_id(0) * N + cols, (x - mean) / tl.sqrt(variance + 1e-5), mask=mask)


def wrapper(input, normalized_shape):
    assert len(normalized_shape) == 1
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""


def test_a_variance_by_the_mean_of_squares_is_rejected(tmp_path: Path) -> None:
    def op() -> dict[str, Any]:
        kwargs = {"normalized_shape": ["N"]}
        return declared(
            "torch.nn.functional.layer_norm", [tensor("input", ["M", "N"])], {"M": 16, "N": 16}, kwargs=kwargs
        )

    honest = "centred = tl.where(mask, x - mean, 0.0)\n    variance = tl.sum(centred * centred, axis=0) / N"
    wrong = "variance = tl.sum(x * x, axis=0) / N - mean * mean"
    assert verdict(tmp_path / "honest", op(), NORM.format(variance=honest))[0] is None
    class_, case = rejected(tmp_path / "wrong", op(), NORM.format(variance=wrong))
    assert class_ in ("mismatch", "nan") and case == "edge/offset[input]/float32"


HALF = """
@triton.jit
def kernel(x_ptr, out_ptr, N, stride, stride_n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((), dtype={type})
    for start in range(0, N, BLOCK):
        where = tl.program_id(0) * stride + (start + cols) * stride_n
        x = tl.load(x_ptr + where, mask=start + cols < N, other=0.0).to({type})
        total += tl.sum(x, axis=0).to({type})
    tl.store(out_ptr + tl.program_id(0), total.to(out_ptr.dtype.element_ty))


def wrapper(input, dim=-1):
    assert dim in (-1, 1)
    x = input{dense}
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), {stride}, BLOCK=64)
    return out
"""


def test_further_dtypes_have_strides_and_long_sums_too(tmp_path: Path) -> None:
    def kernel(type: str = "tl.float32", stride: str = "x.stride(1)") -> str:
        return HALF.format(type=type, dense="", stride=stride)

    op = sums(dtypes=["float32", "float16"])
    assert verdict(tmp_path / "honest", op, kernel())[0] is None
    half = kernel("(tl.float16 if x_ptr.dtype.element_ty == tl.float16 else tl.float32)")
    class_, case = rejected(tmp_path / "half", op, half)
    assert class_ == "mismatch" and case is not None and case.endswith("/float16")
    dense = kernel(stride="1 if x.dtype == torch.float16 else x.stride(1)")
    class_, case = rejected(tmp_path / "dense", op, dense)
    assert class_ in ("mismatch", "nan") and case is not None and case.endswith("/float16")


def test_integers_are_tried_at_their_limits(tmp_path: Path) -> None:
    kernel = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    lanes = tl.zeros((BLOCK,), dtype={type})
    for start in range(0, N, BLOCK):
        lanes += tl.load(x_ptr + tl.program_id(0) * N + start + cols, mask=start + cols < N, other=0).to({type})
    tl.store(out_ptr + tl.program_id(0), tl.sum(lanes.to(tl.int64), axis=0))


def wrapper(input, dim=-1):
    assert dim in (-1, 1)
    x = input.contiguous()
    out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=8)
    return out
"""
    given = tensor("input", ["M", "N"], init={"kind": "randint", "low": -9, "high": 9})

    def op() -> dict[str, Any]:
        return declared("torch.sum", [given], {"M": 16, "N": 16}, kwargs={"dim": -1}, dtypes=["int32"])

    assert verdict(tmp_path / "honest", op(), kernel.format(type="tl.int64"))[0] is None
    assert rejected(tmp_path / "wrong", op(), kernel.format(type="tl.int32")) == (
        "mismatch",
        "edge/limits[input]/int32",
    )


def test_what_the_budget_leaves_out_is_told(tmp_path: Path) -> None:
    evidence = check(tmp_path, sums(), rows(block="2"))["evidence"]
    assert any(note.startswith("left out by the interpreter's budget") for note in evidence["notes"])
    assert evidence["left_out"] and not set(evidence["left_out"]) & {row["name"] for row in evidence["cases"]}
    assert evidence["failure"] is None


def test_integers_of_a_file_and_of_what_it_imports_are_read_and_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "kernels" / "op"
    folder.mkdir(parents=True)
    (folder / "v1.py").write_bytes(
        "# -*- coding: latin-1 -*-\n# \xe9\nfrom .common import BLOCK\nraise SystemExit(99)\nA = 1 << 11\nB = 3 * 7\n".encode(
            "latin-1"
        )
    )
    (folder / "common.py").write_text("BLOCK = 640\nTEXT = '4096'\n")
    request = {"root": str(tmp_path), "variant": {"file": "kernels/op/v1.py"}}
    assert literals.of_files(literals.read(request)) == [2048, 640, 99, 21, 11]


def test_probes_respect_fixed_dims_and_expressions() -> None:
    op = declared("torch.add", [tensor("input", ["B", "2*N", "D"])], {"B": 2, "N": 8, "D": 16})
    op["sizes"] = {"small": {"B": 2, "N": 8, "D": 16}, "large": {"B": 4, "N": 64, "D": 16}}
    found = probes.cases_of({"op": op, "lane": "interpreter", "root": "/", "variant": {}}, [])
    assert found and all(case.binding["D"] == 16 for case in found)
    assert all(bindings.largest(op, case.binding) <= bindings.reach_limit("interpreter") for case in found)


def test_a_dim_that_is_equal_by_chance_is_tried_at_another_length() -> None:
    op = declared("torch.add", [tensor("input", ["M", "D"])], {"M": 2, "D": 16}, fixed=[])
    op["sizes"] = {"small": {"M": 2, "D": 16}, "large": {"M": 8, "D": 16}}
    request = {"op": op, "lane": "interpreter", "root": "/", "variant": {}}
    assert {case.binding["D"] for case in probes.cases_of(request, [])} > {16, 17}
    stated = {**request, "op": {**op, "fixed": ["D"]}}
    assert {case.binding["D"] for case in probes.cases_of(stated, [])} == {16}


def test_a_budget_is_a_share_of_what_the_others_did() -> None:
    own = budget.Budget(is_limited=True)
    one = cases.Case("small/float32/0", "declared", "float32", {})
    own.note(one, 1000, 2, effort.METER.done - 100_000)
    own.open()
    assert own.left + own.kept == pytest.approx(budget.SHARE * (100_000 + 2 * budget.CALL))
    long = cases.Case("edge/shape[N=1031]/float32", "edge", "float32", {}, is_probe=True, has_own_budget=True)
    assert own.allowance(long, 10_000) == budget.OWN, "a long dim is tried whatever is left"
    assert own.allowance(long, 10_000, is_whole=True) == budget.SHAPED, "and more if it is not made smaller"
    own.note(long, 10_000, 1, effort.METER.done - budget.OWN)
    assert own.left + own.kept == pytest.approx(budget.SHARE * (100_000 + 2 * budget.CALL)), "of its own budget"
    own.rate = 50.0
    probe = cases.Case("edge/shape[N=1]/float32", "edge", "float32", {}, is_probe=True)
    assert own.allowance(one, 1000) is None
    assert own.allowance(probe, 100) == pytest.approx(budget.DEAR * (own.left - budget.CALL))
    assert own.allowance(probe, 10_000) == 0.0, "by what the others did for an element, it would do more"
    own.note(probe, 100, 1, effort.METER.done - own.left)
    assert own.allowance(probe, 100) == 0.0


def test_values_and_drawn_shapes_depend_on_the_salt() -> None:
    op = sums()
    one, other = (cases.salted(cases.declared_cases(op), salt)[0] for salt in ("a", "b"))
    made = [inputs.make_inputs(op, case)["input"] for case in (one, one, other)]
    assert made[0].equal(made[1]) and not made[0].equal(made[2])
    request = {"op": op, "lane": "interpreter", "root": "/", "variant": {}}
    drawn = [
        [case.binding for case in probes.cases_of({**request, "salt": salt}, []) if budget.is_drawn(case)]
        for salt in ("a", "a", "b")
    ]
    assert drawn[0] == drawn[1] != drawn[2]


STRIDES = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, M, N, x_m, x_n, y_m, y_n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    mask = cols < N
    x = tl.load(x_ptr + row * x_m + cols * x_n, mask=mask)
    y = tl.load(y_ptr + row * {y_m} + cols * {y_n}, mask=mask)
    tl.store(out_ptr + row * N + cols, x * y, mask=mask)


def wrapper(input, other):
    x, y = {both}
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    M, N = x.shape
    if out.numel():
        kernel[(M,)](x, y, out, M, N, *x.stride(), *y.stride(), BLOCK=triton.next_power_of_2(N))
    return out
"""
"""A product of two matrices by their strides."""


def products(y_m: str = "y_m", y_n: str = "y_n", both: str = "torch.broadcast_tensors(input, other)") -> str:
    return STRIDES.format(y_m=y_m, y_n=y_n, both=both)


def multiplies(**more: Any) -> dict[str, Any]:
    inputs = [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])]
    return declared("torch.mul", inputs, {"M": 16, "N": 16}, **more)


def test_strides_of_one_input_that_are_taken_for_those_of_another_are_rejected(tmp_path: Path) -> None:
    assert verdict(tmp_path / "honest", multiplies(), products())[0] is None
    class_, case = rejected(tmp_path / "wrong", multiplies(), products(y_m="x_m", y_n="x_n"))
    assert class_ in ("mismatch", "nan", "nondeterministic") and case == "edge/transposed[other]/float32"


def test_the_first_operand_may_be_the_smaller_one(tmp_path: Path) -> None:
    assert verdict(tmp_path / "honest", multiplies(broadcast=True), products())[0] is None
    wrong = products(both="input, other.expand_as(input)")
    assert rejected(tmp_path / "wrong", multiplies(broadcast=True), wrong) == (
        "exception",
        "edge/broadcast[input]/float32",
    )


def test_a_maximum_of_a_part_of_a_row_is_rejected(tmp_path: Path) -> None:
    kernel = """
@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, {end}, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(x_ptr + tl.program_id(0) * N + cols, mask=cols < N, other=-float("inf")))
    bad = tl.max((best != best).to(tl.int32), axis=0) > 0
    tl.store(out_ptr + tl.program_id(0), tl.where(bad, float("nan"), tl.max(best, axis=0)))


def wrapper(input, dim=-1):
    assert dim in (-1, 1)
    x = input.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
    return out
""".replace("tl.maximum(best, ", "tl.maximum(best, propagate_nan=tl.PropagateNan.ALL, y=")

    def op() -> dict[str, Any]:
        return declared("torch.amax", [tensor("input", ["M", "N"])], {"M": 16, "N": 16}, kwargs={"dim": -1})

    assert verdict(tmp_path / "honest", op(), kernel.replace("{end}", "N"))[0] is None
    assert rejected(tmp_path / "wrong", op(), kernel.replace("{end}", "tl.minimum(N, 1024)")) == (
        "mismatch",
        "edge/shape[N=1031]/float32",
    )


def test_the_extremes_of_each_row_lie_at_its_end() -> None:
    import torch

    for width in (1, 2, 3, 17):
        given = torch.randn(50, width)
        made = unusual.ends(given)
        assert made.sort(dim=1).values.equal(given.sort(dim=1).values), "nothing is lost"
        assert made[:, -1].equal(given.max(dim=1).values)
        if width > 2:
            assert made[:, -2].equal(given.min(dim=1).values)


def test_some_rows_are_zero_throughout() -> None:
    import torch

    made = unusual.zeros(torch.randn(5, 19))
    assert [bool((row == 0).all()) for row in made] == [False, True, False, False, True]


def test_arguments_are_tried_where_torch_takes_them() -> None:
    tried = {
        (name, value): list(arguments_values.away(name, value, 2))
        for name, value in (("padding", 0), ("padding", 1), ("stride", 2), ("scale", None), ("out", None), ("dim", 1))
    }
    assert list(tried.values()) == [[1], [0], [3], [0.3], [], [0, -1, -2]]
    assert list(arguments_values.away("dropout_p", 0.0, 2)) == [], "what is drawn cannot be compared"


def test_an_upstream_gradient_lies_as_the_inputs_do() -> None:
    import torch

    out = torch.zeros(3, 5, requires_grad=True)
    dense = cases.Case("edge/a/float32", "edge", "float32", {})
    made = {
        layout: autograd.upstream_gradients([out], replace(dense, layout=layout))[0]
        for layout in (None, "transposed", "strided", "padded", "swapped")
    }
    assert [value.stride() for value in made.values()] == [(5, 1), (1, 3), (10, 2), (8, 1), (5, 1)]
    assert made[None].equal(made["transposed"]) and made[None].equal(made["strided"])
    assert autograd.upstream_gradients([out], replace(dense, layout="transposed", of="x"))[0].stride() == (5, 1)


def test_a_flag_of_blocks_is_tried_beyond_one(tmp_path: Path) -> None:
    kernels = tmp_path / "op.py"
    kernels.write_text("def wrapper(query, key, value, is_causal=False, scale=None): ...\n")
    inputs = [tensor(name, ["B", "S", "D"]) for name in ("query", "key", "value")]
    op = declared("torch.nn.functional.scaled_dot_product_attention", inputs, {"B": 2, "S": 20, "D": 16})
    op["sizes"] = {"small": {"B": 2, "S": 20, "D": 16}, "large": {"B": 4, "S": 64, "D": 16}}
    variant = {"file": "op.py", "entry": "wrapper", "module": None, "call": None}
    request = {"op": op, "lane": "interpreter", "root": str(tmp_path), "variant": variant}
    found = {case.name: case.binding["S"] for case in probe_arguments.kwargs(request)}
    assert found["edge/kwarg[is_causal=True]/float32"] == 67 and "edge/kwarg[scale=0.3]/float32" in found


@pytest.mark.parametrize("lane", ["interpreter", "cuda"])
def test_a_nan_that_a_mask_hides_is_asked_nowhere(tmp_path: Path, lane: str) -> None:
    (tmp_path / "op.py").write_text("def wrapper(query, key, value, is_causal=False): ...\n")
    inputs = [tensor(name, ["B", "S", "D"]) for name in ("query", "key", "value")]
    op = declared("torch.nn.functional.scaled_dot_product_attention", inputs, {"B": 2, "S": 20, "D": 16})
    variant = {"file": "op.py", "entry": "wrapper", "module": None, "call": None}

    def asked(**kwargs: bool) -> bool:
        request = {"op": {**op, "kwargs": kwargs}, "lane": lane, "root": str(tmp_path), "variant": variant}
        return any(case.name.startswith("edge/special[") for case in probes.cases_of(request, []))

    assert asked() and not asked(is_causal=True)


def test_a_shape_that_goes_beyond_a_literal_comes_early(tmp_path: Path) -> None:
    kernels = tmp_path / "op.py"
    inputs = [tensor("input", ["M", "K"]), tensor("other", ["K", "N"])]
    op = declared("torch.matmul", inputs, {"M": 16, "K": 16, "N": 16})

    def places(text: str) -> int:
        kernels.write_text(text)
        request = {
            "op": op,
            "lane": "interpreter",
            "root": str(tmp_path),
            "variant": {"file": "op.py", "entry": "wrapper"},
        }
        return [case.name for case in probes.cases_of(request, [])].index("edge/shape[N=4099]/float32")

    assert places("def wrapper(input, other): ...\nif 4096 > 1: ...\n") < places("def wrapper(input, other): ...\n")


@pytest.mark.parametrize(("is_backward", "count"), [(False, 1), (True, 3)])
def test_one_argument_of_an_elementwise_op_is_tried_in_a_long_row(
    tmp_path: Path, is_backward: bool, count: int
) -> None:
    (tmp_path / "op.py").write_text("def wrapper(input, other, alpha=1): ...\n")
    op = declared("torch.add", [tensor("input", ["M", "N"]), tensor("other", ["M", "N"])], {"M": 16, "N": 16})
    op |= {"backward": is_backward}
    variant = {"file": "op.py", "entry": "wrapper"}
    request: Any = {"op": op, "lane": "interpreter", "root": str(tmp_path), "variant": variant}
    known = [probing.probe(op, "above-block[N=129]", {"M": 2, "N": 129})]
    found = [case for case in probes.when_long(request, known, 1 << 17) if case.kwargs is not None]
    assert len(found) == count and all(case.binding["N"] == 129 for case in found)


def test_a_wrapper_may_leave_other_arguments_to_torch(tmp_path: Path) -> None:
    first = "if dim % 2 == 0:\n        return input.sum(dim)"
    documents = check(tmp_path, sums(), rows(first=first))
    evidence = documents["evidence"]
    assert documents["verdict"]["verdict"] == "passed", evidence["failure"]
    assert any("torch computes for other arguments" in note for note in evidence["notes"])


@pytest.mark.parametrize(
    ("function", "low", "high", "is_number"),
    [
        ("bitwise_not", 0, "N", False),
        ("bitwise_not", 0, 50, True),
        ("nn.functional.one_hot", 0, 50, False),
        ("nn.functional.one_hot", -9, 9, True),
        ("nn.functional.one_hot", 0, 1 << 30, True),
    ],
)
def test_integers_that_may_be_indices_have_no_limits(function: str, low: int, high: int | str, is_number: bool) -> None:
    given = tensor("input", ["M", "N"], init={"kind": "randint", "low": low, "high": high})
    op = declared(f"torch.{function}", [given], {"M": 16, "N": 16}, dtypes=["int32"])
    assert any(case.values == "limits" for case in probe_values.values(op, "interpreter")) == is_number


@pytest.mark.parametrize(("most", "passes"), [(64, True), (20, False)])
def test_lengths_beyond_all_sizes_may_be_refused_and_those_within_may_not(
    tmp_path: Path, most: int, passes: bool
) -> None:
    first = f'{REFUSES}\n    if input.shape[1] > {most}:\n        raise RuntimeError("the row is too long")'
    documents = check(tmp_path, sums(), rows(first=first, block="16"))
    evidence = documents["evidence"]
    assert (documents["verdict"]["verdict"] == "passed") == passes, evidence["failure"]
    assert any("refuses" in note for note in evidence["notes"])


def test_where_a_nan_spreads_torch_s_cpu_has_a_say() -> None:
    op = declared("torch.add", [tensor("input", ["N"]), tensor("other", ["N"])], {"N": 4})
    case = probing.probe(op, "special[other]", {"N": 4}, values="special", of="other")
    given = inputs.make_inputs(op, case)
    made = {"0": given["input"] + given["other"]}
    trial = Trial({"op": op, "lane": "interpreter", "root": "/nonexistent"}, progress.Progress())
    right = {"0": torch.zeros(4)}
    found = rules.right_elsewhere(trial, case, "0", comparing.Judged(given, right, made))
    assert found is not None and found.passed
    wrong = {"0": torch.zeros(4)}
    assert rules.right_elsewhere(trial, case, "0", comparing.Judged(given, right, wrong)) is None
    assert otherwise.is_asked(op, case, "nan", "cpu")
    assert not otherwise.is_asked(op, replace(case, values="declared"), "nan", "cpu")


def test_nothing_is_empty_that_labels_point_into() -> None:
    labels = tensor("target", ["M"], dtype="int64", init={"kind": "randint", "low": 0, "high": "C"})
    op = declared("torch.nn.functional.cross_entropy", [tensor("input", ["M", "C"]), labels], {"M": 8, "C": 5})
    assert bindings.emptied(op, ["C", "M"]) == "M"
