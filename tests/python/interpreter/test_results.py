"""What a reference may return beside one tensor: tuples of tuples, dicts, None, numbers. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from checks import check, declared, require_passed, tensor, verdict

from t2t_harness.op import results


class Extremes(NamedTuple):
    least: torch.Tensor
    most: torch.Tensor


STRANGE = {1, 2}

A, B, C = (torch.full((2,), float(value)) for value in range(3))


@pytest.mark.parametrize(
    ("returned", "form", "values", "numbers", "names"),
    [
        (A, "tensor", [A], [], ()),
        (None, "None", [], [], ()),
        ((A,), "(tensor,)", [A], [], ()),
        ([A, B], "(tensor, tensor)", [A, B], [], ()),
        ((A, (B, C)), "(tensor, (tensor, tensor))", [A, B, C], [], ()),
        ((A, None, 3, True, "sum", 0.5), "(tensor, None, 3, True, 'sum', float)", [A], [0.5], ()),
        ({"y": A, "x": (B, None)}, "{'x': (tensor, None), 'y': tensor}", [B, A], [], ("x", "y")),
        (Extremes(A, B), "(tensor, tensor)", [A, B], [], ("least", "most")),
        (torch.max(torch.ones(2, 2), 1), "(tensor, tensor)", None, [], ("values", "indices")),
        ((A, STRANGE), "(tensor, tensor)", [A, STRANGE], [], ()),
    ],
)
def test_what_was_returned_is_taken_apart(
    returned: Any, form: str, values: list[Any] | None, numbers: list[float], names: tuple[str, ...]
) -> None:
    found = results.apart(returned)
    assert (found.form, found.numbers, found.names) == (form, numbers, names)
    assert values is None or all(one is other for one, other in zip(found.values, values, strict=True))


def test_what_is_no_tensor_is_not_compared() -> None:
    assert results.tensors(results.apart((A, (None, B)))) == [A, B]
    with pytest.raises(TypeError, match="returns a `set`"):
        results.tensors(results.apart((A, {1})))


REFERENCE = """
import torch

def extremes(x):
    least, most = x.amin(1), x.amax(1)
    return RETURNED
"""

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, least_ptr, most_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=float("inf"))
    nan = tl.max((x != x).to(tl.int32)) > 0
    tl.store(least_ptr + row, tl.where(nan, float("nan"), tl.min(x)))
    x = tl.where(cols < N, x, float("-inf"))
    tl.store(most_ptr + row, tl.where(nan, float("nan"), tl.max(x)))

def wrapper(x):
    M, N = x.shape
    if N == 0:
        raise ValueError("columns are wanted")
    least, most = (torch.empty(M, dtype=x.dtype, device=x.device) for _ in range(2))
    if M:
        kernel[(M,)](x, least, most, N, *x.stride(), BLOCK=triton.next_power_of_2(N))
    return RETURNED
"""

RETURNED = {
    "none": ("least, None, most", "least, most, None"),
    "a pair in a pair": ("least, (most, None)", "least, most, None"),
    "a dict": ("{'most': most, 'least': least}", "{'most': least, 'least': most}"),
    "names of a dict": ("{'least': least, 'most': most}", "{'min': least, 'max': most}"),
    "a count": ("least, most, x.shape[0]", "least, most, 7"),
    "a flag": ("least, most, x.shape[0] > 7", "least, most, False"),
    "a fraction": ("least, most, x.shape[0] / 3", "least, most, 7 / 3"),
    "a tuple of one": ("(least,)", "least"),
}


def op_of(folder: Path, returned: str, **more: Any) -> dict[str, Any]:
    """Returns the op whose reference, which is written into `folder`, returns the expression `returned`."""
    folder.mkdir(exist_ok=True)
    (folder / "reference.py").write_text(REFERENCE.replace("RETURNED", returned), encoding="utf-8")
    reference = {"file": "reference.py", "name": "extremes", "init": {}, "root": str(folder)}
    return declared("", [tensor("x", ["M", "N"])], {"M": 7, "N": 24}, torch=None, reference=reference, **more)


@pytest.mark.parametrize(("right", "wrong"), RETURNED.values(), ids=RETURNED)
def test_all_that_is_returned_is_compared(tmp_path: Path, right: str, wrong: str) -> None:
    op = op_of(tmp_path, right)
    require_passed(tmp_path / "right", op, KERNEL.replace("RETURNED", right))
    assert verdict(tmp_path / "wrong", op, KERNEL.replace("RETURNED", wrong))[0] in ("type", "mismatch")


def test_the_form_of_both_is_told(tmp_path: Path) -> None:
    op = op_of(tmp_path, "least, (most, None)")
    message = verdict(tmp_path / "wrong", op, KERNEL.replace("RETURNED", "least, most"))[1]
    assert message == "returns a tuple of 2, torch returns `(tensor, (tensor, None))`"


def test_outputs_of_ops_yaml_are_the_tensors_in_order(tmp_path: Path) -> None:
    close = {"compare": "close", "of": None, "dim": None, "tolerances": {}}
    outputs = [{**close, "name": "least", "compare": "ignore"}, {**close, "name": "most"}]
    op = op_of(tmp_path, "least, None, most", outputs=outputs)
    wrong = KERNEL.replace("tl.max(x)))", "tl.max(x) + 1))").replace("RETURNED", "least, None, most")
    documents = check(tmp_path / "wrong", op, wrong)
    assert documents["evidence"]["failure"]["message"].startswith("output `most`")
    require_passed(
        tmp_path / "ignored",
        op,
        wrong.replace("least_ptr + row, tl", "least_ptr + row, 1 + tl").replace("tl.max(x) + 1", "tl.max(x)"),
    )


def test_an_ignored_output_may_be_none_wherever_it_stands(tmp_path: Path) -> None:
    close = {"compare": "close", "of": None, "dim": None, "tolerances": {}}
    outputs = [{**close, "name": "least", "compare": "ignore"}, {**close, "name": "most"}]
    require_passed(tmp_path, op_of(tmp_path, "least, most", outputs=outputs), KERNEL.replace("RETURNED", "None, most"))
    assert results.listed((None, B), {0}) == [None, B]
