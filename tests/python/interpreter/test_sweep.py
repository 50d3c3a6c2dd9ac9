"""A sweep on the interpreter: every subject at every size, and a reason where one has no figure."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

from children import ask
from t2t_harness.phases import sweep

KERNEL = '''"""A product of two matrices, a program an element."""
import torch, triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["K"])
@triton.jit
def product_kernel(x_ptr, y_ptr, o_ptr, N, K, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * K + at, mask=at < K, other=0.0)
    y = tl.load(y_ptr + at * N + column, mask=at < K, other=0.0)
    tl.store(o_ptr + row * N + column, tl.sum(x * y))


def triton_op(input, other):
    (M, K), N = input.shape, other.shape[1]
    LIMIT
    out = torch.empty((M, N), device="cuda", dtype=input.dtype)
    product_kernel[(M, N)](input, other, out, N, K)
    return out
'''


def given(name: str) -> dict[str, Any]:
    """Returns the declaration of a square input."""
    init = {"kind": "normal", "mean": 0.0, "std": 1.0}
    return {
        "name": name,
        "shape": ["M", "M"],
        "dtype": None,
        "init": init,
        "requires_grad": False,
        "layout": "contiguous",
    }


@pytest.fixture
def request_of(tmp_path: Path) -> dict[str, Any]:
    """Returns the request of a sweep of three variants: one that is right, one that takes small sizes alone, one that cannot be loaded."""
    folder = tmp_path / "kernels" / "op"
    folder.mkdir(parents=True)
    (folder / "right.py").write_text(KERNEL.replace("LIMIT", "pass"))
    (folder / "small.py").write_text(KERNEL.replace("LIMIT", "assert M <= 4, 'too large'"))
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "scratch").mkdir()
    op = {
        "name": "op",
        "torch": "torch.matmul",
        "inputs": [given("input"), given("other")],
        "kwargs": {},
        "dtypes": ["float32"],
        "sizes": {"01": {"M": 8}, "00": {"M": 4}},
        "check_sizes": {},
        "seeds": 1,
        "tolerances": {},
        "precision": "ieee",
        "mutates": [],
        "overwrites": [],
        "backward": False,
        "broadcast": False,
        "deterministic": True,
        "cases": None,
    }
    names = ("right", "small", "broken")
    variants = [{"name": name, "file": f"kernels/op/{name}.py", "entry": "triton_op"} for name in names]
    return {
        "op": op,
        "variants": variants,
        "baselines": ["torch"],
        "root": str(tmp_path),
        "scratch": str(tmp_path / "scratch"),
        "lane": "interpreter",
        "model": "interpreter",
        "devices": [],
        "warm": [],
        "protocol": {"runs": 1, "warmup_ms": 0, "rep_ms": 1},
    }


def test_every_subject_has_a_time_at_every_size_or_a_reason(request_of: dict[str, Any]) -> None:
    reply = ask("sweep.sweep", request_of, interpreter=True)
    assert reply["outcome"] == "passed", reply["documents"]
    document = reply["documents"]["sweep"]
    assert document["subjects"] == ["torch", "right", "small", "broken"]
    assert document["unit"] == "ms in the interpreter"
    assert [point["binding"] for point in document["points"]] == [{"M": 4}, {"M": 8}]
    assert [point["flop"] for point in document["points"]] == [2 * 4**3, 2 * 8**3]
    for point in document["points"]:
        assert point["bytes"] == 3 * 4 * point["binding"]["M"] ** 2
        assert point["rate"]["right"] == point["ms"]["right"]["median"]
    assert document["points"][0]["rate"]["small"] > 0
    assert document["points"][1]["rate"]["small"] is None
    reasons = document["reasons"]
    assert reasons["small at M 8"] == "AssertionError: too large"
    assert "nothing_of_that_name" in reasons["broken"]


def test_a_rate_is_of_the_median() -> None:
    times = {"v": {"median": 2.0, "p20": 1.0, "p80": 3.0}, "w": None}
    point = {"bytes": 4_000_000, "flop": 6_000_000_000, "ms": times}
    assert sweep.rated(point, "bytes")["rate"] == {"v": 2.0, "w": None}
    assert sweep.rated(point, "flop")["rate"] == {"v": 3.0, "w": None}
