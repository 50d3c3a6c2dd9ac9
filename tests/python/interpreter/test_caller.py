"""Wrappers that leave the form of their inputs, or torch's settings, otherwise than their caller had them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import check, declared, tensor

SOURCE = """@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


def wrapper(input, other):
    x = input.contiguous()
    out = torch.empty(x.shape, device=x.device)
    n = out.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    {after}
    return out
"""


def judged(tmp_path: Path, after: str) -> dict[str, Any]:
    inputs = [tensor("input", ["M", "N"])]
    op = declared("torch.mul", inputs, {"M": 9, "N": 20}, kwargs={"other": 2}, edges={"kwargs": None})
    return check(tmp_path, op, SOURCE.format(after=after))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (
            "input.t_()",
            "input `input` has shape [20, 9], strides [1, 20] after the call, and had shape [9, 20], strides [20, 1]",
        ),
        ("input.unsqueeze_(0)", "has shape [1, 9, 20]"),
        ("input.transpose_(0, 1)", "has shape [20, 9]"),
        ("input.resize_(input.numel())", "has shape [180]"),
        ("input.data = input.clone()", "input `input` lies in other memory after the call"),
        ("input.data = input[1:]", "has shape [8, 20], offset 20 after the call"),
        ("input.set_(torch.empty(3, device=input.device))", "has shape [3]"),
        (
            "torch.set_default_dtype(torch.float16)",
            "leaves torch's default dtype as torch.float16, which was torch.float32",
        ),
        ("torch.set_default_device('cuda')", "leaves torch's default device as cuda"),
        ("torch.set_grad_enabled(not torch.is_grad_enabled())", "leaves torch's recording of gradients as"),
        ("torch.manual_seed(42)", "leaves the seed of torch's generator as 42"),
    ],
)
def test_what_is_the_caller_s_is_left_as_it_is(tmp_path: Path, after: str, words: str) -> None:
    documents = judged(tmp_path, after)
    record = documents["evidence"]["failure"]
    assert documents["verdict"]["class"] == "mutated-input", record
    assert words in record["message"], record["message"]


@pytest.mark.parametrize(
    "after",
    [
        "input = input.t()",
        "with torch.random.fork_rng(devices=[]):\n        torch.manual_seed(42)",
        "with torch.no_grad():\n        input = input.unsqueeze(0)",
    ],
)
def test_views_and_settings_of_one_s_own_are_free(tmp_path: Path, after: str) -> None:
    documents = judged(tmp_path, after)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]


RESULT = """@triton.jit
def kernel(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out + row * stride + at, {value}, mask=at < n)


def wrapper(input{more}):
    x = input.contiguous()
    rows, n = x.shape
    {made}
    if rows * n > 0:
        kernel[({programs},)](x, buffer, buffer.stride(0), n, BLOCK=triton.next_power_of_2(n))
    return {returned}
"""

DOUBLED = "2.0 * tl.load(x + row * n + at, mask=at < n)"


def of_result(tmp_path: Path, torch_name: str, kwargs: dict[str, Any], **parts: str) -> dict[str, Any]:
    source = RESULT.format(more="".join(f", {name}" for name in kwargs), **parts)
    inputs = [tensor("input", ["M", "N"])]
    op = declared(torch_name, inputs, {"M": 9, "N": 20}, kwargs=kwargs, edges={"kwargs": None})
    return check(tmp_path, op, source)


def test_a_view_of_a_padded_buffer_is_told(tmp_path: Path) -> None:
    made = "buffer = torch.empty((rows, n + 4), device=x.device)"
    documents = of_result(
        tmp_path, "torch.mul", {"other": 2}, value=DOUBLED, made=made, programs="rows", returned="buffer[:, :n]"
    )
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    (note,) = [one for one in documents["evidence"]["notes"] if "strides" in one]
    assert "returns strides [24, 1], torch returns [20, 1]" in note


def test_a_dense_result_is_not_told(tmp_path: Path) -> None:
    made = "buffer = torch.empty((rows, n), device=x.device)"
    documents = of_result(
        tmp_path, "torch.mul", {"other": 2}, value=DOUBLED, made=made, programs="rows", returned="buffer"
    )
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    assert not any("strides" in note for note in documents["evidence"]["notes"])


def test_a_result_whose_elements_share_memory_has_another_shape(tmp_path: Path) -> None:
    made = "buffer = torch.empty((1, n), device=x.device)"
    parts = {"made": made, "programs": "1", "returned": "buffer.expand(rows, n)"}
    value = "tl.load(x + at, mask=at < n) * 0.0 + 1.0"
    documents = of_result(tmp_path, "torch.ones_like", {}, value=value, **parts)
    record = documents["evidence"]["failure"]
    assert documents["verdict"]["class"] == "shape", record
    assert "shape [9, 20] has strides [0, 1], torch returns [20, 1]" in record["message"]


def test_what_torch_expands_may_be_expanded() -> None:
    from t2t_harness.judging import form

    assert form.shares_memory([3, 4], [0, 1]) and form.shares_memory([3, 4], [1, 1])
    assert not form.shares_memory([1, 4], [0, 1]) and not form.shares_memory([0, 4], [0, 1])
    assert not form.shares_memory([4, 3], [1, 4]) and not form.shares_memory([3, 4], [9, 2])
    assert form.is_contiguous([3, 1, 4], [4, 7, 1]) and form.is_contiguous([0, 4], [9, 9])
    assert not form.is_contiguous([3, 4], [5, 1])
