"""Values that inputs seldom have and kernels are often wrong for. Rows are runs along the last dim. torch is imported only inside functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from t2t_harness.cases import unusual_integers
from t2t_harness.cases.rows import rows_of

if TYPE_CHECKING:
    import torch


def large(values: torch.Tensor, times: float) -> torch.Tensor:
    """Returns `values` so many `times` larger, in their type. Where some are below zero, the second row of three has no others: all of it is far below what stands for nothing."""
    changed = (values.double() * times).clamp(-6 * times, 6 * times)
    if values.numel() > 0 and bool((values < 0).any()):
        rows = rows_of(changed)
        rows[1::3] = -rows[1::3].abs()
    return changed.to(values.dtype)


def offset(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with 10² added to each other row and 10⁴ to the rest: means far above the variance. Types of 16 bits have 10² alone."""
    changed = values.double()
    rows = rows_of(changed)
    rows[0::2] += 1e2
    rows[1::2] += 1e2 if values.dtype.itemsize < 4 else 1e4
    return changed.to(values.dtype)


def level(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with 10³ added to all of them, in types of 16 bits 10²: means far above the variance along each dim."""
    return (values.double() + (1e2 if values.dtype.itemsize < 4 else 1e3)).to(values.dtype)


LEVELS = (127, 255, 7)
"""So many levels, beside that of zero, a row is usually quantized to."""


def halves(values: torch.Tensor) -> torch.Tensor:
    """Returns zeros and halves, of which the greatest of a row is one of `LEVELS` in turn: where a row is scaled to so many levels its scale is one, and the halves lie between two of them. None does so where it is scaled to another number of them, which only a division would tell exactly."""
    changed = values.double()
    rows = rows_of(changed)
    for place, most in enumerate(LEVELS):
        part = rows[place :: len(LEVELS)]
        within = ((part.abs() * most / 4).floor() % most) + 0.5
        is_other = sum(((2 * within * other) % (2 * most) == most) for other in LEVELS if other != most)
        within = within.where((is_other == 0) & (part.abs() > 0.25), 0.0)
        part.copy_(within * part.sign() if most in (127, 7) else within)
        part[:, -1:] = most
    return changed.to(values.dtype)


def infinite_rows(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with each other row infinite throughout, in turns minus and plus, the second one first."""
    changed = values.clone()
    rows = rows_of(changed)
    rows[1::4] = float("-inf")
    rows[3::4] = float("inf")
    if rows.shape[0] == 1:
        rows[0] = float("-inf")
    return changed


def nan_rows(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with the second row of three NaN throughout, or the only one."""
    changed = values.clone()
    rows = rows_of(changed)
    rows[1::3] = float("nan")
    if rows.shape[0] == 1:
        rows[0] = float("nan")
    return changed


def below(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` without any that is zero or more: what begins with zero, or has zeros for padding, finds that the largest."""
    return -(values.abs() + 0.125) if values.dtype.is_floating_point else values


def sunk(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` 64 times as large, 32 times in float16, and all of them so far below zero that a float32 holds none of their exponentials."""
    import torch

    if not values.dtype.is_floating_point:
        return values
    return below(values) * (32 if values.dtype is torch.float16 else 64) - 128


def void(values: torch.Tensor) -> torch.Tensor:
    """Returns minus infinity in the place of all `values`."""
    return values.new_full(values.shape, -math.inf) if values.dtype.is_floating_point else values


def runs(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with each third one three times in a row: neighbours that are equal, also where a block ends."""
    import torch

    rows = rows_of(values)
    first = torch.arange(rows.shape[1], device=values.device) // 3 * 3
    return rows[:, first].reshape(values.shape)


SHORT = 32
"""Rows up to this length have products that a float holds."""


def zeros(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` rounded to halves, so that many are equal, those of the third row of three to 64ths, so that what is rounded to a whole number lies in the middle of two, with every fourth one zero and the one after it minus zero, and the second row in three zero throughout. The third row of six has exactly one zero, the fourth one has two: a product has other gradients there."""
    changed = values.double().mul(2).round().div(2).to(values.dtype)
    rows, flat = rows_of(changed), changed.view(-1)
    rows[2::3] = rows_of(values.double().mul(64).round().div(64).to(values.dtype))[2::3]
    flat[0::4] = 0.0
    flat[1::4] = -0.0
    rows[1::3] = 0.0
    width = rows.shape[1]
    for first, places in ((2, (width // 2,)), (3, (0, width - 1))):
        # No row of one element is left without its value.
        few = rows[first::6] if width > 2 else rows[:0]
        few[few == 0] = 0.5
        if width <= SHORT:
            # A product of small numbers is nothing beside a tolerance.
            few[few.abs() < 1] += few[few.abs() < 1].sign()
        few[:, list(places)] = 0.0
    return changed


def one_of(number: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns the function that puts `number` in the place of one value, behind the middle of the last row."""

    def put(values: torch.Tensor) -> torch.Tensor:
        changed = values.clone()
        rows = rows_of(changed)
        rows[-1, 2 * rows.shape[1] // 3] = number
        return changed

    return put


def first(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with NaN in the place of the first one, of several dims of all that have the first place along the first: what is read for lanes that a mask leaves out is often that."""
    changed = values.clone()
    changed[:1] = math.nan
    return changed


def nothing(values: torch.Tensor) -> torch.Tensor:
    """Returns zeros."""
    import torch

    return torch.zeros_like(values)


def far(values: torch.Tensor, sign: int) -> torch.Tensor:
    """Returns `values` with that sign, all of them at least 6 from zero: sums of their products lie where `exp` has nothing left."""
    return (sign * (values.double().abs() * 4 + 6)).to(values.dtype)


def eighths(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` rounded to eighths, of which some lie in the middle of two whole numbers, also once they are divided by a tenth or a twentieth."""
    return values.double().mul(8).round().div(8).to(values.dtype)


def ends(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with the largest of each row at its end, and the smallest before it: what leaves out the end of a row has another maximum, minimum and order."""
    changed = values.clone()
    rows = rows_of(changed)
    width = rows.shape[1]
    for place in (width - 1, width - 2)[: width - 1]:
        part = rows[:, : place + 1]
        at = (part.argmax(dim=1) if place == width - 1 else part.argmin(dim=1))[:, None]
        held = rows[:, place : place + 1].clone()
        rows[:, place : place + 1] = rows.gather(1, at)
        rows.scatter_(1, at, held)
    return changed


def denormal(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` so small that most of them are denormal numbers, every fourth one as it was."""
    import torch

    changed = values.double().clamp(-8, 8).mul(torch.finfo(values.dtype).tiny / 16).to(values.dtype)
    changed.view(-1)[0::4] = values.reshape(-1)[0::4]
    return changed


def cancelling(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` times 10³; each second element of a row cancels the one before it, but for a thousandth."""
    changed = values.double().mul(1e3)
    rows = rows_of(changed)
    count = rows.shape[1] // 2
    rows[:, 1 : 2 * count : 2] = -rows[:, 0 : 2 * count : 2] * (1 - 1e-3)
    return changed.to(values.dtype)


def late(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with NaN in the last quarter of their last row, in the one before it infinity at its end, minus infinity in three quarters of the first row of three, and NaN in the second and the last quarter of the second one of four: where a row is read in blocks, in a later one, throughout the first one, or in two of which the first counts."""
    changed = values.clone()
    rows = rows_of(changed)
    width = rows.shape[1]
    rows[-1, 3 * width // 4] = float("nan")
    if rows.shape[0] > 1:
        rows[-2, width - 1] = float("inf")
    if rows.shape[0] > 2:
        rows[0, : 3 * width // 4] = float("-inf")
    if rows.shape[0] > 3:
        rows[1, [width // 4, 3 * width // 4]] = float("nan")
    return changed


def masked(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with minus infinity in three quarters of each other row, from its beginning, as padding and windows have it in a mask."""
    changed = values.clone()
    rows = rows_of(changed)
    rows[0::2, : 3 * rows.shape[1] // 4] = float("-inf")
    return changed


def low(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` of which the first half is minus infinity: images, or parts of one, that are so throughout."""
    changed = values.clone()
    flat = changed.view(-1)
    flat[: (flat.numel() + 1) // 2] = float("-inf")
    return changed


def positive(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` without their signs: sums of them grow, and lose bits where they are added up in few."""
    return values.abs() if values.dtype.is_floating_point else values


def small(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` by 2⁹ smaller: their squares are about the size of the numbers that keep a divisor from zero. In types that hold less than float16 does, each second row is by 2³⁰ smaller."""
    import torch

    if not values.dtype.is_floating_point:
        return values
    changed = values.mul(2.0**-9)
    if torch.finfo(values.dtype).tiny < torch.finfo(torch.float16).tiny:
        rows_of(changed)[1::2] *= 2.0**-21
    return changed


PAIRED = (0.0, 1.0, float("inf"), float("nan"), -0.0, -1.0, float("-inf"))
"""Numbers of which two meet as no others do: products, quotients, differences and powers of them are defined one by one."""


CORNERS = tuple(number for number in PAIRED if math.isfinite(number))
"""Those at which gradients are numbers where a kernel does not divide zero by zero."""


def pairs(
    values: Sequence[torch.Tensor], allowed: Sequence[tuple[float, float]], numbers: Sequence[float] = PAIRED
) -> list[torch.Tensor]:
    """Returns the tensors `values`, of one shape, in which each of `numbers`, and of `PAIRED` on the CPU a denormal number, meets each of them in the next tensor. Finite numbers are those between the two that are `allowed` for each."""
    import torch

    found = []
    for turn, (one, (low, high)) in enumerate(zip(values, allowed, strict=True)):
        # The reciprocal of this one is a number.
        small = [torch.finfo(one.dtype).tiny / 2] if one.device.type == "cpu" and numbers is PAIRED else []
        told = [number for number in (*numbers, *small) if not math.isfinite(number) or low <= number <= high]
        places = torch.arange(min(one.numel(), ALL_PAIRS), device=one.device)
        # The first tensor turns fast, the second slowly, and each further one differs from both.
        along = (places % SIDE) * int(turn != 1) + (places // SIDE) * int(turn != 0) * max(turn - 1, 1)
        changed = one.clone()
        if told:
            held = torch.tensor(told, dtype=one.dtype, device=one.device)
            changed.view(-1)[places] = held[along % SIDE % len(told)]
        found.append(changed)
    return found


SIDE = len(PAIRED) + 1
"""So many numbers meet."""

ALL_PAIRS = SIDE * SIDE
"""So many elements show all pairs of two tensors."""


def tails(values: torch.Tensor) -> torch.Tensor:
    """Returns `values`; each second one is one between -20 and 20, in order."""
    import torch

    changed = values.clone()
    flat = changed.view(-1)
    count = flat[0::2].numel()
    flat[0::2] = torch.linspace(-20, 20, count, dtype=torch.float64, device=values.device).to(values.dtype)
    return changed


POWERS = 6
"""Powers of two from one over two to this, to two to this, are tried."""


def powers(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` of which each fourth one is a power of two, and the next two are the numbers beside it, of either sign: a logarithm rounds to a whole number there, and a rest is nearly none."""
    import torch

    changed = values.clone()
    flat = changed.view(-1)
    wide = torch.arange(flat[0::4].numel(), device=values.device)
    exponents = wide % (2 * POWERS + 1) - POWERS
    signs = 1 - 2 * (wide // (2 * POWERS + 1) % 2)
    numbers = (torch.exp2(exponents.double()) * signs).to(values.dtype)
    step = torch.finfo(values.dtype).eps
    for place, beside in enumerate((numbers, numbers * (1 - step / 2), numbers * (1 + step))):
        part = flat[place::4]
        part[:] = beside[: part.numel()]
    return changed


def extreme(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` of magnitudes whose squares are beyond their type, in turns two that are too large and one that is too small."""
    import torch

    if not values.dtype.is_floating_point:
        return values
    found = torch.finfo(values.dtype)
    power = math.log2(found.max)
    changed = values.double()
    flat = changed.view(-1)
    for place, part in enumerate((0.52, 0.78, -0.65)):
        flat[place::3] *= 2.0 ** round(part * power)
    return changed.clamp(-found.max / 4, found.max / 4).to(values.dtype)


def planted(values: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
    """Returns `values` of which some are the `numbers`, those that their type holds: what is decided by a number is decided at that number."""
    import torch

    held = [number for number in numbers if float(torch.tensor(number, dtype=values.dtype)) == number]
    changed = values.clone()
    for place, number in enumerate(held):
        # Of few values all are.
        is_few = values.numel() <= 2 * len(held)
        where = slice(place, None, len(held)) if is_few else slice(2 * place + 1, None, 2 * len(held) + 1)
        changed.view(-1)[where] = number
    return changed


def ties(values: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns `values`; each second one is replaced by the value of `other` at its place, where `other` repeats if it is shorter. Nothing is replaced where `other` has no elements."""
    import torch

    if other.numel() == 0:
        return values

    changed = values.clone()
    places = torch.arange(0, values.numel(), 2, device=values.device)
    changed.view(-1)[places] = other.reshape(-1)[places % other.numel()].to(values.dtype)
    return changed


KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "offset": offset,
    "level": level,
    "halves": halves,
    "infinite-rows": infinite_rows,
    "nan-rows": nan_rows,
    "below": below,
    "sunk": sunk,
    "void": void,
    "runs": runs,
    "zeros": zeros,
    "zero": nothing,
    "one-nan": one_of(math.nan),
    "one-inf": one_of(math.inf),
    "one-negative-inf": one_of(-math.inf),
    "first-nan": first,
    "eighths": eighths,
    "ends": ends,
    "late": late,
    "masked": masked,
    "low": low,
    "denormal": denormal,
    "cancelling": cancelling,
    "extreme": extreme,
    "limits": unusual_integers.limits,
    "neighbours": unusual_integers.neighbours,
    "positive": positive,
    "small": small,
    "tails": tails,
    "powers": powers,
    "counts": unusual_integers.counts,
    "long-count": unusual_integers.long_count,
    "false": unusual_integers.false,
    "true": unusual_integers.true,
    "late-true": unusual_integers.late_true,
}
"""Kind of values → the function that makes them from dense ones, of which there is at least one."""
