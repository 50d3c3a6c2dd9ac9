"""Kernels that are wrong where an integer is a mark, where two numbers meet, where all that is summed up is far below zero, and where a class writes over what it holds. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, tensor, verdict

REFERENCES = """
import torch


def pooled(x, tokens, pad=None, skip=None):
    on = torch.ones_like(tokens, dtype=torch.bool)
    if pad is not None:
        on = on & (tokens != pad)
    if skip is not None:
        on = on & (torch.arange(tokens.shape[0], device=x.device) != skip)
    return (x * on.to(x.dtype)[:, None]).sum(0)


def averaged(x, y, step=40, start=20):
    return y.clone() if step <= start else torch.lerp(x, y, 0.25)


def masked(x, words):
    lanes = torch.arange(32, device=x.device)
    bits = ((words[:, None] >> lanes) & 1).bool().reshape(-1)[: x.shape[0]]
    return torch.where(bits, x, -1.0)


def stopped(length, least):
    return length >= least


def attended(q, k):
    return torch.softmax(q @ k.t(), -1)


class Scaled(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((dim,), 2.0))
        self.register_buffer("seen", torch.zeros(dim))

    def forward(self, x):
        if self.training:
            self.seen.add_(1.0)
        return x * self.weight
"""

POOLED = """
@triton.jit
def kernel(x_ptr, tokens_ptr, out_ptr, S, D, xs, xd, pad, skip, HAS_PAD: tl.constexpr, HAS_SKIP: tl.constexpr):
    column = tl.program_id(0)
    total = 0.0
    for s in range(S):
        on = 1.0
        if HAS_PAD:
            on = tl.where(tl.load(tokens_ptr + s) == pad, 0.0, on)
        if HAS_SKIP:
            on = tl.where(s == skip, 0.0, on)
        total += tl.load(x_ptr + s * xs + column * xd) * on
    tl.store(out_ptr + column, total)


def wrapper(x, tokens, pad=None, skip=None):
    tokens = tokens.contiguous()
    out = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device)
    if out.numel():
        has_pad, has_skip = pad is not None, skip is not None
        kernel[(x.shape[1],)](
            x, tokens, out, *x.shape, *x.stride(), pad or 0, skip or 0, HAS_PAD=has_pad, HAS_SKIP=has_skip
        )
    return out
"""

ELEMENTWISE = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < n, other=0), tl.load(y_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, {value}, mask=at < n)


def wrapper({arguments}):
    {first}, {second} = {first}.contiguous(), {second}.contiguous()
    out = torch.empty({first}.shape, dtype={dtype}, device={first}.device)
    if {condition}:
        return {second}.clone()
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)]({first}, {second}, out, out.numel(), BLOCK=64)
    return out
"""

AVERAGED = ELEMENTWISE.format(
    value="x + 0.25 * (y - x)",
    arguments="x, y, step=40, start=20",
    first="x",
    second="y",
    dtype="x.dtype",
    condition="step <= start",
)

STOPPED = ELEMENTWISE.format(
    value="(x >= y).to(tl.int1)",
    arguments="length, least",
    first="length",
    second="least",
    dtype="torch.bool",
    condition="False",
)

MASKED = """
@triton.jit
def kernel(x_ptr, words_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(words_ptr + at // 32, mask=at < n, other=0)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    is_on = ((word >> (at % 32)) & 1) != 0
    tl.store(out_ptr + at, tl.where(is_on, x, -1.0), mask=at < n)


def wrapper(x, words):
    x, words = x.contiguous(), words.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 64),)](x, words, out, out.numel(), BLOCK=64)
    return out
"""

ATTENDED = """
@triton.jit
def kernel(q_ptr, k_ptr, out_ptr, N, D, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    score = tl.zeros((BLOCK,), tl.float32)
    for d in range(D):
        score += tl.load(q_ptr + row * D + d) * tl.load(k_ptr + at * D + d, mask=at < N, other=0.0)
    score = tl.where(at < N, score, float("-inf"))
    is_nan = tl.sum(tl.where(at < N, (score != score).to(tl.int32), 0)) > 0
    top = tl.where(is_nan, float("nan"), tl.max(score))
    part = tl.exp(score - top)
    tl.store(out_ptr + row * N + at, part / tl.sum(part), mask=at < N)


def wrapper(q, k):
    q, k = q.contiguous(), k.contiguous()
    out = torch.empty((q.shape[0], k.shape[0]), dtype=q.dtype, device=q.device)
    if out.numel():
        kernel[(q.shape[0],)](q, k, out, k.shape[0], q.shape[1], BLOCK=triton.next_power_of_2(k.shape[0]))
    return out
"""

SCALED = """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, w = tl.load(x_ptr + at, mask=at < n, other=0.0), tl.load(w_ptr + at % N, mask=at < n, other=0.0)
    tl.store(out_ptr + at, x * w, mask=at < n)


@triton.jit
def count(seen_ptr, w_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(seen_ptr + at, tl.load(seen_ptr + at, mask=at < N) + 1.0, mask=at < N)


class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((dim,), 2.0))
        self.register_buffer("seen", torch.zeros(dim))

    def forward(self, x):
        x, N = x.contiguous(), self.weight.shape[0]
        out = torch.empty_like(x)
        if self.training:
            count[(1,)](self.seen, self.weight, N, BLOCK=triton.next_power_of_2(N))
        if out.numel():
            kernel[(triton.cdiv(out.numel(), 64),)](x, self.weight, out, out.numel(), N, BLOCK=64)
        return out
"""

WHOLE = {"kind": "randint"}

INPUTS: dict[str, tuple[list[dict[str, Any]], dict[str, int]]] = {
    "pooled": (
        [tensor("x", ["S", "D"]), tensor("tokens", ["S"], dtype="int64", init={**WHOLE, "low": 0, "high": 50})],
        {"S": 12, "D": 5},
    ),
    "averaged": ([tensor("x", ["N"]), tensor("y", ["N"])], {"N": 24}),
    "masked": (
        [
            tensor("x", ["N"]),
            tensor("words", ["(N+31)//32"], dtype="int32", init={**WHOLE, "low": -(2**31), "high": 2**31 - 1}),
        ],
        {"N": 150},
    ),
    "stopped": (
        [
            tensor("length", ["B"], dtype="int32", init={**WHOLE, "low": 0, "high": 4096}),
            tensor("least", ["B"], dtype="int32", init={**WHOLE, "low": 1, "high": 512}),
        ],
        {"B": 40},
    ),
    "attended": ([tensor("q", ["M", "D"]), tensor("k", ["N", "D"])], {"M": 6, "N": 12, "D": 8}),
    "Scaled": ([tensor("x", ["M", "N"])], {"M": 7, "N": 24}),
}

KERNELS = {
    "pooled": POOLED,
    "averaged": AVERAGED,
    "masked": MASKED,
    "stopped": STOPPED,
    "attended": ATTENDED,
    "Scaled": SCALED,
}

KWARGS: dict[str, dict[str, Any]] = {
    "pooled": {"pad": None, "skip": None},
    "averaged": {"step": 40, "start": 20},
    "attended": {},
}


def op_of(folder: Path, name: str) -> dict[str, Any]:
    """Returns the op of the reference `name`; all of them are written into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reference.py").write_text(REFERENCES, encoding="utf-8")
    init = {"dim": "N"} if name == "Scaled" else {}
    reference = {"file": "reference.py", "name": name, "init": init, "root": str(folder)}
    inputs, binding = INPUTS[name]
    more = {"tolerances": {"float32": [1e-4, 1e-4]}} if name == "attended" else {}
    return declared("", inputs, binding, torch=None, reference=reference, kwargs=KWARGS.get(name, {}), seeds=1, **more)


@pytest.mark.parametrize("name", KERNELS)
def test_honest_kernels_pass(tmp_path: Path, name: str) -> None:
    require_passed(tmp_path / "check", op_of(tmp_path, name), KERNELS[name])


FAULTS = {
    "a mark that is zero is none": ("pooled", "has_pad, has_skip = pad is not None", "has_pad, has_skip = bool(pad)"),
    "a place that is zero is none": ("pooled", "skip is not None\n", "bool(skip)\n"),
    "the place after it": ("pooled", "s == skip", "s == skip + 1"),
    "before and not at it": ("averaged", "step <= start", "step < start"),
    "at the next one, too": ("averaged", "step <= start", "step <= start + 1"),
    "nothing at zero": ("averaged", "step <= start", "0 < step <= start"),
    "a word of no bits is none": ("masked", "is_on = ", "is_on = (word == 0) | "),
    "beyond and not at it": ("stopped", "x >= y", "x > y"),
    "the largest begins with zero": ("attended", "tl.max(score))", "tl.maximum(tl.max(score), 0.0))"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(tmp_path: Path, fault: str) -> None:
    name, written, instead = FAULTS[fault]
    kernel = KERNELS[name]
    assert written in kernel
    class_, said = verdict(tmp_path / "check", op_of(tmp_path, name), kernel.replace(written, instead))
    assert class_ in ("mismatch", "nan"), (class_, said)


OVERWRITTEN = {
    "a parameter": (
        "    tl.store(seen_ptr",
        "    tl.store(w_ptr + at, tl.load(w_ptr + at, mask=at < N) * 0.5 + 1.0, mask=at < N)\n    tl.store(seen_ptr",
        None,
    ),
    "a parameter that is other than two": (
        "    tl.store(seen_ptr",
        "    tl.store(w_ptr + at, tl.load(w_ptr + at, mask=at < N) * 0.5, mask=at < N)\n    tl.store(seen_ptr",
        "`weight` of the kernel's class is changed, which the reference leaves as it is",
    ),
    "a buffer in evaluation": (
        "        if self.training:\n",
        "        if True:\n",
        "`seen` of the kernel's class is changed, which the reference leaves as it is",
    ),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_what_a_class_holds_and_its_reference_leaves_alone_stays(tmp_path: Path, name: str) -> None:
    written, instead, said = OVERWRITTEN[name]
    assert written in SCALED
    documents = check(tmp_path / "check", op_of(tmp_path, "Scaled"), SCALED.replace(written, instead))
    failure = documents["evidence"]["failure"]
    if said is None:
        # As the constructor makes it no bit changes; with drawn weights it does.
        assert failure["case"].startswith("edge/weights"), failure
    else:
        assert (documents["verdict"]["class"], failure["message"]) == ("mutated-input", said)
