"""A wrapper that takes dense rows alone, between which memory may lie, and asks two of its inputs to lie alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks import declared, require_passed, require_rejected, tensor

REFERENCE = "def weighed(x, y, scale, rows):\n    return x[rows] * scale + y[rows]\n"

KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, scale_ptr, rows_ptr, out_ptr, N, stride_x, stride_scale, BLOCK: tl.constexpr):
    place, cols = tl.program_id(0), tl.arange(0, BLOCK)
    row, inside = tl.load(rows_ptr + place), cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=inside)
    y = tl.load(y_ptr + row * stride_x + cols, mask=inside)
    scale = tl.load(scale_ptr + place * stride_scale + cols, mask=inside)
    tl.store(out_ptr + place * N + cols, x * scale + y, mask=inside)


def wrapper(x, y, scale, rows):
    assert x.stride() == y.stride() and x.stride(1) == scale.stride(1) == 1
    out = torch.empty(scale.shape, dtype=scale.dtype, device=scale.device)
    if out.numel():
        block = triton.next_power_of_2(x.shape[1])
        kernel[(len(rows),)](x, y, scale, rows, out, x.shape[1], x.stride(0), scale.stride(0), BLOCK=block)
    return out
"""


def weighed(folder: Path) -> dict[str, Any]:
    """Returns the op, which is tried on rows that are dense."""
    folder.mkdir()
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    given = [
        tensor("x", ["M", "N"]),
        tensor("y", ["M", "N"]),
        tensor("scale", ["P", "N"]),
        tensor("rows", ["P"], dtype="int64", init={"kind": "randint", "low": 0, "high": "M"}),
    ]
    edges = {"strided": "dense rows", "transposed": "dense rows"}
    reference = {"file": "reference.py", "name": "weighed", "init": {}, "root": str(folder)}
    sizes = {"M": 7, "N": 13, "P": 9}
    return declared("", given, sizes, torch=None, reference=reference, edges=edges)


def test_inputs_that_lie_otherwise_may_be_refused(tmp_path: Path) -> None:
    """Returns nothing: no vector is strided, and an assertion that two inputs lie alike is no fault."""
    require_passed(tmp_path / "right", weighed(tmp_path / "right"), KERNEL)


def test_one_that_lies_otherwise_is_seen_beside_those_that_are_refused(tmp_path: Path) -> None:
    """Returns nothing: the strides of one input are taken for another's."""
    wrong = "place * stride_x + cols"
    require_rejected(tmp_path / "wrong", weighed(tmp_path / "wrong"), KERNEL, "place * stride_scale + cols", wrong)
