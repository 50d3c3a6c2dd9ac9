"""Faults that show in the second of two types, at places beyond what a narrow type counts to, in many programs of a backward pass, and in pairs of drawn numbers. Beside each the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import both_tests, declared, require_passed, tensor, verdict

from t2t_harness.cases import programs
from t2t_harness.judging import pooled

TURNS = '''"""Turns each pair of numbers by its place."""

import torch


def turned(x):
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[1], device=x.device, dtype=torch.float64)[:, None, None] * rates
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    one, other = x[..., :half], x[..., half:]
    return torch.cat([one * cos - other * sin, other * cos + one * sin], -1)
'''

TURN = """
from triton.language.extra import libdevice

kept = {}


@triton.jit
def table(cos_ptr, sin_ptr, rates_ptr, H, BLOCK: tl.constexpr):
    place, at = tl.program_id(0), tl.arange(0, BLOCK)
    angle = place.to(tl.float64) * tl.load(rates_ptr + at, mask=at < H, other=0.0)
    tl.store(cos_ptr + place * H + at, libdevice.cos(angle), mask=at < H)
    tl.store(sin_ptr + place * H + at, libdevice.sin(angle), mask=at < H)


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, S, N, H, sb, ss, sn, sd, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    place = row // N % S
    x = x_ptr + row // N // S * sb + place * ss + row % N * sn
    one = tl.load(x + at * sd, mask=at < H, other=0.0).to(tl.float32)
    other = tl.load(x + (at + H) * sd, mask=at < H, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + place * H + at, mask=at < H, other=0.0).to(x_ptr.dtype.element_ty).to(tl.float32)
    sin = tl.load(sin_ptr + place * H + at, mask=at < H, other=0.0).to(x_ptr.dtype.element_ty).to(tl.float32)
    tl.store(out_ptr + row * 2 * H + at, one * cos - other * sin, mask=at < H)
    tl.store(out_ptr + row * 2 * H + H + at, other * cos + one * sin, mask=at < H)


def wrapper(x):
    B, S, N, D = x.shape
    H, kind = D // 2, torch.float64
    out = torch.empty(B, S, N, D, dtype=x.dtype, device=x.device)
    if out.numel():
        key = (S, D)
        if key not in kept:
            rates = torch.tensor([10000.0 ** (-one / H) for one in range(H)], dtype=torch.float64, device=x.device)
            kept[key] = [torch.empty(S, H, dtype=kind, device=x.device) for _ in range(2)]
            table[(S,)](*kept[key], rates, H, BLOCK=triton.next_power_of_2(H))
        kernel[(B * S * N,)](x, *kept[key], out, S, N, H, *x.stride(), BLOCK=triton.next_power_of_2(H))
    return out
"""


def of_turns(folder: Path, narrow: str) -> dict[str, Any]:
    """Returns the op of the reference, which is written into `folder`."""
    (folder / "reference.py").write_text(TURNS, encoding="utf-8")
    reference = {"file": "reference.py", "name": "turned", "init": {}, "root": str(folder)}
    sizes = {"small": {"B": 2, "S": 9, "N": 3, "D": 8}, "large": {"B": 3, "S": 40, "N": 5, "D": 8}}
    return declared(
        "",
        [tensor("x", ["B", "S", "N", "D"])],
        {},
        torch=None,
        reference=reference,
        sizes=sizes,
        check_sizes=sizes,
        dtypes=["float32", narrow],
        fixed=["D"],
    )


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("kind = D // 2, torch.float64", "kind = D // 2, x.dtype"),
        ("angle = place.to(tl.float64)", "angle = place.to(tl.bfloat16).to(tl.float64)"),
    ],
    ids=["a table of the type that came first", "places of a type that counts to 256"],
)
def test_what_is_kept_and_counted_in_a_narrow_type_is_seen(tmp_path: Path, written: str, instead: str) -> None:
    assert written in TURN
    class_, _ = verdict(tmp_path / "careless", of_turns(tmp_path, "bfloat16"), TURN.replace(written, instead))
    assert class_ == "mismatch"


def test_what_is_kept_and_counted_in_a_wide_type_passes(tmp_path: Path) -> None:
    require_passed(tmp_path / "honest", of_turns(tmp_path, "bfloat16"), TURN)


@pytest.mark.parametrize("dtypes", [["bfloat16"], ["float16", "bfloat16"]], ids=["alone", "last"])
def test_places_are_counted_in_bfloat16_where_an_op_has_it(tmp_path: Path, dtypes: list[str]) -> None:
    op = of_turns(tmp_path, "bfloat16") | {"dtypes": dtypes}
    require_passed(tmp_path / "honest", op, TURN)
    written, instead = "angle = place.to(tl.float64)", "angle = place.to(x_type).to(tl.float64)"
    narrow = TURN.replace(written, instead).replace(
        "BLOCK: tl.constexpr):\n    place", "x_type: tl.constexpr, BLOCK: tl.constexpr):\n    place"
    )
    narrow = narrow.replace("rates, H, BLOCK", "rates, H, x_type=TYPES[x.dtype], BLOCK").replace(
        "key = (S, D)", "key = (S, D, x.dtype)"
    )
    types = "TYPES = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}\n"
    assert verdict(tmp_path / "careless", op, types + narrow)[0] == "mismatch"


SCALED = """
@triton.jit
def forward(x_ptr, w_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N)
    tl.store(out_ptr + row * N + cols, x * tl.load(w_ptr + cols, mask=cols < N), mask=cols < N)


@triton.jit
def parts(g_ptr, x_ptr, w_ptr, gx_ptr, part_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    chunk, cols = tl.program_id(0), tl.arange(0, BLOCK)
    rows = chunk * ROWS + tl.arange(0, ROWS)
    is_in = (rows[:, None] < M) & (cols < N)
    at = rows[:, None] * N + cols
    g = tl.load(g_ptr + at, mask=is_in, other=0.0)
    tl.store(gx_ptr + at, g * tl.load(w_ptr + cols, mask=cols < N, other=0.0), mask=is_in)
    x = tl.load(x_ptr + at, mask=is_in, other=0.0)
    tl.store(part_ptr + chunk * N + cols, tl.sum(g * x, 0), mask=cols < N)


@triton.jit
def total(part_ptr, out_ptr, chunks, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    found = tl.zeros([BLOCK], tl.float32)
    for chunk in range(0, chunks):
        found += tl.load(part_ptr + chunk * N + cols, mask=cols < N, other=0.0)
    tl.store(out_ptr + cols, found, mask=cols < N)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        x, w = x.contiguous(), w.contiguous()
        out, N = torch.empty_like(x), x.shape[-1]
        if out.numel():
            forward[(x.numel() // N,)](x, w, out, N, BLOCK=triton.next_power_of_2(N))
        ctx.save_for_backward(x, w)
        return out

    @staticmethod
    def backward(ctx, g):
        (x, w), g = ctx.saved_tensors, g.contiguous()
        gx, gw, (M, N) = torch.empty_like(x), torch.zeros_like(w), x.shape
        if x.numel():
            chunks = triton.cdiv(M, 16)
            part = torch.empty(chunks, N, dtype=torch.float32, device=x.device)
            block = triton.next_power_of_2(N)
            parts[(chunks,)](g, x, w, gx, part, M, N, ROWS=16, BLOCK=block)
            total[(1,)](part, gw, chunks, N, BLOCK=block)
        return gx, gw


def wrapper(input, other):
    return Scaled.apply(input, other)
"""

MEASURED = {"large": {"M": 4096, "N": 64}}
PRODUCT = declared(
    "torch.mul",
    [tensor("input", ["M", "N"]), tensor("other", ["N"])],
    {"M": 20, "N": 24},
    backward=True,
    measured=MEASURED,
)

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(
    {"product": (PRODUCT, SCALED)},
    {"parts beyond the 64th are lost": ("product", "range(0, chunks)", "range(0, tl.minimum(chunks, 64))")},
)

NORMAL = """
@triton.jit
def kernel(out_ptr, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    one, other = tl.rand(seed, 2 * at), tl.rand(seed, 2 * at + 1)
    value = tl.sqrt(-2.0 * tl.log(tl.maximum(one, 1e-7))) * tl.cos(6.283185307179586 * other)
    tl.store(out_ptr + at, value, mask=at < n)


def wrapper(input, seed=0):
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 256),)](out, out.numel(), seed, BLOCK=256)
    return out
"""

DROPOUT = """
@triton.jit
def kernel(x_ptr, out_ptr, N, p, seed, BLOCK: tl.constexpr):
    row, first = tl.program_id(0), tl.program_id(1) * BLOCK
    cols = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N)
    is_kept = tl.rand(seed, row * N + cols) > p
    tl.store(out_ptr + row * N + cols, tl.where(is_kept, x / (1 - p), 0.0), mask=cols < N)


def wrapper(input, p=0.5, training=True, seed=0):
    if not training or p in (0, 1):
        raise NotImplementedError("a share alone")
    x = input.contiguous()
    out, N = torch.empty_like(x), x.shape[-1]
    if out.numel():
        block = min(triton.next_power_of_2(N), 256)
        kernel[(x.numel() // N, triton.cdiv(N, block))](x, out, N, p, seed, BLOCK=block)
    return out
"""

DRAWN = {"M": 16, "N": 32}
OF_NORMAL = declared(
    "torch.randn_like", [tensor("input", ["M", "N"])], DRAWN, random={"kind": "normal", "seed": "seed"}
)
OF_DROPOUT = declared(
    "torch.nn.functional.dropout",
    [tensor("input", ["M", "N"])],
    DRAWN,
    kwargs={"p": 0.5, "training": True},
    random={"kind": "dropout", "p": "p", "seed": "seed"},
)

test_an_honest_draw_passes, test_a_careless_draw_is_rejected = both_tests(
    {"normal": (OF_NORMAL, NORMAL), "dropout": (OF_DROPOUT, DROPOUT)},
    {
        "neighbours share a number": ("normal", "2 * at), tl.rand(seed, 2 * at + 1)", "at), tl.rand(seed, at + 1)"),
        "a number by its place in a block of rows": ("dropout", "row * N + cols) > p", "row * BLOCK + cols) > p"),
    },
    ("random", "mismatch"),
)


def test_rows_less_powers_of_two_are_distances() -> None:
    found = dict(pooled.lags([3, 641]))
    assert {625, 609, 577, 513, 385, 129} <= set(found.values())


SPLIT = """
@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, M, N, K, each, BLOCK: tl.constexpr):
    row, col, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(split * each, tl.minimum(split * each + each, K), BLOCK):
        at = first + tl.arange(0, BLOCK)
        is_in = at < tl.minimum(split * each + each, K)
        total += tl.load(x_ptr + row * K + at, mask=is_in, other=0.0) * tl.load(w_ptr + col * K + at, mask=is_in, other=0.0)
    bias = tl.where(split == 0, tl.load(b_ptr + col), 0.0)
    tl.store(out_ptr + (split * M + row) * N + col, tl.sum(total, 0) + bias)


@triton.jit
def sums(part_ptr, out_ptr, count, splits):
    at = tl.program_id(0)
    total = 0.0
    for split in range(0, splits):
        total += tl.load(part_ptr + split * count + at)
    tl.store(out_ptr + at, total)


def wrapper(input, weight, bias):
    x, w, b = input.contiguous(), weight.contiguous(), bias.contiguous()
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty(M, N, dtype=x.dtype, device=x.device)
    if out.numel():
        splits = max(K // 1024, 1)
        part = torch.empty(splits, M, N, dtype=x.dtype, device=x.device)
        kernel[(M, N, splits)](x, w, b, part, M, N, K, triton.cdiv(K, splits), BLOCK=64)
        sums[(M * N,)](part, out, M * N, splits)
    return out
"""

LINEAR = declared(
    "torch.nn.functional.linear",
    [tensor("input", ["M", "K"]), tensor("weight", ["N", "K"]), tensor("bias", ["N"])],
    {"M": 8, "K": 24, "N": 12},
    measured={"large": {"M": 512, "K": 4096, "N": 512}},
)

test_an_honest_split_passes, test_a_careless_split_is_rejected = both_tests(
    {"linear": (LINEAR, SPLIT)},
    {"each part adds the bias": ("linear", "tl.where(split == 0, tl.load(b_ptr + col), 0.0)", "tl.load(b_ptr + col)")},
)


def test_lengths_are_found_at_which_a_grid_has_a_second_program_along_an_axis() -> None:
    def launched(case: Any) -> list[tuple[str, int]]:
        return programs.axes("sum", [case.binding["M"], max(case.binding["K"] // 1024, 1)])

    op = declared("torch.mv", [tensor("input", ["M", "K"]), tensor("vec", ["K"])], {"M": 8, "K": 24})
    sizes = {"large": {"M": 512, "K": 4096}}
    assert programs.along(op, sizes, {"sum along 0": 8, "sum along 1": 1}, launched) == [{"M": 2, "K": 2048}]
    assert programs.along(op, sizes, {"sum along 0": 8, "sum along 1": 3}, launched) == []
