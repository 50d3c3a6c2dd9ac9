"""Functions of integers and of the bits of numbers as CUDA's libdevice has them, on numpy arrays. It knows nothing of Triton."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., object]


def bits_of(x: Any) -> tuple[Any, int]:
    """Returns integers as unsigned ones, and how many bits they have."""
    x = np.ascontiguousarray(x)
    return x.view(f"uint{x.itemsize * 8}"), x.itemsize * 8


def by_bits(function: Callable[[int, int], int]) -> Function:
    """Returns a function of an integer's bits and their number, element by element."""

    def applied(x: Any, dtype: Any) -> Any:
        bits, width = bits_of(x)
        results = np.array([function(int(one), width) for one in bits.ravel()], dtype=np.uint64)
        return results.reshape(bits.shape).astype(f"uint{dtype.itemsize * 8}").view(dtype)

    return applied


def reversed_bits(bits: int, width: int) -> int:
    """Returns the bits in the other order."""
    return int(f"{bits:0{width}b}"[::-1], 2)


def first_bit(bits: int, width: int) -> int:
    """Returns the place of the lowest bit that is set, from 1 on; 0 where none is."""
    return (bits & -bits).bit_length()


def by_integers(function: Callable[..., int]) -> Function:
    """Returns a function of integers without bounds, element by element, cut to the result's bits."""

    def applied(*operands: Any, dtype: Any) -> Any:
        columns = np.broadcast_arrays(*operands)
        width = dtype.itemsize * 8
        found = [function(*map(int, row)) % 2**width for row in zip(*(one.ravel() for one in columns), strict=True)]
        return np.array(found, dtype=f"uint{width}").view(dtype).reshape(columns[0].shape)

    return applied


def low_24(x: int, is_signed: bool) -> int:
    """Returns the 24 lowest bits of an integer, as a number."""
    low = x % 2**24
    return low - 2**24 if is_signed and low >= 2**23 else low


def permuted_bytes(x: int, y: int, selector: int) -> int:
    """Returns four of the eight bytes of two integers, each chosen by three bits of a nibble."""
    both = (x % 2**32) | (y % 2**32) << 32
    return sum((both >> 8 * (selector >> 4 * place & 7) & 255) << 8 * place for place in range(4))


def viewed(x: Any, dtype: Any) -> Any:
    """Returns the same bits as another type."""
    return np.ascontiguousarray(x).view(dtype)


def half_of_double(place: int) -> Function:
    """Returns the function that takes the low (0) or the high (1) half of a double's bits."""

    def taken(x: object, dtype: object) -> object:
        return (np.ascontiguousarray(x).view(np.uint64) >> np.uint64(32 * place)).astype(np.uint32).view(dtype)

    return taken


def joined(high: Any, low: Any, dtype: Any) -> Any:
    """Returns the double of two halves of its bits."""
    halves = [bits_of(one)[0].astype(np.uint64) for one in np.broadcast_arrays(high, low)]
    return (halves[0] << np.uint64(32) | halves[1]).view(dtype)
