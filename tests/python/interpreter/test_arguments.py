"""Arguments that torch and a wrapper both have, at values that ops.yaml does not say: of builtins, together with others, beyond lengths, of what counts for nothing. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks import both_tests, check, declared, tensor

CONV = """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, C, L, O, T, K, step, before, gap, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for c in range(C):
        for k in range(K):
            place = at * step + k * gap - before
            is_in = (place >= 0) & (place < L) & (at < T)
            x = tl.load(x_ptr + (row // O * C + c) * L + place, mask=is_in, other=0.0)
            total += x * tl.load(w_ptr + (row % O * C + c) * K + k)
    tl.store(out_ptr + row * T + at, total, mask=at < T)


def wrapper(input, weight, stride=1, padding=0, dilation=1):
    x, w = input.contiguous(), weight.contiguous()
    (B, C, L), (O, _, K) = x.shape, w.shape
    covered = dilation * (K - 1)
    if padding == "same" and stride != 1:
        raise ValueError("the same length has steps of 1")
    both = covered if padding == "same" else 0 if padding == "valid" else 2 * padding
    T = (L + both - covered - 1) // stride + 1
    out = torch.empty(B, O, T, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(B * O,)](x, w, out, C, L, O, T, K, stride, both // 2, dilation, BLOCK=triton.next_power_of_2(T))
    return out
"""

ROLL = """
@triton.jit
def kernel(x_ptr, out_ptr, N, shift, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + (at - shift + N) % N, mask=at < N)
    tl.store(out_ptr + row * N + at, x, mask=at < N)


def wrapper(input, shifts, dims=None):
    if not isinstance(shifts, int) or not isinstance(dims, int):
        raise NotImplementedError("one dim")
    x = input.movedim(dims, -1).contiguous()
    out = torch.empty_like(x)
    N = x.shape[-1]
    if out.numel():
        kernel[(x.numel() // N,)](x, out, N, shifts % N, BLOCK=triton.next_power_of_2(N))
    return out.movedim(-1, dims)
"""

COUNT = """
@triton.jit
def kernel(x_ptr, out_ptr, N, outer, inner, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * outer + at * inner, mask=at < N, other=0.0)
    tl.store(out_ptr + row, tl.sum((x != 0).to(tl.int64), axis=0))


def wrapper(input, dim=None):
    if input.dim() != 2:
        raise NotImplementedError("two dims")
    x = input.contiguous()
    whole, (M, N) = x.numel(), x.shape
    shape, length, steps = ([], whole, (0, 1)) if dim is None else ([M], N, (N, 1)) if dim % 2 else ([N], M, (1, N))
    out = torch.empty(shape, dtype=torch.int64, device=x.device)
    if out.numel():
        kernel[(out.numel(),)](x, out, length, *steps, BLOCK=triton.next_power_of_2(max(length, 1)))
    return out
"""

CLAMP = """
@triton.jit
def kernel(x_ptr, out_ptr, n, low, high, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    x = tl.where(x < low, low, x)
    x = tl.where(x > high, high, x)
    tl.store(out_ptr + at, x, mask=at < n)


def wrapper(input, min, max):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), float(min), float(max), BLOCK=128)
    return out
"""

LOSS = """
@triton.jit
def kernel(x_ptr, target_ptr, loss_ptr, kept_ptr, N, ignored, smoothing, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    target = tl.load(target_ptr + row)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=-float("inf"))
    top = tl.max(x, axis=0)
    logs = x - top - tl.log(tl.sum(tl.exp(x - top), axis=0))
    even = tl.sum(tl.where(at < N, logs, 0.0), axis=0) / N
    own = tl.sum(tl.where(at == target, logs, 0.0), axis=0)
    loss = -(1.0 - smoothing) * own - tl.where(smoothing > 0, smoothing * even, 0.0)
    tl.store(loss_ptr + row, tl.where(target == ignored, 0.0, loss))
    tl.store(kept_ptr + row, tl.where(target == ignored, 0.0, 1.0))


@triton.jit
def folded(loss_ptr, kept_ptr, out_ptr, M, IS_MEAN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(loss_ptr + at, mask=at < M, other=0.0), axis=0)
    kept = tl.sum(tl.load(kept_ptr + at, mask=at < M, other=0.0), axis=0)
    if IS_MEAN:
        total = total / kept
    tl.store(out_ptr, total)


def wrapper(input, target, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    x, labels = input.contiguous(), target.contiguous()
    M, N = x.shape
    loss, kept = torch.empty(M, device=x.device), torch.empty(M, device=x.device)
    out = torch.empty((), device=x.device)
    smoothing = label_smoothing
    if M:
        kernel[(M,)](x, labels, loss, kept, N, ignore_index, float(smoothing), BLOCK=triton.next_power_of_2(N))
    if reduction == "none":
        return loss
    folded[(1,)](loss, kept, out, M, reduction == "mean", BLOCK=triton.next_power_of_2(max(M, 1)))
    return out
"""

SCALED = """
@triton.jit
def kernel(x_ptr, out_ptr, L, T, step, shift, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    place = tl.maximum((at + shift) * step - shift, 0.0)
    low = tl.minimum(place.to(tl.int32), L - 1)
    high = tl.minimum(low + 1, L - 1)
    part = place - low
    a = tl.load(x_ptr + row * L + low, mask=at < T)
    b = tl.load(x_ptr + row * L + high, mask=at < T)
    tl.store(out_ptr + row * T + at, a * (1.0 - part) + b * part, mask=at < T)


def wrapper(input, scale_factor=None, mode="nearest", align_corners=None):
    assert mode == "linear" and isinstance(scale_factor, float)
    x = input.contiguous()
    L = x.shape[-1]
    T = int(L * scale_factor)
    out = torch.empty(*x.shape[:-1], T, dtype=x.dtype, device=x.device)
    step, shift = 1.0 / scale_factor, 0.5
    if align_corners:
        step, shift = (L - 1) / max(T - 1, 1), 0.0
    if out.numel():
        kernel[(out.numel() // T,)](x, out, L, T, step, shift, BLOCK=triton.next_power_of_2(T))
    return out
"""

TOPK = """
@triton.jit
def kernel(x_ptr, values_ptr, indices_ptr, N, k, SIGN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    key = tl.where(x != x, float("inf"), x * SIGN)
    is_left = at < N
    for turn in range(k):
        top = tl.max(tl.where(is_left, key, -float("inf")), axis=0)
        is_nan = is_left & (x != x)
        first = tl.min(tl.where(is_nan, at, BLOCK), axis=0)
        place = tl.min(tl.where(is_left & (key == top), at, BLOCK), axis=0)
        place = tl.where((first < BLOCK) & (SIGN > 0), first, place)
        tl.store(values_ptr + row * k + turn, tl.load(x_ptr + row * N + place))
        tl.store(indices_ptr + row * k + turn, place.to(tl.int64))
        is_left = is_left & (at != place)


def wrapper(input, k, dim=-1, sorted=True):
    x = input.movedim(dim, -1).contiguous()
    N = x.shape[-1]
    values = torch.empty(*x.shape[:-1], k, dtype=x.dtype, device=x.device)
    indices = torch.empty(values.shape, dtype=torch.int64, device=x.device)
    if values.numel():
        kernel[(x.numel() // N,)](x, values, indices, N, k, SIGN=1, BLOCK=triton.next_power_of_2(N))
    return values.movedim(-1, dim), indices.movedim(-1, dim)
"""

CHOSEN = """
@triton.jit
def kernel(x_ptr, m_ptr, out_ptr, n, value, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total, kept = tl.full((), 0.0, tl.float32), tl.full((), 0.0, tl.float32)
    for start in range(0, n, BLOCK):
        is_in = start + at < n
        m = tl.load(m_ptr + start + at, mask=is_in, other=0).to(tl.int32)
        x = tl.load(x_ptr + start + at, mask=is_in & (m != 0), other=0.0)
        total += tl.sum(x, axis=0)
        kept += tl.sum(m, axis=0).to(tl.float32)
    for start in range(0, n, BLOCK):
        is_in = start + at < n
        m = tl.load(m_ptr + start + at, mask=is_in, other=0)
        x = tl.load(x_ptr + start + at, mask=is_in, other=0.0)
        tl.store(out_ptr + start + at, tl.where(m != 0, value, x), mask=is_in)


def wrapper(input, mask, value):
    x, m = torch.broadcast_tensors(input, mask)
    x, m = x.contiguous(), m.contiguous().view(torch.uint8)
    out = torch.empty_like(x)
    if out.numel():
        kernel[(1,)](x, m, out, x.numel(), float(value), BLOCK=64)
    return out
"""

SIZES = {"M": 8, "N": 16}
ROWS: list[int | str] = ["M", "N"]
ONE = [tensor("input", ROWS)]
LABELS = tensor("target", ["M"], dtype="int64", init={"kind": "randint", "low": 0, "high": "N"})
MASK = tensor("mask", ROWS, dtype="bool", init={"kind": "mask", "p": 0.5})
ALONG = [
    {"name": "values", "compare": "close", "of": None, "dim": None, "tolerances": {}},
    {"name": "indices", "compare": "indices", "of": "input", "dim": -1, "tolerances": {}},
]


def conv(**kwargs: Any) -> dict[str, Any]:
    inputs = [tensor("input", ["B", "C", "L"]), tensor("weight", ["O", "C", "K"])]
    small, large = {"B": 2, "C": 3, "L": 16, "O": 4, "K": 4}, {"B": 3, "C": 3, "L": 40, "O": 5, "K": 4}
    sizes = {"sizes": {"small": small, "large": large}, "check_sizes": {"small": small}}
    return declared("torch.nn.functional.conv1d", inputs, small, seeds=1, kwargs=kwargs, **sizes)


def op(name: str, inputs: list[dict[str, Any]] | None = None, **kwargs: Any) -> dict[str, Any]:
    return declared(name, inputs or ONE, SIZES, seeds=1, kwargs=kwargs)


HONEST = {
    "conv": (conv(padding=1), CONV),
    "same": (conv(padding="same"), CONV),
    "roll": (op("torch.roll", shifts=3, dims=-1), ROLL),
    "count": (op("torch.count_nonzero"), COUNT),
    "clamp": (op("torch.clamp", min=-0.5, max=0.5), CLAMP),
    "loss": (op("torch.nn.functional.cross_entropy", [*ONE, LABELS], ignore_index=1), LOSS),
    "scaled": (
        declared(
            "torch.nn.functional.interpolate",
            [tensor("input", ["B", "C", "L"])],
            {"B": 2, "C": 3, "L": 9},
            seeds=1,
            kwargs={"scale_factor": 2.0, "mode": "linear"},
        ),
        SCALED,
    ),
    "topk": ({**op("torch.topk", k=4), "outputs": ALONG}, TOPK),
    "topk along": ({**op("torch.topk", k=4, dim=1), "outputs": ALONG}, TOPK),
    "filled": (op("torch.masked_fill", [*ONE, MASK], value=2.5), CHOSEN),
}

FAULTS = {
    "steps are forgotten": ("conv", "covered = dil", "stride = 1; covered = dil"),
    "gaps are forgotten": ("conv", "covered = dil", "dilation = 1; covered = dil"),
    "the same length begins elsewhere with gaps": (
        "conv",
        "both // 2, dil",
        "(K - 1) // 2 * dilation if padding == 'same' else both // 2, dil",
    ),
    "the dim is taken and forgotten": ("roll", "input.movedim(dims, -1)", "input.movedim(-1, dims := -1)"),
    "a shift is less than the length": ("roll", "shifts % N, BLOCK", "shifts, BLOCK"),
    "a dim that is not declared is forgotten": ("count", "    x = input", "    dim = None; x = input"),
    "the lower bound goes first": (
        "clamp",
        "    x = tl.where(x < low, low, x)\n    x = tl.where(x > high, high, x)",
        "    x = tl.where(x > high, high, x)\n    x = tl.where(x < low, low, x)",
    ),
    "what is not summed up is not smoothed": (
        "loss",
        "smoothing = label_smoothing",
        "smoothing = label_smoothing * (reduction != 'none')",
    ),
    "a mean of nothing is zero": ("loss", "total = total / kept", "total = tl.where(kept > 0, total / kept, M * 0.0)"),
    "a factor is a ratio of lengths": ("scaled", "1.0 / scale_factor", "L / T"),
    "the dim of a search is the last": ("topk", "input.movedim(dim, -1)", "input.movedim(-1, dim := -1)"),
    "the declared dim of a search is written in": (
        "topk along",
        "input.movedim(dim, -1)",
        "input.movedim(-1, dim := -1)",
    ),
    "what is false throughout has no sum": (
        "filled",
        "tl.where(m != 0, value, x)",
        "tl.where(m != 0, value, x * (kept / kept))",
    ),
}
"""What is wrong → the kernel, what is written there, and what is written instead."""


test_the_honest_kernel_passes, test_the_wrong_one_is_rejected = both_tests(HONEST, FAULTS)


def test_the_evidence_says_which_arguments_were_tried_at_no_other_value(tmp_path: Path) -> None:
    notes = check(tmp_path, *HONEST["topk"])["evidence"]["notes"]
    (said,) = [note for note in notes if note.startswith("arguments tried at no other value: ")]
    assert "largest (the wrapper does not take it)" in said
    assert "sorted (without it torch leaves an order open)" in said
    assert "dim" not in said, "it is tried"
