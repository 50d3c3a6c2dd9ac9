"""Arguments that kernels treat as if they had one value for ever: how many windows there are, the order of a norm, a chance, whole numbers of a reference. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import WRONG, check, declared, require_passed, require_rejected, tensor

from t2t_harness.cases import arguments_away, arguments_known, arguments_special, windows
from t2t_harness.sources import signatures

POOL = """
@triton.jit
def kernel(x_ptr, out_ptr, L, OUT, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    begin, end = at * L // OUT, ((at + 1) * L + OUT - 1) // OUT
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(0, L // OUT + 2):
        place = begin + step
        total += tl.load(x_ptr + row * L + place, mask=(place < end) & (at < OUT), other=0.0)
    tl.store(out_ptr + row * OUT + at, total / (end - begin), mask=at < OUT)


def wrapper(input, output_size):
    x = input.contiguous()
    L = x.shape[-1]
    if L == 0:
        raise ValueError("there is nothing to pool")
    out = torch.empty(*x.shape[:-1], output_size, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.numel() // L,)](x, out, L, output_size, BLOCK=triton.next_power_of_2(output_size))
    return out
"""

PLANES = """
@triton.jit
def kernel(x_ptr, out_ptr, H, W, OH, OW):
    plane, row, col = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    top, bottom = row * H // OH, ((row + 1) * H + OH - 1) // OH
    left, right = col * W // OW, ((col + 1) * W + OW - 1) // OW
    total = 0.0
    for y in range(top, bottom):
        for x in range(left, right):
            total += tl.load(x_ptr + (plane * H + y) * W + x)
    tl.store(out_ptr + (plane * OH + row) * OW + col, total / ((bottom - top) * (right - left)))


def wrapper(input, output_size):
    OH, OW = (output_size, output_size) if isinstance(output_size, int) else output_size
    x = input.contiguous()
    H, W = x.shape[-2:]
    if H * W == 0:
        raise ValueError("there is nothing to pool")
    out = torch.empty(*x.shape[:-2], OH, OW, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.numel() // (H * W), OH, OW)](x, out, H, W, OH, OW)
    return out
"""

NEAREST = """
@triton.jit
def kernel(x_ptr, out_ptr, L, T, step, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    place = tl.minimum((at * step).to(tl.int32), L - 1)
    tl.store(out_ptr + row * T + at, tl.load(x_ptr + row * L + place, mask=at < T), mask=at < T)


def wrapper(input, scale_factor=None, size=None, mode="nearest"):
    assert mode == "nearest"
    x = input.contiguous()
    L = x.shape[-1]
    T = int(L * scale_factor) if size is None else size
    out = torch.empty(*x.shape[:-1], T, dtype=x.dtype, device=x.device)
    step = L / T if scale_factor is None and T else 1.0 / (scale_factor or 1)
    if out.numel():
        kernel[(out.numel() // T,)](x, out, L, T, step, BLOCK=triton.next_power_of_2(T))
    return out
"""

NORM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, outer, inner, order, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    size = tl.abs(tl.load(x_ptr + row * outer + at * inner, mask=at < N, other=0.0))
    has_nan = tl.sum((size != size).to(tl.int32), axis=0) > 0
    if KIND == "max":
        found = tl.max(size, axis=0)
    elif KIND == "min":
        found = tl.min(tl.where(at < N, size, float("inf")), axis=0)
    elif KIND == "count":
        found = tl.sum((size != 0).to(tl.float32), axis=0)
    elif KIND == "sum":
        found = tl.sum(size, axis=0)
    elif KIND == "root":
        found = tl.sqrt(tl.sum(size * size, axis=0))
    else:
        power = tl.where(at < N, tl.exp(order * tl.log(size)), 0.0)
        found = tl.exp(tl.log(tl.sum(power, axis=0)) / order)
    if KIND == "max" or KIND == "min":
        found = tl.where(has_nan, float("nan"), found)
    tl.store(out_ptr + row, found)


KINDS = {float("inf"): "max", -float("inf"): "min", 0.0: "count", 1.0: "sum", 2.0: "root"}


def wrapper(x, ord=2, dim=None, keepdim=False):
    if not isinstance(dim, int):
        raise NotImplementedError("one dim")
    moved = x.movedim(dim, -1).contiguous()
    N = moved.shape[-1]
    if N == 0 and (ord < 0 or ord == float("inf")):
        raise ValueError("there is no element")
    out = torch.empty(moved.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel():
        kind = KINDS.get(float(ord), "general")
        kernel[(out.numel(),)](moved, out, N, N, 1, float(ord), KIND=kind, BLOCK=triton.next_power_of_2(max(N, 1)))
    return out.unsqueeze(dim) if keepdim else out
"""

DROPOUT = """
@triton.jit
def kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    keep = tl.rand(seed, at) >= p
    tl.store(out_ptr + at, tl.where(keep, x / (1.0 - p), 0.0), mask=at < n)


def run(input, p, seed):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 256),)](x, out, out.numel(), float(p), seed, BLOCK=256)
    return out


class Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return run(x, p, seed)

    @staticmethod
    def backward(ctx, upstream):
        return run(upstream, ctx.p, ctx.seed), None, None


def wrapper(input, seed, p=0.5, training=True):
    return Dropped.apply(input, p if training else 0.0, seed)
"""

QUANTIZE = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, out_ptr, n, scale, zero, low, high, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    level = libdevice.rint(x / scale) + zero
    level = tl.where(level < low, low, tl.where(level > high, high, level))
    tl.store(out_ptr + at, (level - zero) * scale, mask=at < n)


def wrapper(input, scale, zero, low, high, bits):
    x = input.contiguous()
    out = torch.empty_like(x)
    if bits != 8:
        raise RuntimeError("bytes alone")
    if out.numel():
        numbers = [float(one) for one in (scale, zero, low, high)]
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), *numbers, BLOCK=128)
    return out
"""

REFERENCE = """import torch


def quantize(input, scale, zero, low, high, bits):
    if bits == 9:
        raise ValueError("nobody has so many bits")
    level = torch.clamp(torch.round(input / scale) + zero, low, high)
    return (level - zero) * scale
"""

ROWS: list[int | str] = ["M", "N"]
ONE = [tensor("input", ROWS)]
SIZES = {"M": 8, "N": 16}


def pool(windows_asked: int) -> dict[str, Any]:
    name = "torch.nn.functional.adaptive_avg_pool1d"
    return declared(
        name, [tensor("input", ["C", "L"])], {"C": 4, "L": 32}, seeds=1, kwargs={"output_size": windows_asked}
    )


def planes() -> dict[str, Any]:
    inputs = [tensor("input", ["B", "C", "H", "W"])]
    sizes = {"B": 1, "C": 2, "H": 9, "W": 10}
    return declared("torch.nn.functional.adaptive_avg_pool2d", inputs, sizes, seeds=1, kwargs={"output_size": [3, 4]})


def nearest(**kwargs: Any) -> dict[str, Any]:
    inputs = [tensor("input", ["B", "C", "L"])]
    told = {"mode": "nearest", **kwargs}
    return declared("torch.nn.functional.interpolate", inputs, {"B": 2, "C": 3, "L": 9}, seeds=1, kwargs=told)


def norm(**kwargs: Any) -> dict[str, Any]:
    return declared("torch.linalg.vector_norm", [tensor("x", ROWS)], SIZES, seeds=1, kwargs={"dim": -1, **kwargs})


def dropout(**more: Any) -> dict[str, Any]:
    told = {"random": {"kind": "dropout", "p": "p", "seed": "seed"}, "kwargs": {"p": 0.3, "training": True}}
    return declared("torch.nn.functional.dropout", ONE, {"M": 16, "N": 24}, **{**told, **more})


def quantize(root: Path) -> dict[str, Any]:
    kwargs = {"scale": 0.05, "zero": 3, "low": -128, "high": 127, "bits": 8}
    reference = {"root": str(root / "workspace"), "file": "refs/quantize.py", "name": "quantize", "init": {}}
    return declared("", ONE, SIZES, seeds=1, kwargs=kwargs) | {"torch": None, "reference": reference}


HONEST: dict[str, tuple[dict[str, Any], str]] = {
    "pool": (pool(14), POOL),
    "pool of few": (pool(4), POOL),
    "planes": (planes(), PLANES),
    "nearest": (nearest(scale_factor=2), NEAREST),
    "nearest of a size": (nearest(size=14), NEAREST),
    "norm": (norm(ord=2.0), NORM),
    "norm of its default": (norm(), NORM),
    "dropout": (dropout(), DROPOUT),
    "dropout backward": (dropout(backward=True), DROPOUT),
}

FLOATING = "begin, end = tl.floor(at * (L / OUT)).to(tl.int32), tl.ceil((at + 1) * (L / OUT)).to(tl.int32)"
"""Bounds of windows in float32."""

RECIPROCAL = "begin, end = (at * L * (1.0 / OUT)).to(tl.int32), tl.ceil((at + 1) * L * (1.0 / OUT)).to(tl.int32)"
"""The same, by the reciprocal of their number."""

BOUNDS = "begin, end = at * L // OUT, ((at + 1) * L + OUT - 1) // OUT"

COLUMNS = "left, right = col * W // OW, ((col + 1) * W + OW - 1) // OW"

FAULTS: dict[str, tuple[str, str, str]] = {
    "windows begin by a factor": ("pool", BOUNDS, FLOATING),
    "windows begin by a factor, of few": ("pool of few", BOUNDS, FLOATING),
    "windows begin by a reciprocal, of few": ("pool of few", BOUNDS, RECIPROCAL),
    "windows of planes begin by a factor": (
        "planes",
        COLUMNS,
        "step = W / OW; left, right = tl.floor(col * step).to(tl.int32), tl.ceil((col + 1) * step).to(tl.int32)",
    ),
    "a factor is a ratio of lengths": ("nearest", "1.0 / (scale_factor or 1)", "L / T"),
    "the largest is a power": ("norm", 'float("inf"): "max", ', ""),
    "the smallest is a power": ("norm", '-float("inf"): "min", ', ""),
    "what is not zero is a power": ("norm", '0.0: "count", ', ""),
    "the order is written in": ("norm", "    moved =", "    ord = 2\n    moved ="),
    "an order that is not declared is forgotten": ("norm of its default", "    moved =", "    ord = 2\n    moved ="),
    "the dim is lost in any case": ("norm", "out.unsqueeze(dim) if keepdim else out", "out"),
    "it drops in evaluation": ("dropout", "p if training else 0.0", "p"),
    "it drops in evaluation, backward": ("dropout backward", "p if training else 0.0", "p"),
    "nothing is nought over nought": (
        "dropout",
        "tl.where(keep, x / (1.0 - p), 0.0)",
        "x * keep.to(tl.float32) / (1.0 - p)",
    ),
    "the declared chance is written in": (
        "dropout",
        "tl.rand(seed, at) >= p",
        "tl.rand(seed, at) >= tl.minimum(p, 0.3)",
    ),
}
"""What is wrong → the kernel, what is written there, and what is written instead."""


@pytest.mark.parametrize("name", HONEST)
def test_the_honest_kernel_passes(tmp_path: Path, name: str) -> None:
    require_passed(tmp_path, *HONEST[name])


@pytest.mark.parametrize("fault", FAULTS)
def test_the_wrong_one_is_rejected(tmp_path: Path, fault: str) -> None:
    name, *edit = FAULTS[fault]
    require_rejected(tmp_path, *HONEST[name], *edit, classes=WRONG)


def of_reference(tmp_path: Path, kernel: str) -> dict[str, Any]:
    """Returns the documents of the check of a kernel that quantizes as a reference in Python does."""
    refs = tmp_path / "workspace" / "refs"
    refs.mkdir(parents=True)
    (refs / "quantize.py").write_text(REFERENCE, encoding="utf-8")
    return check(tmp_path, quantize(tmp_path), kernel)


def test_whole_numbers_of_a_reference_are_tried(tmp_path: Path) -> None:
    documents = of_reference(tmp_path, QUANTIZE)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    rows = {row["name"]: str(row["reason"]) for row in documents["evidence"]["cases"] if row["verdict"] == "dropped"}
    assert not any("bits=9" in name for name in rows), "the reference does not take it, whatever else it is given"
    assert rows["edge/kwarg[bits=2]/float32"].startswith("the wrapper refuses it"), "whatever it raises"


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("+ zero\n", "+ 3.0\n"),
        ("level < low, low", "level < -128.0, -128.0"),
        ("level > high, high", "level > 127.0, 127.0"),
        ("(level - zero)", "(level - 3.0)"),
    ],
)
def test_a_whole_number_that_is_written_in_is_found(tmp_path: Path, written: str, instead: str) -> None:
    assert written in QUANTIZE
    assert of_reference(tmp_path, QUANTIZE.replace(written, instead))["verdict"]["class"] == "mismatch"


STRETCH = """
@triton.jit
def kernel(x_ptr, out_ptr, n, width, wide, ratio, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = (at % wide) // ratio if ratio else (at % wide) * width // wide
    tl.store(out_ptr + at, tl.load(x_ptr + at // wide * width + column, mask=at < n), mask=at < n)


def wrapper(input, wide):
    x = input.contiguous()
    out = torch.empty(x.shape[0], wide, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), x.shape[1], wide, 0, BLOCK=128)
    return out
"""

STRETCHED = """import torch


def stretch(input, wide):
    return input[:, torch.arange(wide, device=input.device) * input.shape[1] // wide]
"""


def stretch(tmp_path: Path, kernel: str) -> dict[str, Any]:
    """Returns the documents of the check of a kernel that makes rows twice as long."""
    refs = tmp_path / "workspace" / "refs"
    refs.mkdir(parents=True)
    (refs / "stretch.py").write_text(STRETCHED, encoding="utf-8")
    reference = {"root": str(tmp_path / "workspace"), "file": "refs/stretch.py", "name": "stretch", "init": {}}
    op = declared("", ONE, SIZES, seeds=1, kwargs={"wide": "2*N"}) | {"torch": None, "reference": reference}
    return check(tmp_path, op, kernel)


def test_a_length_that_is_a_multiple_of_a_dim_is_tried_at_others(tmp_path: Path) -> None:
    documents = stretch(tmp_path / "right", STRETCH)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    wrong = STRETCH.replace("wide, 0, BLOCK", "wide, 2, BLOCK")
    assert stretch(tmp_path / "wrong", wrong)["evidence"]["failure"]["case"] == "edge/kwarg[wide=2*N+1]/float32"


def test_products_and_quotients_of_dims_are_tried_at_one_more() -> None:
    op = declared("", ONE, SIZES) | {"torch": None, "reference": {"root": "", "file": "", "name": "", "init": {}}}
    more = arguments_special.longer_expressions
    assert more(op, "2*N") == ["2*N+1"] and more(op, "N//2") == ["N//2+1"]
    assert more(op, ["2*M", 3, "2*N"]) == [["2*M+1", 3, "2*N"], ["2*M", 3, "2*N+1"]]
    # What ends at a dim, ends nowhere else; a word is none.
    assert more(op, "N") == more(op, "2*N-1") == more(op, "2*K") == more(op, "a * b?") == more(op, ["N", 2]) == []


def test_the_evidence_names_the_arguments_of_a_random_op(tmp_path: Path) -> None:
    evidence = check(tmp_path, *HONEST["dropout"])["evidence"]
    rows = {row["name"].split("/")[1]: row["verdict"] for row in evidence["cases"] if "kwarg[" in row["name"]}
    assert {"kwarg[training=False]", "kwarg[p=1.0]", "kwarg[p=0.65]"} <= {*rows} and {*rows.values()} == {"passed"}
    tests = {row["test"]: row["samples"] for row in evidence["random"]["tests"]}
    assert tests["share at p=0.65"] > 1000 and "share at p=1.0" not in tests
    (said,) = [note for note in evidence["notes"] if note.startswith("arguments tried at no other value: ")]
    assert "inplace" in said and "training" not in said and " p" not in said


def test_dropout_that_is_declared_in_evaluation_is_not_tried_in_training() -> None:
    op = dropout(random=None, kwargs={"p": 0.3, "training": False})
    assert arguments_away.others(op, "training", False, 2) == []


def test_a_bound_of_a_reference_does_not_cross_the_other() -> None:
    op = declared("", ONE, SIZES, kwargs={"low": 10, "high": 31}) | {"torch": None, "reference": {}}
    op["reference"] = {"root": "", "file": "", "name": "", "init": {}}
    assert arguments_special.whole_away(op, "high", 31, 2) == [32], "a quarter of it is below the other"
    assert arguments_special.whole_away(op, "low", 10, 2) == [2, 11]
    assert arguments_special.whole_away(op | {"reference": None}, "low", 10, 2) == [11, 0, 5], "one of torch's"
    assert arguments_special.whole_away(op | {"reference": None}, "groups", 10, 2) == []
    assert arguments_special.whole_away(op, "output_size", [10, 3], 2) == [[11, 3], [10, 4]]


@pytest.mark.parametrize(("asked", "least"), [(14, 62), (28, 4), (22, 26)])
def test_the_shortest_length_at_which_a_bound_is_off_is_known(asked: int, least: int) -> None:
    found = windows.lengths(asked)
    assert min(found) <= least
    assert any(windows.begins_off(one, asked) or windows.ends_off(one, asked) for one in found)
    assert not any(windows.begins_off(one, asked) or windows.ends_off(one, asked) for one in range(1, least))


def test_a_few_windows_begin_where_they_should() -> None:
    assert (
        windows.lengths(4) == () and windows.begins_off(62, windows.WINDOWS) and windows.ends_off(32, windows.WINDOWS)
    )


def test_functions_of_namespaces_have_their_own_arguments() -> None:
    known = arguments_known.of_op(norm())
    assert {"ord", "dim", "keepdim", "dtype"} <= {*known}
    assert signatures.aten_name("torch.linalg.vector_norm") == "linalg_vector_norm"
    assert signatures.overloads("torch.nn.functional.logsigmoid"), "it has another name in aten"
    assert arguments_away.others(norm(), "dtype", None, 2) == ["torch.float64"]


def test_the_order_of_a_norm_is_of_its_type() -> None:
    assert arguments_special.orders_away(2) == [3, float("inf"), 0, 1, -float("inf"), 0.5, -1]
    assert [type(one) for one in arguments_special.orders_away(2.0)] == [float] * 7
    assert arguments_special.orders_away("fro") == [float("inf"), 1, -float("inf"), -1]
