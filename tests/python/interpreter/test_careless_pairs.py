"""Faults that show where two arguments differ at once, at a declared size, or in a configuration of its own. Beside each the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, tensor, verdict

from t2t_harness.cases import arguments_away, inputs
from t2t_harness.cases.cases import Case

REFERENCE = """
import torch

def stepped(p, g, buf=None, lr=0.1, nesterov=False, first=False, sign=0):
    step = g if sign == 0 else g.sign() if sign == 1 else g.abs()
    if buf is not None:
        buf.copy_(step if first else 0.9 * buf + step)
        step = step + 0.9 * buf if nesterov else buf
    return p - lr * step

def turned(x, y, flag=False):
    return (x - y if flag else x + y) * 2.0
"""

STEPPED = """
@triton.jit
def kernel(p_ptr, g_ptr, b_ptr, out_ptr, n, N, p0, p1, g0, g1, b0, b1, lr, HAS: tl.constexpr, NESTEROV: tl.constexpr, FIRST: tl.constexpr, SIGN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = at // N, at % N
    p = tl.load(p_ptr + row * p0 + col * p1, mask=at < n)
    step = tl.load(g_ptr + row * g0 + col * g1, mask=at < n)
    if SIGN == 1:
        step = tl.where(step > 0, 1.0, tl.where(step < 0, -1.0, tl.where(step == 0, 0.0, step)))
    elif SIGN != 0:
        step = tl.abs(step)
    if HAS:
        place = b_ptr + row * b0 + col * b1
        buf = step if FIRST else 0.9 * tl.load(place, mask=at < n) + step
        tl.store(place, buf, mask=at < n)
        step = step + 0.9 * buf if NESTEROV else buf
    tl.store(out_ptr + at, p - lr * step, mask=at < n)

def wrapper(p, g, buf=None, lr=0.1, nesterov=False, first=False, sign=0):
    M, N = p.shape
    out = torch.empty((M, N), dtype=p.dtype, device=p.device)
    if out.numel():
        held = p if buf is None else buf
        flags = {"HAS": buf is not None, "NESTEROV": nesterov, "FIRST": first, "SIGN": sign}
        strides = *p.stride(), *g.stride(), *held.stride()
        kernel[(triton.cdiv(M * N, 32),)](p, g, held, out, M * N, N, *strides, lr, **flags, BLOCK=32)
    return out
"""

TURNED = """
@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (16, 64)], key=["N"])
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, x0, x1, y0, y1, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for first in range(0, N, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x0 + cols * x1, mask=cols < N)
        y = tl.load(y_ptr + row * y0 + cols * y1, mask=cols < N)
        tl.store(out_ptr + row * N + cols, (x - y if FLAG else x + y) * 2.0, mask=cols < N)

def wrapper(x, y, flag=False):
    if x.shape[0] == 1 and flag:
        flag = True
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(M,)](x, y, out, N, *x.stride(), *y.stride(), FLAG=flag)
    return out
"""


def of_reference(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    """Returns the op that is `name` in the reference, which is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    return declared("", more.pop("given"), {"M": 5, "N": 24}, torch=None, reference=reference, **more)


def stepped(folder: Path) -> dict[str, Any]:
    """Returns the step of an optimizer, with a buffer that is left out in some calls and changed in the others."""
    given = [tensor("p", ["M", "N"]), tensor("g", ["M", "N"]), tensor("buf", ["M", "N"], optional=True)]
    kwargs = {"lr": 0.1, "nesterov": False, "first": False, "sign": 0}
    return of_reference(folder, "stepped", given=given, kwargs=kwargs, mutates=["buf"])


def turned(folder: Path, **more: Any) -> dict[str, Any]:
    """Returns an op with a flag."""
    given = [tensor("x", ["M", "N"]), tensor("y", ["M", "N"])]
    return of_reference(folder, "turned", given=given, kwargs={"flag": False}, **more)


def test_an_input_that_is_changed_may_be_left_out(tmp_path: Path) -> None:
    require_passed(tmp_path / "right", stepped(tmp_path), STEPPED)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("step + 0.9 * buf if NESTEROV else buf", "step + 0.9 * buf if NESTEROV and not FIRST else buf"),
        (
            "0.9 * tl.load(place, mask=at < n) + step",
            "(0.9 if SIGN == 0 else 0.8) * tl.load(place, mask=at < n) + step",
        ),
        ("step = step + 0.9 * buf if", "step = (0.5 if SIGN == 1 else 1.0) * step + 0.9 * buf if"),
    ],
    ids=["two flags", "a branch", "a branch and a flag"],
)
def test_arguments_that_are_forgotten_together_are_seen(tmp_path: Path, written: str, instead: str) -> None:
    assert written in STEPPED
    class_, message = verdict(tmp_path / "wrong", stepped(tmp_path), STEPPED.replace(written, instead))
    assert class_ == "mismatch", message


def test_a_flag_is_tried_at_declared_sizes(tmp_path: Path) -> None:
    op = turned(tmp_path)
    op["check_sizes"] |= {"one": {"M": 1, "N": 40}}
    require_passed(tmp_path / "right", op, TURNED)
    wrong = TURNED.replace("        flag = True\n", "        flag = False\n")
    failure = check(tmp_path / "wrong", op, wrong)["evidence"]["failure"]
    assert failure is not None and failure["case"] == "edge/kwarg[flag=True,one]/float32"


def test_what_is_left_to_torch_must_be_right(tmp_path: Path) -> None:
    # Another value than the declared one may be left to torch.
    for name, wrong in (("right", "x - y"), ("wrong", "y - x")):
        instead = f"    if flag:\n        return ({wrong}) * 2.0\n    M, N = x.shape\n"
        class_, message = verdict(tmp_path / name, turned(tmp_path), TURNED.replace("    M, N = x.shape\n", instead))
        assert class_ == (None if name == "right" else "mismatch"), message


def test_each_configuration_has_a_second_block(tmp_path: Path) -> None:
    wrong = TURNED.replace("range(0, N, BLOCK)", "range(0, N if BLOCK < 64 else BLOCK, BLOCK)")
    class_, message = verdict(tmp_path / "wrong", turned(tmp_path), wrong)
    assert class_ in ("mismatch", "nan"), message


def test_integers_of_a_reference_stay_in_their_range(tmp_path: Path) -> None:
    given = tensor("scales", ["M", "N"], dtype="uint8", init={"kind": "randint", "low": 110, "high": 140})
    op = of_reference(tmp_path, "turned", given=[given])
    made = inputs.make_inputs(
        op, Case("edge/limits[scales]/float32", "edge", "float32", {"M": 5, "N": 24}, values="limits")
    )
    assert (int(made["scales"].min()), int(made["scales"].max())) == (110, 139)


def test_numbers_that_are_tried_of_a_reference(tmp_path: Path) -> None:
    op = stepped(tmp_path)
    # A number to pad with is one, and no length; a factor above one takes another way below it.
    assert arguments_away.others(op, "pad", 0.0, 2) == [0.75]
    assert 0.5 in arguments_away.others(op, "penalty", 1.3, 2)
