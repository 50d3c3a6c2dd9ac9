"""Places of a result where nothing is asked: torch has a number there that ops.yaml names, as in padding that a kernel does not write. torch is imported only inside functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import ComparedOutput

NAN = "nan"
"""The word for a NaN."""


def places(how: ComparedOutput, right: torch.Tensor) -> torch.Tensor | None:
    """Returns where nothing is asked of a result whose right values are `right`; None where that is nowhere."""
    told = how.get("unset")
    if told is None or right.dtype.is_complex:
        return None
    wide = right.float() if right.dtype.is_floating_point and right.dtype.itemsize == 1 else right
    if told == NAN:
        return wide.isnan() if right.dtype.is_floating_point else None
    # A number as the result's type has it, which a float32 may have rounded.
    return wide == wide.new_tensor(told) if not isinstance(told, str) else None
