"""Classes that return what they hold: a buffer, a parameter, a table."""

from __future__ import annotations

import functools
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import check, declared, require_passed, tensor, verdict

from t2t_harness.measuring import reference_call, timing
from t2t_harness.op.module_kept import Kept
from t2t_harness.phases import bench, sample

MODULES = Path(__file__).resolve().parents[2] / "gpu_kernels" / "modules"
"""A reference and kernels in classes, which are tried on a device, too."""

SUMS = (MODULES / "sums.py").read_text(encoding="utf-8").replace("class Sums(", "class wrapper(")

TABLE = """
import torch

class Table(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("table", torch.arange(dim).float())

    def forward(self, x):
        return x * self.table, self.table
"""

SCALED = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, table_ptr, out_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=0.0)
    tl.store(out_ptr + row * N + cols, x * tl.load(table_ptr + cols, mask=cols < N, other=0.0), mask=cols < N)

class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("table", torch.arange(dim).float())

    def forward(self, x):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if out.numel():
            kernel[(M,)](x, self.table, out, N, *x.stride(), BLOCK=triton.next_power_of_2(N))
        return out, self.table
"""


def of_class(folder: Path, text: str, name: str, **more: Any) -> dict[str, Any]:
    """Returns the op of a class of the reference `text`, which is written into `folder`."""
    (folder / "reference.py").write_text(text, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {"dim": "N"}, "root": str(folder)}
    return declared("", [tensor("x", ["M", "N"])], {"M": 7, "N": 24}, torch=None, reference=reference, **more)


def test_a_buffer_and_a_parameter_may_be_results_as_torchs_are(tmp_path: Path) -> None:
    op = of_class(tmp_path, (MODULES / "reference.py").read_text(encoding="utf-8"), "Sums")
    require_passed(tmp_path / "right", op, SUMS)
    other = SUMS.replace("torch.randn(dim)", "torch.ones(dim)")
    assert verdict(tmp_path / "other", op, other)[0] == "mismatch"


def test_a_parameter_in_the_place_of_a_tensor_is_another_type(tmp_path: Path) -> None:
    op = of_class(tmp_path, TABLE, "Table")
    wrapped = SCALED.replace("return out, self.table", "return out, torch.nn.Parameter(self.table)")
    require_passed(tmp_path / "own", op, wrapped)
    wrapped = SCALED.replace("return out, self.table", "return torch.nn.Parameter(out), self.table")
    assert verdict(tmp_path / "new", op, wrapped)[0] == "type"


def test_a_table_beside_an_empty_result_needs_no_launch(tmp_path: Path) -> None:
    op = of_class(tmp_path, TABLE, "Table")
    require_passed(tmp_path / "right", op, SCALED)
    rows = {row["name"]: row["verdict"] for row in check(tmp_path / "again", op, SCALED)["evidence"]["cases"]}
    assert rows["edge/empty/float32"] == "passed"


class Appending(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(0))
        self.register_buffer("table", torch.ones(1 << 12))
        self.seen: torch.Tensor
        self.table: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = torch.cat([self.seen, x.sum()[None]])
        return self.seen


def test_both_sides_of_a_bench_find_what_they_kept_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def call_of(function: Any, *_: Any) -> Any:
        function(torch.ones(3))
        return functools.partial(function, torch.ones(3))

    monkeypatch.setattr(timing, "function_of", lambda *_: Appending())
    monkeypatch.setattr(timing, "call_of", call_of)
    nothing: Any = {}
    kernel = Appending()
    before = Kept.of(kernel)
    kernel(torch.ones(3))
    beside = reference_call.made(nothing, nothing, {})
    assert beside.returns_own and list(beside.kept.values) == ["seen"]
    buffers = timing.Buffers(
        {"mutates": [], "overwrites": [], "inputs": []}, types.SimpleNamespace(dtype="float32"), {}, "cpu"
    )
    bench.undo(buffers, kernel, before, beside)
    for _ in range(3):
        buffers.freshen()
        assert [kernel(torch.ones(3)).tolist(), beside.call().tolist()] == [[3.0], [3.0]]
    # What no call changes is held once: only the changed buffer is kept for either side.
    assert [list(kept.values) for _, kept in buffers.undone] == [["seen"], ["seen"]]


def test_a_result_in_the_classs_own_memory_is_kept_as_it_was_returned() -> None:
    own = torch.zeros(3)
    buffers: Any = types.SimpleNamespace(
        memory=list, own=[own], ignored=(), mutated=[], given={}, state=timing.State, freshen=None
    )
    timed = sample.Timed(lambda: own.add_(1), buffers)
    for calls in range(1, sample.KEPT + 1):
        timed.is_timed = True
        timed()
        timed.settle()
        assert timed.kept[-1].result.tolist() == [calls] * 3
    assert timed.kept[0].result.tolist() == [1.0] * 3
