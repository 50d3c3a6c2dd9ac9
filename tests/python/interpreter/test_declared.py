"""What ops.yaml does not ask of a kernel: edges that are off, operations that torch may compute, launches for constants of nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from test_check import GOOD, check, declaration

from t2t_harness.cases import block_edges, cases
from t2t_harness.judging import oracle, origin, watch

DENSE = """def triton_double(input, other):
    assert input.is_contiguous() and input.numel() > 0, "dense rows are wanted"
    return run(input, torch.empty_like(input))
"""


def test_edges_that_are_off_are_not_asked_for_and_said(tmp_path: Path) -> None:
    why = "the launcher asks for dense rows"
    edges = {"empty": None, "kwargs": None, "strided": why, "padded": why, "transposed": None}
    judged = check(tmp_path, DENSE, declaration(edges=edges, seeds=1))
    assert judged["outcome"] == "passed", judged["documents"]["evidence"]["failure"]
    evidence = judged["documents"]["evidence"]
    said = "edges not asked for: empty, kwargs, strided (the launcher asks for dense rows), padded (the launcher asks for dense rows), transposed"
    assert said in evidence["notes"]
    assert not any(one["name"].startswith(("edge/empty", "edge/strided")) for one in evidence["cases"])


def test_edges_that_are_on_reject_what_cannot_take_them(tmp_path: Path) -> None:
    judged = check(tmp_path, DENSE, declaration(edges={"empty": None, "transposed": None}, seeds=1))
    failure = judged["documents"]["evidence"]["failure"]
    assert (failure["class"], failure["case"]) == ("exception", "edge/strided/float32")


@pytest.mark.parametrize("off", ["empty", "one", "transposed", "strided", "large", "equal-rows", "special", "blocks"])
def test_each_edge_can_be_off(off: str) -> None:
    def listed(**changes: Any) -> set[str]:
        op = declaration(**changes)
        return {one.name for one in [*cases.fixed_edges(op), *block_edges.length_edges(op, {"BLOCK": 16})]}

    gone = listed() - listed(edges={off: None})
    expected = "edge/" if off == "blocks" else f"edge/{off}/"
    assert gone
    assert all(name.startswith(expected) for name in gone)
    assert all("-block[" in name for name in gone) == (off == "blocks")


SUM = """
@triton.jit
def row_sum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def rows(input):
    x = input.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device="cuda")
    if x.numel():
        row_sum_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out.zero_() if not x.numel() else out


def total(input):
    return rows(input).sum()


def doubled(input):
    return rows(input).sum() * 1.0


def torchs(input):
    rows(input)
    return input.sum()


def nothing(input):
    return input.sum()
"""


def sum_of(**changes: Any) -> dict[str, Any]:
    return declaration(torch="torch.sum", kwargs={}, seeds=1, **changes)


@pytest.mark.parametrize(
    ("entry", "allow", "class_", "said"),
    [
        ("total", [], "torch-fallback", "aten.sum"),
        ("doubled", ["sum"], "torch-fallback", "aten.mul"),
        # The op is a sum and nothing else: what it is itself cannot be allowed.
        ("total", ["sum"], "torch-fallback", "aten.sum"),
    ],
)
def test_torch_may_not_be_the_op(tmp_path: Path, entry: str, allow: list[str], class_: str, said: str) -> None:
    judged = check(tmp_path, SUM, sum_of(allow=allow), entry=entry)
    assert judged["class"] == class_
    assert said in judged["documents"]["evidence"]["failure"]["message"]


REFERENCE = "def loss(input):\n    return input.exp().log().sum()\n"


@pytest.mark.parametrize(
    ("entry", "allow", "class_"),
    [
        ("total", ["sum"], None),
        ("total", [], "torch-fallback"),
        # It may compute, but not what it returns without a kernel.
        ("torchs", ["sum"], "torch-fallback"),
        ("nothing", ["sum"], "no-kernel-launched"),
    ],
)
def test_glue_that_is_declared_is_allowed_on_what_kernels_made(
    tmp_path: Path, entry: str, allow: list[str], class_: str | None
) -> None:
    root = tmp_path / "workspace"
    (root / "kernels/double").mkdir(parents=True)
    (root / "kernels/double/reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "kernels/double/reference.py", "name": "loss", "init": {}, "root": str(root)}
    op = declaration(torch=None, reference=reference, kwargs={}, seeds=1, allow=allow, edges={"large": "exp overflows"})
    judged = check(tmp_path, SUM, op, entry=entry)
    evidence = judged["documents"]["evidence"]
    assert judged["class"] == class_, evidence["failure"]
    if class_ is None:
        assert judged["documents"]["verdict"]["allowed"] == ["sum"]
        assert "torch may compute sum for it; it computed sum" in evidence["notes"]


def test_an_empty_input_whose_result_is_a_constant_needs_no_launch(tmp_path: Path) -> None:
    kernel = SUM.replace("return rows(input).sum()\n\n\ndef doubled", "return rows(input)\n\n\ndef doubled")
    op = declaration(torch="torch.sum", kwargs={"dim": 1}, seeds=1, sizes={}, check_sizes={"small": {"M": 8, "N": 16}})
    op["inputs"][0]["shape"] = ["N", "M"]
    judged = check(tmp_path, kernel, op, entry="total", call="entry(input)")
    evidence = judged["documents"]["evidence"]
    assert judged["outcome"] == "passed", evidence["failure"]
    empty = next(one for one in evidence["cases"] if one["name"] == "edge/empty[M]/float32")
    assert (empty["verdict"], empty["launches"], empty["total"] > 0) == ("passed", 0, True)


def reference_of(*outputs: torch.Tensor) -> oracle.Reference:
    return oracle.Reference({str(at): value for at, value in enumerate(outputs)}, None, len(outputs) > 1)


def test_what_nothing_comes_to_is_told_from_what_an_input_decides() -> None:
    empty, full = torch.empty(0, 3), torch.ones(2, 3)
    nan, zeros, ramp = torch.full((3,), float("nan")), torch.zeros(3), torch.arange(3.0)
    case = cases.Case("small/float32/0", "declared", "float32", {})
    assert origin.needs_no_launch(case, {"a": empty}, reference_of(nan))
    assert origin.needs_no_launch(case, {"a": empty, "b": full}, reference_of(zeros, empty))
    assert not origin.needs_no_launch(case, {"a": full}, reference_of(nan))
    assert not origin.needs_no_launch(case, {"a": empty, "b": full}, reference_of(ramp))
    assert origin.needs_no_launch(case, {"a": empty, "b": ramp}, reference_of(ramp))
    assert not origin.needs_no_launch(case, {"a": empty, "b": ramp}, reference_of(ramp + 1))
    assert not origin.needs_no_launch(case, {"a": empty, "b": ramp.double()}, reference_of(ramp))


def test_an_op_that_consists_of_what_is_declared_keeps_it_for_itself() -> None:
    ones = torch.ones(3)
    assert watch.own_operations(lambda: ones.sum(), frozenset({"sum"})) == {"sum"}
    assert watch.own_operations(lambda: ones.exp().sum(), frozenset({"sum"})) == frozenset()


def test_a_number_that_an_op_reads_may_be_read_by_wrappers_too() -> None:
    lengths = torch.tensor([2, 1])
    call = lambda: torch.cat([torch.ones(4)[: int(one)] for one in lengths])  # noqa: E731
    assert watch.own_operations(call) == {"cat", "ones"}


def test_the_good_kernel_is_not_said_to_be_let_off(tmp_path: Path) -> None:
    notes = check(tmp_path, GOOD)["documents"]["evidence"]["notes"]
    told = ("budget", "tried at no other value", "edges not asked for: kwargs")
    assert all(any(words in note for words in told) for note in notes), notes
