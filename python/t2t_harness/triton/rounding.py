"""Arithmetic rounded as libdevice's functions name it: to nearest even, towards zero, down or up, and exactly so, by fractions.

It knows nothing of Triton.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

EXACT: dict[str, Callable[..., Fraction]] = {
    "value": lambda x: x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}

ADDENDS: dict[str, Callable[..., tuple[float, float]]] = {
    "add": lambda x, y: (x, y),
    "sub": lambda x, y: (x, -y),
    "fma": lambda x, y, z: (x * y, z),
}
"""What is added up: the sign of a sum that is zero follows from it."""

LEAST = Fraction(1, 2**4400)
"""Less than two results of doubles can be apart without being equal."""


def operation(name: str, mode: str, operands: list[Any], dtype: Any) -> Any:
    """Returns the operation `name` of EXACT, or `sqrt`, on arrays, in `dtype`, rounded as `mode` says: `rn`, `rz`, `rd`
    or `ru`."""
    usual = nearest(name, operands, dtype)
    if mode == "rn" and (name != "fma" or dtype == np.float64):
        return usual
    if mode == "rn":
        return fused(*operands)
    columns = [np.broadcast_to(one, usual.shape).ravel() for one in operands]
    rows = zip(usual.ravel(), *columns, strict=True)
    results = [one_result(name, mode, dtype, first, [value.item() for value in row]) for first, *row in rows]
    return np.array(results, dtype=dtype).reshape(usual.shape)


def nearest(name: str, operands: list[Any], dtype: Any) -> Any:
    """Returns the operation rounded to nearest even; an `fma` of floats is rounded twice."""
    x, *rest = operands
    if name == "value":
        return x.astype(dtype)
    if name in ("sqrt", "rcp"):
        return np.sqrt(x) if name == "sqrt" else dtype.type(1) / x
    if name == "fma" and dtype == np.float64:
        return np.vectorize(fused_double, otypes=[np.float64])(x, *rest)
    if name == "fma":
        return x * rest[0] + rest[1]
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
    return functions[name](x, rest[0])


def fused(x: Any, y: Any, z: Any) -> Any:
    """Returns `x * y + z` of float32 arrays, rounded once: the product is exact in float64."""
    return odd_sum(np.multiply(x, y, dtype=np.float64), z).astype(np.float32)


def odd_sum(product: Any, addend: Any) -> Any:
    """Returns a sum in float64, rounded to odd: no further rounding to fewer bits can go wrong."""
    product, addend = np.asarray(product, dtype=np.float64), np.asarray(addend, dtype=np.float64)
    total = np.asarray(product + addend)
    back = total - product
    error = np.asarray((product - (total - back)) + (addend - back))
    bits = total.view(np.int64)
    is_open = np.isfinite(total) & (error != 0) & (bits % 2 == 0)
    odd = np.where(is_open, bits + np.where((error > 0) == (total > 0), 1, -1), bits)
    return odd.view(np.float64)


def fused_double(x: float, y: float, z: float) -> float:
    """Returns `x * y + z` rounded once."""
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z if x * y == 0 else 0.0
    return as_double(exact)


def as_double(exact: Fraction) -> float:
    """Returns `exact` rounded to nearest even."""
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def one_result(name: str, mode: str, dtype: Any, usual: Any, operands: list[float]) -> Any:
    """Returns one element, not rounded to nearest; `usual` is so, and right where the exact result is no number."""
    divides_by_zero = name in ("div", "rcp") and operands[-1] == 0
    if divides_by_zero or not all(map(math.isfinite, operands)) or (name == "sqrt" and operands[0] <= 0):
        return usual
    if name == "sqrt":
        square = Fraction(operands[0])
        return directed(mode, dtype, float(usual), lambda value: value >= 0 and value * value > square)
    exact = EXACT[name](*map(Fraction, operands))
    if exact != 0:
        return directed(mode, dtype, as_double(exact), lambda value: value > exact)
    if name in ADDENDS and any(math.copysign(1, addend) < 0 for addend in ADDENDS[name](*operands)):
        # Opposite addends make -0 where rounding goes down, and +0 elsewhere; two times -0 is -0.
        is_positive = mode != "rd" and any(math.copysign(1, addend) > 0 for addend in ADDENDS[name](*operands))
        return dtype.type(0.0 if is_positive else -0.0)
    return usual


def directed(mode: str, dtype: Any, near: float, exceeds: Callable[[Fraction], bool]) -> Any:
    """Returns the value of `dtype` next to the exact one, which is not zero, in the direction of `mode`: `exceeds` tells
    whether a fraction is above it, and `near` is at most a few values away."""
    infinity, largest = dtype.type(np.inf), float(np.finfo(dtype).max)
    value = dtype.type(min(max(near, -largest), largest))
    # `value` becomes the largest that is not above the exact one.
    while np.isfinite(value) and exceeds(Fraction(float(value))):
        value = np.nextafter(value, -infinity)
    above = np.nextafter(value, infinity)
    while np.isfinite(above) and not exceeds(Fraction(float(above))):
        value, above = above, np.nextafter(above, infinity)
    is_negative = exceeds(Fraction(0))
    goes_up = mode == "ru" or (mode == "rz" and is_negative)
    is_met = np.isfinite(value) and exceeds(Fraction(float(value)) + LEAST)
    result = above if goes_up and not is_met else value
    return dtype.type(-0.0) if result == 0 and is_negative else result
