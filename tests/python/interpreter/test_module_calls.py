"""What a class shows in a second call, and with other arguments of its constructor. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, tensor, verdict

MODULES = Path(__file__).resolve().parents[2] / "gpu_kernels" / "modules"
"""A reference and a kernel in classes, which are tried on a device, too."""

REFERENCES = (
    (MODULES / "reference.py").read_text(encoding="utf-8")
    + """

class Moded(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return x - x.mean(0) + self.shift if self.training else x + 2.0 * self.shift


class Tracked(torch.nn.Module):
    def __init__(self, dim, share=0.25, doubled=False):
        super().__init__()
        self.share, self.doubled = share, doubled
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 1.0 if self.share is None else self.share)
        out = x - self.mean
        return 2.0 * out if self.doubled else out


class Evaluated(torch.nn.BatchNorm1d):
    def __init__(self, dim):
        super().__init__(dim)
        self.eval()
"""
)

RMS = (MODULES / "rms.py").read_text(encoding="utf-8").replace("class Rms(", "class wrapper(")

INIT = {"dim": "N", "eps": 1e-6, "centered": False, "negative_slope": 0.1}


def of_class(folder: Path, name: str, init: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Returns the op of a class among the references, which are written into `folder`."""
    (folder / "reference.py").write_text(REFERENCES, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": init, "root": str(folder)}
    return declared("", [tensor("x", ["M", "N"])], {"M": 7, "N": 24}, torch=None, reference=reference, **more)


@pytest.mark.parametrize(
    ("written", "instead", "case"),
    [
        ("self.calls += 1", "self.calls.fill_(1)", "edge/again/float32"),
        ("self.steps += 1", "self.steps = 1", "edge/again/float32"),
        ("self.eps, self.slope", "1e-6, self.slope", "edge/init[eps=0.01]/float32"),
        ("self.eps, self.slope", "self.eps, 0.1", "edge/init[negative_slope=0.25]/float32"),
        ("self.steps, self.centered", "self.steps, False", "edge/init[centered=True]/float32"),
        (
            "self.eps, self.slope",
            "self.eps, self.slope if self.eps < 1e-3 else 0.1",
            "edge/init[eps=0.01,negative_slope=0.25]/float32",
        ),
    ],
    ids=["a counter that is one", "another one", "eps", "slope", "centered", "two"],
)
def test_what_is_right_once_or_for_one_argument_is_seen(tmp_path: Path, written: str, instead: str, case: str) -> None:
    op = of_class(tmp_path, "Rms", INIT)
    assert written in RMS
    documents = check(tmp_path, op, RMS.replace(written, instead))
    assert documents["evidence"]["failure"]["case"] == case


def test_a_class_that_takes_each_argument_and_counts_passes(tmp_path: Path) -> None:
    # At a measured size torch counts the calls, too.
    op = of_class(tmp_path, "Rms", INIT, measured={"large": {"M": 512, "N": 1024}})
    documents = check(tmp_path, op, RMS)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    tried = {row["name"] for row in documents["evidence"]["cases"] if row["name"].startswith("edge/init[")}
    assert {one.partition("[")[2].partition("=")[0] for one in tried} == {"eps", "centered", "negative_slope"}
    assert all(row["verdict"] == "passed" for row in documents["evidence"]["cases"] if row["name"] in tried)


def test_a_class_may_refuse_another_argument_in_any_way(tmp_path: Path) -> None:
    fixed = RMS.replace(
        "        super().__init__()\n", "        super().__init__()\n        {0.1: None}[negative_slope]\n"
    )
    documents = check(tmp_path, of_class(tmp_path, "Rms", INIT), fixed)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    rows = {row["name"]: row for row in documents["evidence"]["cases"]}
    assert rows["edge/init[negative_slope=0.25]/float32"]["verdict"] == "dropped"


def test_a_function_in_the_place_of_a_class_is_not_constructed(tmp_path: Path) -> None:
    plain = RMS[: RMS.index("class wrapper")] + (
        "def wrapper(x):\n"
        "    M, N = x.shape\n"
        "    out, weight = torch.empty((M, N), dtype=x.dtype, device=x.device), torch.ones(N, device=x.device)\n"
        "    if out.numel():\n"
        "        block = triton.next_power_of_2(N)\n"
        "        kernel[(M,)](x, weight, out, N, *x.stride(), 1e-6, 0.1, 1, False, BLOCK=block)\n"
        "    return out\n"
    )
    documents = check(
        tmp_path, of_class(tmp_path, "Rms", INIT, edges={"zeros": "no weight", "shapes": "no state"}), plain
    )
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    rows = [row for row in documents["evidence"]["cases"] if row["name"].startswith("edge/init[")]
    assert rows and all(row["reason"].startswith("the kernel's entry is no class") for row in rows)


NORMED = """
@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, m_ptr, v_ptr, out_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + at * sn, mask=at < N) - tl.load(m_ptr + at, mask=at < N)
    y = x * tl.rsqrt(tl.load(v_ptr + at, mask=at < N, other=1.0) + 1e-5)
    y = y * tl.load(w_ptr + at, mask=at < N) + tl.load(b_ptr + at, mask=at < N)
    tl.store(out_ptr + row * N + at, y, mask=at < N)


class wrapper(torch.nn.BatchNorm1d):
    def __init__(self, dim):
        super().__init__(dim)
        self.eval()

    def forward(self, x):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if out.numel():
            own = self.weight, self.bias, self.running_mean, self.running_var
            kernel[(M,)](x, *own, out, N, *x.stride(), BLOCK=triton.next_power_of_2(N))
        return out
"""


def test_what_changes_nothing_as_constructed_is_told_apart_by_other_weights(tmp_path: Path) -> None:
    op = of_class(tmp_path, "Evaluated", {"dim": "N"})
    require_passed(tmp_path / "honest", op, NORMED)
    written = "    y = x * tl.rsqrt(tl.load(v_ptr + at, mask=at < N, other=1.0) + 1e-5)\n"
    assert written in NORMED
    class_, message = verdict(tmp_path / "careless", op, NORMED.replace(written, "    y = x\n"))
    assert class_ == "mismatch", message


MODED = """
@triton.jit
def kernel(x_ptr, shift_ptr, out_ptr, M, N, sm, sn, TRAINING: tl.constexpr, BLOCK: tl.constexpr):
    col, rows = tl.program_id(0), tl.arange(0, BLOCK)
    x, shift = tl.load(x_ptr + rows * sm + col * sn, mask=rows < M, other=0.0), tl.load(shift_ptr + col)
    if TRAINING:
        x = x - tl.sum(x) / M
        shift = 0.5 * shift
    tl.store(out_ptr + rows * N + col, x + 2.0 * shift, mask=rows < M)


class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if out.numel():
            block = triton.next_power_of_2(M)
            kernel[(N,)](x, self.shift, out, M, N, *x.stride(), TRAINING=self.training, BLOCK=block)
        return out
"""


@pytest.mark.parametrize(
    ("written", "instead", "case"),
    [
        ("TRAINING=self.training", "TRAINING=True", "edge/evaluation/float32"),
        ("x + 2.0 * shift", "x + (2.0 if TRAINING else 1.0) * shift", "edge/evaluation[weights]/float32"),
    ],
    ids=["one mode", "half of the weight"],
)
def test_a_module_is_tried_in_evaluation(tmp_path: Path, written: str, instead: str, case: str) -> None:
    op = of_class(tmp_path, "Moded", {"dim": "N"})
    require_passed(tmp_path / "honest", op, MODED)
    assert written in MODED
    documents = check(tmp_path / "careless", op, MODED.replace(written, instead))
    assert documents["evidence"]["failure"]["case"] == case


def test_a_module_may_refuse_evaluation(tmp_path: Path) -> None:
    op = of_class(tmp_path, "Moded", {"dim": "N"})
    refusing = MODED.replace("        M, N = x.shape\n", "        assert self.training\n        M, N = x.shape\n")
    require_passed(tmp_path, op, refusing)


SCATTERED = """
@triton.jit
def kernel(slot_ptr, value_ptr, out_ptr, n, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    slot = tl.load(slot_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + slot, tl.load(value_ptr + at, mask=at < n), mask=at < n)


def wrapper(slots, values, size, block_size):
    out = torch.zeros(size, dtype=values.dtype, device=values.device)
    assert slots.unique().numel() == slots.numel(), "slots are distinct"
    if slots.numel():
        kernel[(triton.cdiv(slots.numel(), 64),)](slots.contiguous(), values.contiguous(), out, slots.numel(), size, 64)
    return out
"""


def test_no_number_is_put_among_distinct_integers(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(
        "import torch\n\n\ndef scattered(slots, values, size, block_size):\n"
        "    return torch.zeros(size, dtype=values.dtype, device=values.device).scatter(0, slots, values)\n",
        encoding="utf-8",
    )
    reference = {"file": "reference.py", "name": "scattered", "init": {}, "root": str(tmp_path)}
    slots = tensor("slots", ["n"], dtype="int64", init={"kind": "distinct", "low": 0, "high": 64})
    op = declared(
        "",
        [slots, tensor("values", ["n"])],
        {"n": 40},
        torch=None,
        reference=reference,
        kwargs={"size": 64, "block_size": 16},
        allow=["zeros", "unique_dim", "_unique2"],
        edges={"kwargs": "one size", "shapes": "as many slots as there are"},
    )
    require_passed(tmp_path, op, SCATTERED)


TRACKED = """
@triton.jit
def kernel(x_ptr, m_ptr, out_ptr, n, N, sm, sn, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at // N * sm + at % N * sn, mask=at < n, other=0.0)
    mean = tl.load(m_ptr + at % N, mask=at < n, other=0.0)
    tl.store(out_ptr + at, (x - mean) * factor, mask=at < n)


@triton.jit
def track(x_ptr, m_ptr, M, sm, sn, share, BLOCK: tl.constexpr):
    column, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at * sm + column * sn, mask=at < M, other=0.0)
    old = tl.load(m_ptr + column)
    tl.store(m_ptr + column, old + share * (tl.sum(x, 0) / M - old))


class wrapper(torch.nn.Module):
    def __init__(self, dim, share=0.25, doubled=False):
        super().__init__()
        self.share, self.doubled = share, doubled
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, x):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if not out.numel():
            return out
        if self.training:
            share = 1.0 if self.share is None else self.share
            track[(N,)](x, self.mean, M, *x.stride(), share, BLOCK=triton.next_power_of_2(M))
        factor = 2.0 if self.doubled else 1.0
        kernel[(triton.cdiv(M * N, 64),)](x, self.mean, out, M * N, N, *x.stride(), factor, BLOCK=64)
        return out
"""


@pytest.mark.parametrize(
    ("written", "instead", "case"),
    [
        (
            "1.0 if self.share is None else self.share",
            "0.25 if self.share is None else self.share",
            "edge/init[share=None]/float32",
        ),
        (
            "2.0 if self.doubled else 1.0",
            "2.0 if self.doubled and self.training else 1.0",
            "edge/init[doubled=True,evaluation]/float32",
        ),
    ],
    ids=["no number", "a flag in evaluation"],
)
def test_none_and_flags_in_evaluation_are_tried_of_a_constructor(
    tmp_path: Path, written: str, instead: str, case: str
) -> None:
    op = of_class(tmp_path, "Tracked", {"dim": "N"}, edges={"empty": "no mean", "shapes": "no mean of nothing"})
    require_passed(tmp_path / "right", op, TRACKED)
    assert written in TRACKED
    failure = check(tmp_path / "wrong", op, TRACKED.replace(written, instead))["evidence"]["failure"]
    assert failure["case"] == case
