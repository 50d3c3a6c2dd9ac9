"""Values that the code of a reference compares its arguments with are other values of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import declared, require_passed, require_rejected, tensor, verdict

from t2t_harness.cases import arguments_away, arguments_compared, arguments_refused, probe_arguments

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
    assert arguments_compared.compared(given, "cap", None) == [*arguments_compared.SOME]
    assert arguments_compared.compared(given | {"reference": None}, "size", 3) == []


def test_what_is_compared_with_a_length_is_also_less_than_that(tmp_path: Path) -> None:
    source = "def reference(x, longest=2048):\n    return x * (x.shape[0] / longest if x.shape[0] > longest else 1)\n"
    (tmp_path / "reference.py").write_text(source, encoding="utf-8")
    reference = {"file": "reference.py", "name": "reference", "init": {}, "root": str(tmp_path)}
    given = declared("", [], {}, torch=None, reference=reference)
    assert arguments_compared.compared(given, "longest", 2048) == [*arguments_compared.FEW]


HANDED = """
def factor(kind):
    return {"deg": 57.0, "turn": 0.16}[kind] if kind != "rad" else 1.0

def total(loss, how):
    if how == "none":
        return loss
    return loss.mean() if how == "mean" else loss.sum()

def one(x, how):
    return x.amax(0) if how == "max" else x.amin(0) if how == "min" else x.mean(0)

def reference(x, unit="rad", agg="mean", kinds=("mean", "max"), cap=2.0, weights=None):
    x = x if cap is None else x.clamp(max=cap)
    parts = [one(x, kind) for kind in kinds]
    return total(sum(parts) * factor(unit), agg) * weights["first"]
"""


def test_what_a_function_of_the_file_is_handed_is_followed(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(HANDED, encoding="utf-8")
    reference = {"file": "reference.py", "name": "reference", "init": {}, "root": str(tmp_path)}
    own = {"unit": "rad", "agg": "mean", "kinds": ["mean", "max"], "cap": 2.0, "weights": {"first": 1.0, "count": 2}}
    given = declared("", [tensor("x", ["M", "N"])], {"M": 4, "N": 8}, torch=None, reference=reference, kwargs=own)
    assert arguments_compared.compared(given, "unit", "rad") == ["deg", "turn"]
    # The third of them is what is left.
    assert arguments_compared.compared(given, "agg", "mean") == ["none", "sum"]
    assert arguments_compared.compared(given, "kinds", ["mean", "max"]) == [["max", "mean"], ["min", "max"]]
    assert arguments_compared.compared(given, "kinds", [1, 2]) == []
    # Zero is none to code that asks for the truth of a number.
    assert arguments_compared.compared(given, "cap", 2.0) == [0.0]
    weights = [{"first": 0.5, "count": 2}, {"first": 1.0, "count": 3}]
    assert arguments_away.others(given, "weights", own["weights"], 2) == weights


def test_what_is_called_a_dim_and_is_more_than_there_are_is_a_length(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text("def reference(t, dim=32):\n    return t[:, None].expand(-1, dim)\n")
    reference = {"file": "reference.py", "name": "reference", "init": {}, "root": str(tmp_path)}
    given = declared("", [tensor("t", ["M"])], {"M": 4}, torch=None, reference=reference, kwargs={"dim": 32})
    assert arguments_away.others(given, "dim", 32, 1) == [8, 33, 64, 16]
    request: Any = {
        "op": given,
        "variant": {"name": "v1", "file": "", "entry": "", "call": "wrapper(t, dim=dim)"},
        "root": "",
    }
    own_budget = {case.name: case.has_own_budget for case in probe_arguments.kwargs(request)}
    assert own_budget["edge/kwarg[dim=8]/float32"] and own_budget["edge/kwarg[dim=33]/float32"]


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


BRANCHES = """
def turned(x, order="row"):
    return x if order == "row" else x.flip(-1)
"""

TURNED = """
@triton.jit
def kernel(x_ptr, out_ptr, N, sm, sn, BACK: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    from_ = N - 1 - at if BACK else at
    tl.store(out_ptr + row * N + at, tl.load(x_ptr + row * sm + from_ * sn, mask=at < N), mask=at < N)


def wrapper(x, order="row"):
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if out.numel():
        BLOCK = triton.next_power_of_2(x.shape[1])
        kernel[x.shape[:1]](x, out, x.shape[1], *x.stride(), BACK={"row": False, "col": True}[order], BLOCK=BLOCK)
    return out
"""


def flipped(folder: Path) -> dict[str, object]:
    """Returns the op of this reference, which is written into `folder`."""
    (folder / "reference.py").write_text(BRANCHES, encoding="utf-8")
    reference = {"file": "reference.py", "name": "turned", "init": {}, "root": str(folder)}
    inputs = [tensor("x", ["M", "N"])]
    return declared("", inputs, {"M": 4, "N": 9}, torch=None, reference=reference, kwargs={"order": "row"})


@pytest.mark.parametrize(
    ("back", "is_right"),
    [
        ('{"row": False, "col": True}[order]', True),
        ('order != "row"', True),
        ('{"row": False}[order]', True),
        ('{"row": False, "col": False}[order]', False),
        ("False", False),
    ],
    ids=["a word of the kernel's", "all others", "a refusal", "a word that does nothing", "ignored"],
)
def test_a_word_that_the_reference_does_not_name_is_tried(tmp_path: Path, back: str, is_right: bool) -> None:
    kernel = TURNED.replace('{"row": False, "col": True}[order]', back)
    class_, message = verdict(tmp_path, flipped(tmp_path), kernel)
    assert (class_ is None) is is_right, message
