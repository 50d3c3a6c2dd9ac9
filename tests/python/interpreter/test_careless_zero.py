"""Kernels that take zero for no value, take a word and forget it, or are wrong where an argument is left out, a target is a whole number, or a length is a multiple of another block."""

from __future__ import annotations

from pathlib import Path

from checks import declared, require_passed, require_rejected, tensor

DIMS = {"M": 8, "N": 24}

FINITE = """
@triton.jit
def kernel(x_ptr, out_ptr, n, instead, above, below, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.where(x != x, instead, x)
    y = tl.where(x == float("inf"), above, y)
    tl.store(out_ptr + at, tl.where(x == float("-inf"), below, y), mask=at < n)


def wrapper(input, nan=None, posinf=None, neginf=None):
    x = input.contiguous()
    largest = torch.finfo(x.dtype).max
    instead = 0.0 if nan is None else nan
    above = largest if posinf is None else posinf
    below = -largest if neginf is None else neginf
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), instead, above, below, BLOCK=128)
    return out
"""
"""Numbers in the place of what is not finite."""

VARIANCE = """
@triton.jit
def kernel(x_ptr, out_ptr, N, correction, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    off = tl.where(at < N, x - tl.sum(x, axis=0) / N, 0.0)
    tl.store(out_ptr + row, tl.sum(off * off, axis=0) / (N - correction))


def wrapper(input, dim=None, *, correction=1, keepdim=False):
    if dim not in (-1, 1) or keepdim or correction is None:
        raise NotImplementedError("rows alone")
    x = input.contiguous()
    M, N = x.shape
    out = torch.empty(M, device=x.device)
    if M:
        kernel[(M,)](x, out, N, min(correction, N), BLOCK=triton.next_power_of_2(N))
    return out
"""
"""Variances of rows."""

NORM = """
@triton.jit
def kernel(x_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
    root = tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(out_ptr + row * N + at, x / root, mask=at < N)


def wrapper(input, normalized_shape, weight=None, eps=None):
    if weight is not None or len(normalized_shape) != 1:
        raise NotImplementedError("one dim without a weight alone")
    x = input.contiguous()
    N = x.shape[-1]
    eps = 1.1920929e-07 if eps is None else eps
    out = torch.empty_like(x)
    if out.numel():
        kernel[(out.numel() // N,)](x, out, N, eps, BLOCK=triton.next_power_of_2(N))
    return out
"""
"""Rows by the root of their mean square."""

PADDED = """
@triton.jit
def kernel(x_ptr, out_ptr, N, OUT, left, value, IS_REFLECTED: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    place = at - left
    if IS_REFLECTED:
        place = tl.abs(place)
        place = tl.where(place >= N, 2 * N - 2 - place, place)
    inside = (place >= 0) & (place < N)
    x = tl.load(x_ptr + row * N + place, mask=inside & (at < OUT), other=0.0)
    tl.store(out_ptr + row * OUT + at, tl.where(inside, x, value), mask=at < OUT)


def wrapper(input, pad, mode="constant", value=None):
    if mode not in ("constant", "reflect") or len(pad) != 2 or min(pad) < 0 or input.dim() != 2:
        raise NotImplementedError("rows that become longer alone")
    x = input.contiguous()
    M, N = x.shape
    length = N + pad[0] + pad[1]
    out = torch.empty((M, length), dtype=x.dtype, device=x.device)
    if out.numel():
        shown, reflected = 0.0 if value is None else float(value), mode == "reflect"
        kernel[(M,)](x, out, N, length, pad[0], shown, reflected, BLOCK=triton.next_power_of_2(length))
    return out
"""
"""Rows with something before and behind them."""

LEAST = """
@triton.jit
def kernel(x_ptr, out_ptr, place_ptr, N, FIRST: tl.constexpr):
    row = tl.program_id(0)
    best = tl.load(x_ptr + row * N)
    found = tl.zeros((), tl.int64)
    for at in range(0, N):
        x = tl.load(x_ptr + row * N + at)
        take = (x <= best) | (x != x)
        take = take & (best == best) | (x != x)
        best = tl.where(take, x, best)
        found = tl.where(take, at, found)
        tl.store(out_ptr + row * N + at, best)
        tl.store(place_ptr + row * N + at, found)


def wrapper(input, dim):
    if dim not in (-1, 1):
        raise NotImplementedError("rows alone")
    x = input.contiguous()
    M, N = x.shape
    out, place = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64, device=x.device)
    if out.numel():
        kernel[(M,)](x, out, place, N, FIRST=0)
    return out, place
"""
"""Running minima of rows."""


LARGEST = """
@triton.jit
def kernel(x_ptr, out_ptr, place_ptr, L, OL, K):
    row, at = tl.program_id(0), tl.program_id(1)
    best = tl.load(x_ptr + row * L + at * K)
    found = at.to(tl.int64) * K
    for step in range(1, K):
        place = at.to(tl.int64) * K + step
        x = tl.load(x_ptr + row * L + place)
        take = (x > best) | (x != x)
        best = tl.where(take, x, best)
        found = tl.where(take, place, found)
    tl.store(out_ptr + row * OL + at, best)
    tl.store(place_ptr + row * OL + at, found)


def wrapper(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if stride not in (None, kernel_size) or padding or dilation != 1 or ceil_mode or input.dim() != 3:
        raise NotImplementedError("windows side by side alone")
    x = input.contiguous()
    B, C, L = x.shape
    OL = L // kernel_size
    if not OL:
        raise ValueError("the window is longer than the input")
    out = torch.empty((B, C, OL), dtype=x.dtype, device=x.device)
    place = torch.empty((B, C, OL), dtype=torch.int64, device=x.device)
    if out.numel():
        kernel[(B * C, OL)](x, out, place, L, OL, kernel_size)
    return (out, place) if return_indices else out
"""
"""The largest number of each window, and its place."""

WRONG = ("mismatch", "nan")


def test_zero_in_the_place_of_what_is_not_finite_is_a_number(tmp_path: Path) -> None:
    op = declared("torch.nan_to_num", [tensor("input", ["M", "N"])], DIMS, kwargs={"nan": 0.0})
    require_passed(tmp_path / "right", op, FINITE)
    wrong = "above = posinf or largest"
    right = "above = largest if posinf is None else posinf"
    require_rejected(tmp_path / "wrong", op, FINITE, right, wrong, ("mismatch",))


def test_a_correction_that_no_entry_declares_is_tried_at_zero(tmp_path: Path) -> None:
    op = declared("torch.var", [tensor("input", ["M", "N"])], DIMS, kwargs={"dim": -1})
    require_passed(tmp_path / "right", op, VARIANCE)
    require_rejected(tmp_path / "wrong", op, VARIANCE, "min(correction, N)", "min(correction or 1, N)", ("mismatch",))


def test_what_is_added_under_a_root_is_seen_where_it_is_left_out_and_values_are_small(tmp_path: Path) -> None:
    kwargs = {"normalized_shape": ["N"], "eps": 1e-6}
    op = declared("torch.nn.functional.rms_norm", [tensor("input", ["M", "N"])], DIMS, kwargs=kwargs)
    require_passed(tmp_path / "right", op, NORM)
    require_rejected(tmp_path / "wrong", op, NORM, "1.1920929e-07 if", "1e-6 if", ("mismatch",))


def test_a_word_that_no_entry_declares_is_tried(tmp_path: Path) -> None:
    op = declared("torch.nn.functional.pad", [tensor("input", ["M", "N"])], DIMS, kwargs={"pad": [2, 3]})
    require_passed(tmp_path / "right", op, PADDED)
    require_rejected(tmp_path / "wrong", op, PADDED, "2 * N - 2 - place", "2 * N - 1 - place", ("mismatch",))


def test_integers_of_a_later_dtype_are_tried_at_their_limits(tmp_path: Path) -> None:
    whole = {"kind": "randint", "low": -1000, "high": 1000}
    outputs = [
        {"name": "values", "compare": "exact", "of": None, "dim": None, "tolerances": {}},
        {"name": "indices", "compare": "indices", "of": "input", "dim": -1, "tolerances": {}},
    ]
    op = declared(
        "torch.cummin",
        [tensor("input", ["M", "N"], init=whole)],
        DIMS,
        kwargs={"dim": -1},
        dtypes=["float32", "int64"],
        outputs=outputs,
    )
    op["tolerances"]["int64"] = [0.0, 0.0]
    require_passed(tmp_path / "right", op, LEAST)
    wrong = "best = tl.load(x_ptr + row * N) * 0 + 2147483647"
    require_rejected(tmp_path / "wrong", op, LEAST, "best = tl.load(x_ptr + row * N)", wrong, ("mismatch",))


def test_a_flag_that_says_how_many_results_there_are_is_no_fault_of_the_declaration(tmp_path: Path) -> None:
    op = declared(
        "torch.nn.functional.max_pool1d",
        [tensor("input", ["B", "C", "L"])],
        {"B": 2, "C": 3, "L": 37},
        kwargs={"kernel_size": 3, "return_indices": True},
        outputs=[
            {"name": name, "compare": compare, "of": of, "dim": -1, "tolerances": {}}
            for name, compare, of in (("values", "close", None), ("indices", "indices", "input"))
        ],
    )
    require_passed(tmp_path / "right", op, LARGEST)
    require_rejected(tmp_path / "wrong", op, LARGEST, "found = tl.where(take, place, found)", "found = place", WRONG)
