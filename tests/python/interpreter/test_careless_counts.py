"""Kernels that are wrong for a count beyond their blocks, for an even count, at powers of two, and where a quotient is rounded before its rest is taken."""

from __future__ import annotations

from pathlib import Path

from checks import declared, require_passed, require_rejected, tensor

DIMS = {"M": 8, "N": 24}

WINDOW = """
@triton.jit
def kernel(x_ptr, out_ptr, L, OL, total, K, S, BLOCK: tl.constexpr, WINDOW: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, first = at // OL, at % OL * S
    inside = tl.arange(0, WINDOW)
    places = first[:, None] + inside[None, :]
    mask = (at < total)[:, None] & (inside < K)[None, :] & (places < L)
    x = tl.load(x_ptr + row[:, None] * L + places, mask=mask, other=float("-inf"))
    hidden = tl.max(((x != x) & mask).to(tl.int32), axis=1) > 0
    best = tl.where(hidden, float("nan"), tl.max(x, axis=1))
    tl.store(out_ptr + at, best, mask=at < total)


def wrapper(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if padding or dilation != 1 or ceil_mode or return_indices:
        raise NotImplementedError("windows without padding alone")
    x = input.contiguous()
    step = stride or kernel_size
    B, C, L = x.shape
    OL = (L - kernel_size) // step + 1
    if OL < 1:
        raise ValueError("the window is longer than the input")
    out = torch.empty((B, C, OL), device=x.device)
    if out.numel():
        block = triton.next_power_of_2(kernel_size)
        kernel[(triton.cdiv(out.numel(), 32),)](x, out, L, OL, out.numel(), kernel_size, step, BLOCK=32, WINDOW=block)
    return out
"""
"""The largest number of each window, which one block holds."""

PREFIX = """
@triton.jit
def kernel(x_ptr, out_ptr, N, before, BLOCK: tl.constexpr):
    row, first = tl.program_id(0), tl.program_id(1) * BLOCK
    at = first + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    end = tl.minimum(tl.maximum(first + BLOCK, before), N)
    for place in range(0, end):
        value = tl.load(x_ptr + row * N + place)
        total += tl.where((place <= at) | (place < before), value, 0.0)
    tl.store(out_ptr + row * N + at, total, mask=at < N)


def wrapper(input, before=4):
    x = input.contiguous()
    out = torch.empty_like(x)
    M, N = x.shape
    if out.numel():
        kernel[(M, triton.cdiv(N, 16))](x, out, N, before, BLOCK=16)
    return out
"""
"""Sums of all elements up to each one, and of the first ones in any case."""

REFERENCE = """
import torch


def summed(input, before=4):
    places = torch.arange(input.shape[1], device=input.device)
    seen = (places[None, :] <= places[:, None]) | (places[None, :] < before)
    return torch.where(seen[None], input[:, None, :], torch.zeros((), dtype=input.dtype)).sum(dim=-1)
"""

EXPONENT = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, part_ptr, power_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    plain = (x == x) & (tl.abs(x) != float("inf")) & (x != 0.0)
    safe = tl.where(plain, x, 1.0)
    power = libdevice.ilogb(safe) + 1
    tl.store(part_ptr + at, tl.where(plain, libdevice.ldexp(safe, -power), x), mask=at < n)
    tl.store(power_ptr + at, tl.where(plain, power, 0), mask=at < n)


def wrapper(input):
    x = input.contiguous()
    part, power = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int32, device=x.device)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 128),)](x, part, power, x.numel(), BLOCK=128)
    return part, power
"""
"""A number as a part of one and a power of two."""

REST = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, out_ptr, n, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    rest = libdevice.fmod(x, tl.zeros((BLOCK,), tl.float32) + y)
    rest = tl.where((rest != 0.0) & ((rest < 0.0) != (y < 0.0)), rest + y, rest)
    tl.store(out_ptr + at, rest, mask=at < n)


def wrapper(input, other):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), float(other), BLOCK=128)
    return out
"""
"""What is left of numbers that are divided by one."""

CLOSE = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, rtol, atol, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < n), tl.load(y_ptr + at, mask=at < n)
    gap = tl.abs(x - y)
    near = (x == y) | ((gap < float("inf")) & (gap <= atol + rtol * tl.abs(y)))
    tl.store(out_ptr + at, near, mask=at < n)


def wrapper(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    if equal_nan:
        raise NotImplementedError("NaN is not near NaN")
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty(x.shape, dtype=torch.bool, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), rtol, atol, BLOCK=128)
    return out
"""
"""Whether two numbers are near each other."""

ACROSS = """
@triton.jit
def kernel(x_ptr, out_ptr, C, P, total, size, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    channel, place, batch = at // P % C, at % P, at // (P * C)
    squares = tl.zeros((BLOCK,), tl.float32)
    for step in range(size):
        other = channel - size // 2 + step
        seen = mask & (other >= 0) & (other < C)
        x = tl.load(x_ptr + (batch * C + other) * P + place, mask=seen, other=0.0)
        squares += x * x
    x = tl.load(x_ptr + at, mask=mask)
    tl.store(out_ptr + at, x * tl.exp(-0.75 * tl.log(1.0 + alpha * squares / size)), mask=mask)


def wrapper(input, size, alpha=1e-4, beta=0.75, k=1.0):
    if beta != 0.75 or k != 1.0:
        raise NotImplementedError("one power alone")
    x = input.contiguous()
    out = torch.empty_like(x)
    C, P = x.shape[1], x[0, 0].numel() if x.numel() else 1
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, C, P, out.numel(), size, alpha, BLOCK=128)
    return out
"""
"""Values divided by a power of what lies beside them in other channels."""


POWER = """
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, out_ptr, n, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, libdevice.pow(x, tl.zeros((BLOCK,), tl.float32) + y), mask=at < n)


def wrapper(input, exponent):
    x = input.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), float(exponent), BLOCK=128)
    return out
"""
"""Powers by a number."""


SPREAD = """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, C, O, L, OL, K, step, padding, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    place, o, b = at % OL, at // OL % O, at // (OL * O)
    total_of = tl.zeros((BLOCK,), tl.float32)
    for tap in range(K):
        from_start = place + padding - tap
        source = from_start // step
        hit = mask & (from_start >= 0) & (from_start % step == 0) & (source < L)
        for c in range(C):
            x = tl.load(x_ptr + (b * C + c) * L + source, mask=hit, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + (c * O + o) * K + tap, mask=hit, other=0.0).to(tl.float32)
            total_of += tl.where(hit, x * w, 0.0)
    tl.store(out_ptr + at, total_of, mask=mask)


def wrapper(input, weight, stride=1, padding=0, output_padding=0):
    x, w = input.contiguous(), weight.contiguous()
    B, C, L = x.shape
    _, O, K = w.shape
    longer = output_padding
    OL = (L - 1) * stride - 2 * padding + K + longer
    if OL < 1 or output_padding >= stride:
        raise ValueError("there is no such result")
    out = torch.empty((B, O, OL), dtype=x.dtype, device=x.device)
    if out.numel():
        grid = (triton.cdiv(out.numel(), 32),)
        kernel[grid](x, w, out, C, O, L, OL, K, stride, padding, out.numel(), BLOCK=32)
    return out
"""
"""A convolution that spreads each place of its input over several of its result."""


def test_a_number_among_the_inputs_is_another_one_in_some_call(tmp_path: Path) -> None:
    op = declared("torch.pow", [tensor("input", ["M", "N"]), {"name": "exponent", "scalar": 2.0}], DIMS)
    require_passed(tmp_path / "right", op, POWER)
    require_rejected(tmp_path / "wrong", op, POWER, "libdevice.pow(x,", "libdevice.pow(tl.abs(x),", ("mismatch", "nan"))


def test_a_window_that_no_block_holds_is_tried(tmp_path: Path) -> None:
    op = declared(
        "torch.nn.functional.max_pool1d",
        [tensor("input", ["B", "C", "L"])],
        {"B": 2, "C": 3, "L": 37},
        kwargs={"kernel_size": 3, "stride": 2},
    )
    require_passed(tmp_path / "right", op, WINDOW)
    require_rejected(tmp_path / "wrong", op, WINDOW, "triton.next_power_of_2(kernel_size)", "16", ("mismatch",))


def test_a_number_of_a_reference_that_no_block_holds_is_tried_where_there_is_room(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "reference.py", "name": "summed", "init": {}, "root": str(tmp_path)}
    op = declared("", [tensor("input", ["M", "N"])], DIMS, kwargs={"before": 4}, torch=None, reference=reference)
    require_passed(tmp_path / "right", op, PREFIX)
    right, wrong = "tl.maximum(first + BLOCK, before)", "first + BLOCK"
    require_rejected(tmp_path / "wrong", op, PREFIX, right, wrong, ("mismatch",))


def test_an_exponent_by_a_logarithm_is_tried_beside_powers_of_two(tmp_path: Path) -> None:
    outputs = [
        {"name": name, "compare": compare, "of": None, "dim": None, "tolerances": {}}
        for name, compare in (("mantissa", "close"), ("exponent", "exact"))
    ]
    op = declared("torch.frexp", [tensor("input", ["M", "N"])], DIMS, outputs=outputs)
    require_passed(tmp_path / "right", op, EXPONENT)
    wrong = "tl.floor(tl.log2(tl.abs(safe))).to(tl.int32) + 1"
    require_rejected(tmp_path / "wrong", op, EXPONENT, "libdevice.ilogb(safe) + 1", wrong, ("mismatch",))


def test_the_rest_of_a_large_number_has_all_its_digits(tmp_path: Path) -> None:
    inputs = [tensor("input", ["M", "N"]), {"name": "other", "scalar": 6.283185307179586}]
    op = declared("torch.remainder", inputs, DIMS)
    require_passed(tmp_path / "right", op, REST)
    right = "rest = libdevice.fmod(x, tl.zeros((BLOCK,), tl.float32) + y)"
    require_rejected(tmp_path / "wrong", op, REST, right, "rest = x - tl.floor(x / y) * y", ("mismatch",))


def test_what_a_relative_tolerance_is_relative_to_is_seen_where_it_is_large(tmp_path: Path) -> None:
    few = {"kind": "randint", "low": 0, "high": 4}
    op = declared("torch.isclose", [tensor(name, ["M", "N"], init=few) for name in ("input", "other")], DIMS)
    require_passed(tmp_path / "right", op, CLOSE)
    require_rejected(
        tmp_path / "wrong", op, CLOSE, "rtol * tl.abs(y)", "rtol * tl.maximum(tl.abs(x), tl.abs(y))", ("mismatch",)
    )


def test_an_even_count_is_tried_where_an_odd_one_is_declared(tmp_path: Path) -> None:
    op = declared(
        "torch.nn.functional.local_response_norm",
        [tensor("input", ["B", "C", "W"])],
        {"B": 2, "C": 9, "W": 5},
        kwargs={"size": 5, "alpha": 1.0, "beta": 0.75, "k": 1.0},
    )
    require_passed(tmp_path / "right", op, ACROSS)
    require_rejected(tmp_path / "wrong", op, ACROSS, "range(size):", "range(size // 2 * 2 + 1):", ("mismatch",))


def test_a_longer_result_is_tried_where_none_is_declared_and_a_shorter_one_where_one_is(tmp_path: Path) -> None:
    inputs = [tensor("input", ["B", "C", "L"]), tensor("weight", ["C", "O", "K"])]
    dims = {"B": 2, "C": 3, "L": 9, "O": 2, "K": 3}
    for number, fixed in ((0, "0"), (1, "1 if stride > 1 else 0")):
        kwargs = {"stride": 2, "padding": 1, "output_padding": number}
        op = declared("torch.nn.functional.conv_transpose1d", inputs, dims, kwargs=kwargs)
        require_passed(tmp_path / f"right-{number}", op, SPREAD)
        wrong = f"longer = {fixed}"
        require_rejected(
            tmp_path / f"wrong-{number}", op, SPREAD, "longer = output_padding", wrong, ("mismatch", "shape")
        )
