"""How the interpreter's usual operations are done by a shorter way (`shortcuts.py`): one value for each operation on operands of known types and lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Way:
    """How an operation on operands of known types and lengths is done."""

    held: tuple[Any, ...]
    """What its key was made of: while these are held, nothing else has their ids."""
    takes: tuple[Any, Any]
    """numpy's dtypes of the operands, as they come."""
    turns: tuple[Any, Any]
    """numpy's dtypes that the operands are converted to; None where one stays as it is."""
    effort: float
    """What counts for the values that Triton would make, as `effort.Meter` counts them."""
    element: Any
    """Triton's dtype of the result's elements."""
    kind: Any
    """Triton's type of the result."""
    shape: Any
    numel: Any
    width: int = 0
    """The bytes that a pointer is moved by for each element; 0 where no pointer is moved."""
    least: int = 0
    most: int = 0
    """The integers that may be operands."""
