"""Kernels in which the code of one word, flag or infinite order has no loop over a long row. Each is rejected on the interpreter; the honest kernel passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import both_tests, check, declared, tensor

from t2t_harness.cases import literals, probe_arguments, probe_decisions

NORM = """
MOST = 1024


@triton.jit
def kernel(x_ptr, out_ptr, N, order, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if KIND == "root":
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, N, BLOCK):
            x = tl.load(x_ptr + row * N + start + at, mask=start + at < N, other=0.0)
            total += x * x
        out = tl.sqrt(tl.sum(total, axis=0))
    elif KIND == "max":
        most = tl.zeros((BLOCK,), tl.float32)
        lacks = tl.zeros((BLOCK,), tl.int32)
        for start in range(0, LONG, BLOCK):
            x = tl.load(x_ptr + row * N + start + at, mask=start + at < N, other=0.0)
            most = tl.maximum(most, tl.abs(x))
            lacks += (x != x).to(tl.int32)
        out = tl.where(tl.sum(lacks, axis=0) > 0, float("nan"), tl.max(most, axis=0))
    else:
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, N, BLOCK):
            x = tl.abs(tl.load(x_ptr + row * N + start + at, mask=start + at < N, other=0.0))
            total += tl.where(start + at < N, tl.exp(order * tl.log(x)), 0.0)
        out = tl.exp(tl.log(tl.sum(total, axis=0)) / order)
    tl.store(out_ptr + row, out)


def wrapper(x, ord=2, dim=None, keepdim=False):
    if dim not in (-1, x.dim() - 1) or ord <= 0:
        raise NotImplementedError("positive powers of rows")
    rows = x.contiguous()
    N = rows.shape[-1]
    if N == 0 and ord == float("inf"):
        raise ValueError("there is no element")
    out = torch.empty(rows.shape[:-1], dtype=x.dtype, device=x.device)
    kind = "root" if ord == 2 else "max" if ord == float("inf") else "power"
    if out.numel():
        block = min(triton.next_power_of_2(max(N, 1)), MOST)
        kernel[(out.numel(),)](rows, out, N, float(ord), KIND=kind, BLOCK=block)
    return out.unsqueeze(-1) if keepdim else out
""".replace("LONG", "N")

ROWS: dict[str, int] = {"M": 16, "N": 24}

OP = declared(
    "torch.linalg.vector_norm",
    [tensor("x", ["M", "N"])],
    ROWS,
    kwargs={"ord": 2, "dim": -1, "keepdim": False},
    sizes={"large": {"M": 64, "N": 8192}, "small": {"M": 16, "N": 24}},
)

HONEST = {"norm": (OP, NORM)}

FAULTS = {
    "the largest of one block": (
        "norm",
        "most = tl.zeros((BLOCK,), tl.float32)\n        lacks = tl.zeros((BLOCK,), tl.int32)\n        for start in range(0, N, BLOCK):",
        "most = tl.zeros((BLOCK,), tl.float32)\n        lacks = tl.zeros((BLOCK,), tl.int32)\n        for start in range(0, BLOCK, BLOCK):",
    ),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)


@pytest.mark.parametrize(
    ("kwargs", "labels"),
    [
        ({"ord": 2, "dim": -1}, ["ord=inf"]),
        ({"ord": float("inf"), "dim": -1}, ["ord=-inf"]),
        ({"dim": -1, "keepdim": True, "ord": 3}, ["ord=inf"]),
    ],
)
def test_decisions_are_tried_beyond_all_blocks(tmp_path: Path, kwargs: dict[str, Any], labels: list[str]) -> None:
    (tmp_path / "v1.py").write_text("MOST = 2048\nDEEP = 3000000\n" + NORM, encoding="utf-8")
    variant = {"name": "v1", "file": "v1.py", "entry": "wrapper", "lanes": ["interpreter"], "deterministic": True}
    request: Any = {"op": {**OP, "kwargs": kwargs}, "root": str(tmp_path), "lane": "interpreter", "variant": variant}
    others, read = list(probe_arguments.kwargs(request)), literals.read(request)
    found = list(probe_decisions.long(request, [], others, read))
    assert [case.name for case in found] == [f"edge/kwarg[{label},N=2049]/float32" for label in labels]
    assert all(case.has_own_budget and case.values == "ends" and case.binding["M"] == 1 for case in found)
    for more in ({"edges": {"kwargs": "none"}}, {"edges": {"blocks": "none"}}, {"random": {"kind": "judged"}}):
        assert not list(probe_decisions.long({**request, "op": {**request["op"], **more}}, [], others, read))


def test_which_case_shows_it(tmp_path: Path) -> None:
    _, written, instead = FAULTS["the largest of one block"]
    failure = check(tmp_path, OP, NORM.replace(written, instead))["evidence"]["failure"]
    assert failure["case"].startswith("edge/kwarg[ord=inf,N="), failure
