"""Rows of a tensor: runs along its last dim."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def rows_of(values: torch.Tensor) -> torch.Tensor:
    """Returns `values`, which are dense, as rows that share their memory."""
    return values.view(-1, values.shape[-1] if values.dim() > 0 else 1)
