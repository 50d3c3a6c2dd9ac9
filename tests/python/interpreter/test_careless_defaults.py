"""What a reference in Python has by default, arguments that ops.yaml says nothing of, and a factor of 0 that is a fraction. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, tensor, verdict

REFERENCE = '''"""A softmax with arguments."""

import torch


def soft(x, scale: float | None = None, center=False, word="exp"):
    if scale is None:
        scale = x.shape[-1] ** -0.5
    out = torch.softmax(x * scale, -1) if word == "exp" else x * scale
    return out - out.mean(-1, keepdim=True) if center else out
'''

KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, N, sm, sn, scale, CENTER: tl.constexpr, EXP: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + at * sn, mask=at < N, other=0.0)
    x = x * scale
    if EXP:
        x = tl.where(at < N, x, float("-inf"))
        is_nan = tl.sum(tl.where(at < N, x != x, 0).to(tl.int32)) > 0
        x = tl.exp(x - tl.where(is_nan, float("nan"), tl.max(x)))
        x = x / tl.sum(x)
    if CENTER:
        x = x - tl.sum(tl.where(at < N, x, 0.0)) / N
    tl.store(out_ptr + row * N + at, x, mask=at < N)


def wrapper(x, scale=None, center=False, word="exp"):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    scale = N**-0.5 if scale is None and N else scale or 0.0
    if out.numel():
        block = triton.next_power_of_2(N)
        kernel[(M,)](x, out, N, *x.stride(), scale, CENTER=center, EXP=word == "exp", BLOCK=block)
    return out
"""


def soft(folder: Path, **kwargs: Any) -> dict[str, Any]:
    """Returns the op of the reference, which is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": "soft", "init": {}, "root": str(folder)}
    inputs = [tensor("x", ["M", "N"])]
    return declared("", inputs, {"M": 7, "N": 24}, torch=None, reference=reference, kwargs=kwargs, seeds=1)


@pytest.mark.parametrize(
    ("kwargs", "written", "instead", "case"),
    [
        ({"scale": 0.5}, "scale is None and N", "False", "without-scale"),
        ({"word": "raw"}, 'word="exp"', 'word="raw"', "without-word"),
        ({}, "CENTER=center", "CENTER=False", "center=True"),
        ({}, "scale is None and N", "N", "scale=0.3"),
    ],
    ids=["a default beside a declared number", "a default beside a declared word", "a flag", "a number"],
)
def test_what_a_reference_takes_is_tried(
    tmp_path: Path, kwargs: dict[str, Any], written: str, instead: str, case: str
) -> None:
    assert written in KERNEL
    op = soft(tmp_path, **kwargs)
    require_passed(tmp_path / "honest", op, KERNEL)
    failure = check(tmp_path / "careless", op, KERNEL.replace(written, instead))["evidence"]["failure"]
    assert failure is not None and failure["case"].startswith(f"edge/kwarg[{case}"), failure


def test_what_a_name_says_is_a_number_is_tried_of_a_wrapper_that_partial_makes(tmp_path: Path) -> None:
    """Nothing is written of its type, in the reference or in the wrapper."""

    def named(text: str) -> str:
        return re.sub(r"\bscale\b", "softmax_scale", text)

    op = soft(tmp_path)
    (tmp_path / "reference.py").write_text(named(REFERENCE).replace(": float | None", ""), encoding="utf-8")
    made = "\nfrom functools import partial\n\nwrapper = partial(whole, center=False)\n"
    own = named(KERNEL).replace("def wrapper(", "def whole(") + made
    require_passed(tmp_path / "honest", op, own)
    careless = own.replace("softmax_scale is None and N", "N")
    failure = check(tmp_path / "careless", op, careless)["evidence"]["failure"]
    assert failure is not None and failure["case"].startswith("edge/kwarg[softmax_scale=0.3"), failure


def test_a_wrapper_without_the_argument_is_not_asked_and_the_evidence_says_so(tmp_path: Path) -> None:
    own = KERNEL.replace(
        'def wrapper(x, scale=None, center=False, word="exp"):', "def wrapper(x):\n    center, word = False, 'exp'"
    )
    documents = check(
        tmp_path / "short",
        soft(tmp_path),
        own.replace("N**-0.5 if scale is None and N else scale or 0.0", "N**-0.5 if N else 0.0"),
    )
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    (said,) = [
        note for note in documents["evidence"]["notes"] if note.startswith("arguments tried at no other value: ")
    ]
    assert "center, scale, word (the wrapper does not take it)" in said


SUM = """
@triton.jit
def kernel(i_ptr, a_ptr, b_ptr, out_ptr, K, N, im, in_, am, ak, bk, bn, beta, alpha, BLOCK: tl.constexpr):
    row, col, at = tl.program_id(0), tl.program_id(1), tl.arange(0, BLOCK)
    a = tl.load(a_ptr + row * am + at * ak, mask=at < K, other=0.0)
    result = alpha * tl.sum(a * tl.load(b_ptr + at * bk + col * bn, mask=at < K, other=0.0))
    if beta != 0:
        result += beta * tl.load(i_ptr + row * im + col * in_)
    tl.store(out_ptr + row * N + col, result)


def wrapper(input, mat1, mat2, beta=1, alpha=1):
    M, N, K = mat1.shape[0], mat2.shape[1], mat1.shape[1]
    out = torch.empty((M, N), dtype=mat1.dtype, device=mat1.device)
    input = input.expand(M, N)
    strides = (*input.stride(), *mat1.stride(), *mat2.stride())
    if out.numel():
        block = triton.next_power_of_2(max(K, 1))
        kernel[(M, N)](input, mat1, mat2, out, K, N, *strides, float(beta), float(alpha), BLOCK=block)
    return out
"""


@pytest.mark.parametrize("beta", [1, 0.5])
def test_nothing_is_multiplied_by_a_factor_of_zero(tmp_path: Path, beta: float) -> None:
    inputs = [tensor("input", ["M", "N"]), tensor("mat1", ["M", "K"]), tensor("mat2", ["K", "N"])]
    op = declared("torch.addmm", inputs, {"M": 5, "N": 6, "K": 9}, kwargs={"beta": beta}, seeds=1)
    op["tolerances"] = {"float32": [1e-4, 1e-4]}
    require_passed(tmp_path / "honest", op, SUM)
    assert verdict(tmp_path / "careless", op, SUM.replace("if beta != 0", "if True"))[0] == "nan"
