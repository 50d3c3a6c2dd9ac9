"""Values that the code of a reference compares its arguments with are other values of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks import declared, require_passed, require_rejected, tensor

from t2t_harness.cases import arguments_away, arguments_compared, arguments_refused

REFERENCE = '''
import torch

WEIGHTS = {"plain": 1.0, "half": 0.5}


def scaled(input, window=4, form="plain", weights=(0.25, 0.75), exclusive=False, reverse=False):
    """Sums of the last elements of a row up to each one, all of them if `window` is -1."""
    places = torch.arange(input.shape[1], device=input.device)
    behind = places[:, None] - places[None, :]
    if reverse:
        behind = -behind
    seen = (behind >= int(exclusive)) & ((behind < window) if window != -1 else (behind == behind))
    total = torch.where(seen[None], input[:, None, :], torch.zeros((), dtype=input.dtype)).sum(dim=-1)
    return WEIGHTS[form] * (weights[0] * total + weights[1] * input)
'''

KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, N, window, first, second, WHOLE: tl.constexpr, SKIP: tl.constexpr, BACK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for place in range(N):
        behind = (place - at) if BACK else (at - place)
        seen = behind >= SKIP
        if not WHOLE:
            seen = seen & (behind < window)
        total += tl.where(seen, tl.load(x_ptr + row * N + place), 0.0)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    tl.store(out_ptr + row * N + at, first * total + second * x, mask=at < N)


def wrapper(input, window=4, form="plain", weights=(0.25, 0.75), exclusive=False, reverse=False):
    x = input.contiguous()
    out = torch.empty_like(x)
    M, N = x.shape
    scale = {"plain": 1.0, "half": 0.5}[form]
    first, second = weights
    skip = int(exclusive)
    if out.numel():
        grid = (M, triton.cdiv(N, 16))
        whole = window == -1
        kernel[grid](x, out, N, window, scale * first, scale * second, WHOLE=whole, SKIP=skip, BACK=reverse, BLOCK=16)
    return out
"""


def op(folder: Path) -> dict[str, object]:
    """Returns the op of the reference, which is written into `folder`."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    kwargs = {"window": 4, "form": "plain", "weights": [0.25, 0.75], "exclusive": False, "reverse": False}
    reference = {"file": "reference.py", "name": "scaled", "init": {}, "root": str(folder)}
    inputs = [tensor("input", ["M", "N"])]
    return declared("", inputs, {"M": 4, "N": 24}, torch=None, reference=reference, kwargs=kwargs)


def test_an_honest_kernel_passes(tmp_path: Path) -> None:
    require_passed(tmp_path, op(tmp_path), KERNEL)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("whole = window == -1", "whole = False"),
        ('{"plain": 1.0, "half": 0.5}[form]', "1.0"),
        ("first, second = weights", "first, second = weights[0], 0.75"),
        ("skip = int(exclusive)", "skip = int(exclusive and not reverse)"),
    ],
    ids=["a number that means all", "a word of a table", "one of a pair", "two flags at once"],
)
def test_a_careless_one_is_rejected(written: str, instead: str, tmp_path: Path) -> None:
    require_rejected(tmp_path, op(tmp_path), KERNEL, written, instead)


SOURCE = """
TABLE = {"relu": 1, "gelu": 2}


def reference(x, size=3, act="relu", mode="a", kind="x"):
    if size == -1 or 0 < size:
        pass
    if mode in ("a", "b"):
        pass
    match kind:
        case "x" | "y":
            pass
        case "z":
            pass
    return TABLE[act]
"""


def test_comparisons_tables_and_matches_are_read(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(SOURCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": "reference", "init": {}, "root": str(tmp_path)}
    given = declared("", [], {}, torch=None, reference=reference)
    assert arguments_compared.compared(given, "size", 3) == [-1, 0, 1]
    assert arguments_compared.compared(given, "act", "relu") == ["gelu"]
    assert arguments_compared.compared(given, "mode", "a") == ["b"]
    assert arguments_compared.compared(given, "kind", "x") == ["y", "z"]
    assert arguments_compared.compared(given, "kind", 5) == []
    assert arguments_compared.compared(given, "mode", None) == ["a", "b"]
    assert arguments_compared.compared(given, "cap", None) == [arguments_compared.SOME]
    assert arguments_compared.compared(given | {"reference": None}, "size", 3) == []


def test_what_is_compared_with_a_length_is_also_less_than_that(tmp_path: Path) -> None:
    source = "def reference(x, longest=2048):\n    return x * (x.shape[0] / longest if x.shape[0] > longest else 1)\n"
    (tmp_path / "reference.py").write_text(source, encoding="utf-8")
    reference = {"file": "reference.py", "name": "reference", "init": {}, "root": str(tmp_path)}
    given = declared("", [], {}, torch=None, reference=reference)
    assert arguments_compared.compared(given, "longest", 2048) == [*arguments_compared.FEW]


AVERAGED = """
def averaged(x, kept, step=40, after=20, every=10):
    if step % every != 0:
        return kept.clone()
    return x.clone() if step <= after else kept + (x - kept) / (1 + step - after)
"""

AVERAGED_KERNEL = """
@triton.jit
def kernel(x_ptr, kept_ptr, out_ptr, count, part, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, kept = tl.load(x_ptr + at, mask=at < count), tl.load(kept_ptr + at, mask=at < count)
    value = tl.where(part == 1.0, x, tl.where(part == 0.0, kept, kept + (x - kept) * part))
    tl.store(out_ptr + at, value, mask=at < count)


def wrapper(x, kept, step=40, after=20, every=10):
    x, kept = x.contiguous(), kept.contiguous()
    out = torch.empty_like(x)
    if step % every != 0:
        part = 0.0
    else:
        part = 1.0 if step <= after else 1 / (1 + step - after)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](x, kept, out, out.numel(), float(part), BLOCK=64)
    return out
"""


def averaged(folder: Path) -> dict[str, object]:
    """Returns the op of this reference, which is written into `folder`."""
    (folder / "reference.py").write_text(AVERAGED, encoding="utf-8")
    reference = {"file": "reference.py", "name": "averaged", "init": {}, "root": str(folder)}
    own = {"step": 40, "after": 20, "every": 10}
    inputs = [tensor("x", ["N"]), tensor("kept", ["N"])]
    return declared("", inputs, {"N": 24}, torch=None, reference=reference, kwargs=own)


def test_of_two_that_are_compared_one_is_at_the_other_and_beside_it(tmp_path: Path) -> None:
    given = averaged(tmp_path)
    assert arguments_compared.partners(given, "step", 40) == [20, 19, 21]
    assert arguments_compared.partners(given, "every", 10) == []
    require_passed(tmp_path, given, AVERAGED_KERNEL)


def test_what_is_wrong_below_another_argument_alone_is_rejected(tmp_path: Path) -> None:
    written, instead = "if step % every != 0:", "if step % every != 0 and step > after:"
    require_rejected(tmp_path, averaged(tmp_path), AVERAGED_KERNEL, written, instead)


REFUSES = """
def reference(x, beta=1.0, mode="a", count=2, most=None, steps=3, width=4):
    if beta <= 0:
        raise ValueError(beta)
    assert mode in ("a", "b")
    if not 0 <= count < 5 or x.dim() == 7:
        raise ValueError(count)
    if most is not None and most < 1:
        raise ValueError(most)
    if x.shape[0] < width:
        raise ValueError(width)
    steps = abs(steps)
    if steps < 0:
        raise ValueError(steps)
    if x.numel() == 0:
        return x
    assert width > 2
    return x
"""


def test_what_a_reference_refuses_whatever_else_it_is_given_is_not_tried(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFUSES, encoding="utf-8")
    reference = {"file": "reference.py", "name": "reference", "init": {}, "root": str(tmp_path)}
    own = {"beta": 1.0, "mode": "a", "count": 2, "most": None, "steps": 3, "width": 4}
    op = declared("", [], {}, torch=None, reference=reference, kwargs=own)
    refused = {"beta": [-1.0, 0], "mode": ["c"], "count": [-1, 5], "most": [0, -2.5]}
    taken = {"beta": [0.5, "x"], "mode": ["b"], "count": [0, 4], "most": [None, 1], "steps": [-1], "width": [0, 1]}
    for expected, values in ((True, refused), (False, taken)):
        for name, listed in values.items():
            for value in listed:
                assert arguments_refused.refuses(op, name, value) is expected, (name, value)
    assert arguments_away.others(op, "beta", 1.0, 2) == [2.5]
    assert not arguments_refused.refuses(op | {"reference": None, "torch": "torch.add"}, "beta", -1.0)
