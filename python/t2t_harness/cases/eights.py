"""Inputs in float8. torch computes next to nothing in it, so that their values are made in float32, and become float8 last.

torch is imported only inside functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration

EIGHTS = ("float8_e4m3fn", "float8_e5m2")
"""Floats of one byte. An input may be of such a type, an op is never tested in one."""

SCALES = "float8_e8m0fnu"
"""The type that has powers of two alone, and no sign, as of the scales of MX formats. Results may be of it."""


def has_some(declaration: Declaration) -> bool:
    """Tells whether an input is in float8."""
    return any(given["dtype"] in EIGHTS for given in tensors(declaration))


def made_in(name: str) -> str:
    """Returns the dtype in which values of the dtype called `name` are made."""
    return "float32" if name in EIGHTS else name


def narrowed(values: torch.Tensor, name: str) -> torch.Tensor:
    """Returns `values` of float32 in the float8 called `name`, finite ones no further from zero than its largest number: torch makes NaN, or an infinity, of what lies beyond. Values of other dtypes are as they are."""
    import torch

    if name not in EIGHTS:
        return values
    dtype = getattr(torch, name)
    most = torch.finfo(dtype).max
    return values.clamp(-most, most).where(values.isfinite(), values).to(dtype)


def moved(values: torch.Tensor, places: int) -> torch.Tensor:
    """Returns the elements of `values`, of any dtype, so many places further on, the last ones first. On a device torch moves none of float8: their bytes are moved."""
    import torch

    if str(values.dtype).removeprefix("torch.") not in EIGHTS:
        return values.roll(places)
    return values.view(torch.uint8).roll(places).view(values.dtype)


def finite(name: str) -> torch.Tensor:
    """Returns all finite numbers of the float8 called `name`, zero with both signs, in float32 and in the order of their bits."""
    import torch

    known = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name)).float()
    return known[known.isfinite()]
