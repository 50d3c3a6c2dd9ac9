"""Integers and booleans that inputs seldom have. torch is imported only inside functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_harness.cases.rows import rows_of

if TYPE_CHECKING:
    import torch


def limits(values: torch.Tensor) -> torch.Tensor:
    """Returns integers; two in three are the largest of their type and one less. Of the rest each second one is minus one, or one whose lower half is zero. The smallest is left out: no processor divides by it."""
    import torch

    if values.dtype.is_floating_point or values.dtype is torch.bool:
        return values
    changed = values.clone()
    flat = changed.view(-1)
    flat[0::3] = torch.iinfo(values.dtype).max
    flat[1::3] = torch.iinfo(values.dtype).max - 1
    flat[2::12] = -1 if values.dtype.is_signed else 1
    flat[5::12] = 1 << (4 * values.dtype.itemsize)
    return changed


def neighbours(values: torch.Tensor) -> torch.Tensor:
    """Returns integers that are odd or even as `values` are, and so large that a floating type of half their bits, and every other one a float32 or float64, does not tell one from the next."""
    import torch

    powers = {torch.int16: (12, 14), torch.int32: (24, 30), torch.int64: (24, 53)}.get(values.dtype)
    if powers is None:
        return values
    changed = values.clone()
    flat = changed.view(-1)
    signs = 1 - (flat & 2)
    for place, power in enumerate(powers):
        flat[place::2] = (flat[place::2] & 1) + (1 << power)
    return changed.mul_(signs.view_as(changed))


def false(values: torch.Tensor) -> torch.Tensor:
    """Returns booleans of which none is true."""
    import torch

    return torch.zeros_like(values)


def true(values: torch.Tensor) -> torch.Tensor:
    """Returns booleans that are all true."""
    import torch

    return torch.ones_like(values)


def late_true(values: torch.Tensor) -> torch.Tensor:
    """Returns booleans that are true in the last quarter of each row alone, as a mask of what was padded on the left."""
    import torch

    changed = torch.ones_like(values)
    rows = rows_of(changed)
    rows[:, : 3 * rows.shape[1] // 4] = False
    return changed


def bounds(values: torch.Tensor, low: int, high: int) -> torch.Tensor:
    """Returns integers of the shape of `values`: the first half of each row `low`, the others `high`. What lies between two of them is nothing, or all."""
    changed = values.clone()
    rows = rows_of(changed)
    middle = (rows.shape[1] + 1) // 2
    rows[:, :middle] = low
    rows[:, middle:] = high
    return changed


def negative(values: torch.Tensor, places: int) -> torch.Tensor:
    """Returns indices that mean what `values` do, of which each second one counts from the end of so many `places`."""
    changed = values.clone()
    counted = changed.view(-1)[0::2]
    counted -= places * (counted >= 0)
    return changed


def counts(values: torch.Tensor) -> torch.Tensor:
    """Returns counts of which the second one is 259 and the last but one 67, of one alone 259."""
    changed = values.clone()
    flat = changed.view(-1)
    flat[flat.numel() - min(flat.numel(), 2)] = 67
    flat[min(flat.numel() - 1, 1)] = 259
    return changed


def long_count(values: torch.Tensor) -> torch.Tensor:
    """Returns counts of which the one in the middle is 1031."""
    changed = values.clone()
    changed.view(-1)[values.numel() // 2] = 1031
    return changed
