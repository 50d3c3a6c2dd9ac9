"""Bessel functions of whole orders in float64, by their integrals, and by Hankel's series where the argument is large. It knows nothing of Triton."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

LARGE = 25.0
"""From here on Hankel's series has terms below a double's last bit."""

NODES = 400
"""Nodes of the quadrature below LARGE, where no integrand turns more often than a few dozen times."""


def first_kind(order: object, x: object) -> object:
    """Returns Jₙ(x); NaN for a negative order."""
    return np.vectorize(one_of_first_kind, otypes=[np.float64])(order, x)


def second_kind(order: object, x: object) -> object:
    """Returns Yₙ(x); NaN for a negative order or argument."""
    return np.vectorize(one_of_second_kind, otypes=[np.float64])(order, x)


def one_of_first_kind(order: float, x: float) -> float:
    """Returns Jₙ(x): upwards from orders 0 and 1 where n ≤ |x|, which is stable there, else by its integral over a period."""
    count, positive = int(order), abs(x)
    if count < 0 or math.isnan(x):
        return math.nan
    if math.isinf(x):
        return 0.0
    sign = -1.0 if x < 0 and count % 2 else 1.0
    if positive < LARGE or count > positive:
        angles = np.arange(points := 2 * (count + int(positive) + 64)) * (2 * np.pi / points)
        return sign * float(np.mean(np.cos(count * angles - positive * np.sin(angles))))
    return sign * upwards(count, positive, *(hankel(first, positive)[0] for first in (0, 1)))


def one_of_second_kind(order: float, x: float) -> float:
    """Returns Yₙ(x), upwards from orders 0 and 1, which is stable."""
    count = int(order)
    if count < 0 or math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return -math.inf if x == 0 else 0.0
    starts = (hankel(first, x)[1] if x >= LARGE else integrated(first, x) for first in (0, 1))
    return upwards(count, x, *starts)


def upwards(order: int, x: float, zeroth: float, first: float) -> float:
    """Returns the function of `order` from those of orders 0 and 1."""
    before, last = zeroth, first
    if order == 0:
        return before
    for n in range(1, order):
        before, last = last, 2 * n / x * last - before
        if math.isinf(last):
            break
    return last


def hankel(order: int, x: float) -> tuple[float, float]:
    """Returns Jₙ(x) and Yₙ(x) by their asymptotic series."""
    even, odd, term, k = 0.0, 0.0, 1.0, 0
    while abs(term) > 1e-18:
        sign = -1.0 if k % 4 > 1 else 1.0
        even, odd = (even + sign * term, odd) if k % 2 == 0 else (even, odd + sign * term)
        k += 1
        term *= (4 * order**2 - (2 * k - 1) ** 2) / (8 * x * k)
    phase = x - (2 * order + 1) * math.pi / 4
    scale = math.sqrt(2 / (math.pi * x))
    sine, cosine = math.sin(phase), math.cos(phase)
    return scale * (even * cosine - odd * sine), scale * (even * sine + odd * cosine)


def integrated(order: int, x: float) -> float:
    """Returns Yₙ(x) of a small argument by its integral."""
    nodes, weights = quadrature()
    angles = (nodes + 1) * (np.pi / 2)
    turning = np.sum(weights * np.sin(x * np.sin(angles) - order * angles)) / 2
    # From here on the integrand is nothing in a double.
    end = math.asinh(760 / x)
    steps = (nodes + 1) * (end / 2)
    growth = np.exp(order * steps) + (-1) ** order * np.exp(-order * steps)
    falling = np.sum(weights * growth * np.exp(-x * np.sinh(steps))) * (end / 2)
    return float(turning - falling / np.pi)


@functools.cache
def quadrature() -> tuple[Any, Any]:
    """Returns nodes and weights of Gauss's quadrature between -1 and 1."""
    return np.polynomial.legendre.leggauss(NODES)
