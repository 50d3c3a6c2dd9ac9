"""Functions of real numbers as CUDA's libdevice has them, in float64 on numpy arrays. It knows nothing of Triton.

torch is imported only inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def by_torch(name: str) -> Function:
    """Returns torch's `name` of `torch.special`, or of torch."""

    def function(*operands: Any) -> Any:
        import torch

        home = torch.special if hasattr(torch.special, name) else torch
        return getattr(home, name)(*(torch.tensor(np.asarray(one, dtype=np.float64)) for one in operands)).numpy()

    return function


def by_math(function: Callable[..., float], fails: float = math.nan) -> Function:
    """Returns a function of Python's `math`, element by element; `fails` is the result where it raises ValueError."""

    def element(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return fails
        except OverflowError:
            return math.inf

    return np.vectorize(element, otypes=[np.float64])


def rounded_away(x: Any) -> Any:
    """Returns C's `round`: halves away from zero."""
    whole = np.trunc(x)
    return np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x)


def sine_of_pi(x: Any) -> Any:
    """Returns sin(πx), exactly zero at integers."""
    rest = np.fmod(x, 2.0)
    rest = np.where(np.abs(rest) > 1.5, rest - np.copysign(2.0, rest), rest)
    rest = np.where(np.abs(rest) > 0.5, np.copysign(1.0, rest) - rest, rest)
    return np.copysign(np.sin(np.pi * rest), np.where(rest == 0, x, rest))


def cosine_of_pi(x: Any) -> Any:
    """Returns cos(πx), exactly zero halfway between integers."""
    rest = np.abs(np.fmod(x, 2.0))
    rest = np.where(rest > 1.0, 2.0 - rest, rest)
    return np.where(np.abs(rest - 0.5) <= 0.25, np.sin(np.pi * (0.5 - rest)), np.cos(np.pi * rest))


def gamma(x: Any) -> Any:
    """Returns the gamma function; CUDA has infinities at zeros, and NaN at negative integers and at -inf."""

    def element(value: float) -> float:
        if value == 0:
            return math.copysign(math.inf, value)
        return math.gamma(value)

    return np.asarray(by_math(element)(x))


def quotient(x: Any, y: Any) -> Any:
    """Returns CUDA's fast division: nothing is left of a quotient by more than 2¹²⁶, and infinity makes NaN of it."""
    is_huge = (np.abs(y) > 2.0**126) & np.isfinite(y)
    return np.where(is_huge, np.where(np.isinf(x), np.nan, np.copysign(0.0, x) * np.copysign(1.0, y)), x / y)


def exponent(x: Any) -> Any:
    """Returns C's `logb`."""
    special = np.where(x == 0, -np.inf, np.where(np.isnan(x), np.nan, np.inf))
    return np.where(np.isfinite(x) & (x != 0), np.frexp(x)[1] - 1.0, special)


def integer_exponent(x: Any, dtype: Any) -> Any:
    """Returns C's `ilogb`, with CUDA's integers for what has none."""
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    found = exponent(np.asarray(x, dtype=np.float64))
    special = np.where(np.isinf(x), most, least)
    return np.where(np.isfinite(found), np.nan_to_num(found, posinf=0, neginf=0), special).astype(dtype)


def scaled(x: Any, power: Any, dtype: Any) -> Any:
    """Returns x·2ⁿ, rounded once."""
    return np.ldexp(np.asarray(x, dtype=np.float64), np.clip(power, -5000, 5000)).astype(dtype)


def sign_of(x: Any, dtype: Any) -> Any:
    """Returns 1 where the sign bit is set."""
    return np.signbit(x).astype(dtype)


def next_after(x: Any, y: Any, dtype: Any) -> Any:
    """Returns the neighbour of `x` in its own type."""
    return np.nextafter(x, y).astype(dtype)
