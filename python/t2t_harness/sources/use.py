"""What is known of an argument of a function from code: how many dims it has, whether it holds places, what may be said of it by two functions.

It does not know how that is found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass
class Use:
    """What is known of one argument."""

    dims: list[str] | None = None
    """The names of its dims, in order; `_` where one has none."""
    least: int = 0
    """It has at least so many dims."""
    most: int | None = None
    """It has at most so many."""
    is_tensor: bool = False
    is_number: bool = False
    is_whole: bool = False
    """Of a number: whether it is a whole one."""
    is_flag: bool = False
    """Whether something branches on it."""
    is_mask: bool = False
    """Whether it is a tensor of booleans."""
    is_offsets: bool = False
    """Whether it says where segments begin."""
    is_bits: bool = False
    """Whether its bits are shifted or masked."""
    is_wide: bool = False
    """Whether bits beyond a byte are."""
    is_widened: bool = False
    """Whether it is made a float before anything else."""
    dtype: str | None = None
    """Its dtype, where that does not follow the tested one."""
    is_written_at: bool = False
    """Whether something is written at the places that it holds: twice at one would be in no order."""
    places: list[tuple[str, int]] = field(default_factory=list)
    """The arguments, and their dims, in which it holds places."""
    fixed: dict[int, int] = field(default_factory=dict)
    """The lengths of dims of which each place is named by number, by dim."""
    parts: dict[int, int] = field(default_factory=dict)
    """Into how many parts of one length a dim is cut, by dim."""


def joined(own: Use | None, wrapped: Use | None, meant: Mapping[str, str]) -> Use:
    """Returns what the code of one function says of an argument, and what that of another adds which is called with it; `meant` has what the other calls each argument."""
    first, second = own or Use(), wrapped or Use()
    names = {theirs: name for name, theirs in meant.items()}
    dims = first.dims or (second.dims if second.dims is not None and len(second.dims) >= first.least else None)
    return replace(
        first,
        dims=dims,
        least=max(first.least, second.least),
        most=first.most if first.most is not None else second.most,
        is_tensor=first.is_tensor or (second.is_tensor and not first.is_number),
        is_number=first.is_number or (second.is_number and not first.is_tensor),
        is_whole=first.is_whole or second.is_whole,
        is_flag=first.is_flag or (second.is_flag and not first.is_tensor),
        is_mask=first.is_mask or second.is_mask,
        is_offsets=first.is_offsets or second.is_offsets,
        is_written_at=first.is_written_at or second.is_written_at,
        is_bits=first.is_bits or second.is_bits,
        is_wide=first.is_wide or second.is_wide,
        is_widened=first.is_widened or second.is_widened,
        dtype=first.dtype or second.dtype,
        places=first.places or [(names.get(other, other), at) for other, at in second.places],
        fixed=first.fixed or second.fixed,
        parts=first.parts or second.parts,
    )
