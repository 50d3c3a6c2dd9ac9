"""CUDA's libdevice for Triton's interpreter: the same functions, computed in float64 and rounded to the type that Triton's own tables name.

A device's `fast_` functions are less exact than these by what CUDA documents; where they leave the function's range, these do too. What cannot be
supplied is raised as `lacking.Lacking`, by name. Triton is imported nowhere here, torch only inside functions.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from t2t_harness.faults.lacking import Lacking
from t2t_harness.triton import bessel, bitwise, rounding, special

Function = Callable[..., Any]

DIRECTED = re.compile(r"__nv_([fd])(add|sub|mul|div|rcp|sqrt)_(r[nzdu])$|__nv_(fma)f?_(r[nzdu])$")
CONVERSION = re.compile(r"__nv_(double|float|u?int|u?ll)2(double|float|u?int|u?ll)_(r[nzdu])$")

PLAIN = (
    "floor", "ceil", "trunc", "rint", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "sqrt", "cbrt", "hypot", "fmod", "copysign",
)  # fmt: skip
"""Functions that numpy has under the same name."""


def call(symbol: str, operands: list[Any], dtype: Any) -> Any:
    """Returns what the libdevice function `symbol` makes of arrays, in numpy's `dtype`.

    Raises Lacking for what is not supplied.
    """
    with np.errstate(all="ignore"):
        return np.asarray(function_of(symbol)(*operands, dtype=dtype))


def function_of(symbol: str) -> Function:
    """Returns the function behind `symbol`, of arrays and, by name, of the result's `dtype`. Raises Lacking."""
    name = symbol.removeprefix("__nv_")
    if found := DIRECTED.match(symbol):
        operation, mode = found[2] or found[4], found[3] or found[5]
        return lambda *operands, dtype: rounding.operation(operation, mode, list(operands), dtype)
    if found := CONVERSION.match(symbol):
        target, mode = found[2], found[3]
        return lambda value, dtype: converted(value, target, mode, dtype)
    if name in INTEGERS:
        return INTEGERS[name]
    for real in (name, name.removesuffix("f"), name.removesuffix("d"), name.removeprefix("fast_").removesuffix("f")):
        if real in REALS:
            return functools.partial(in_double, REALS[real])
        if real in TYPED:
            return TYPED[real]
    raise Lacking(f"the library function `{symbol}`")


def in_double(function: Function, *operands: Any, dtype: Any) -> Any:
    """Returns `function` of the operands in float64, rounded to `dtype`."""
    return np.asarray(function(*(np.asarray(one, dtype=np.float64) for one in operands))).astype(dtype)


def fused(x: Any, y: Any, z: Any, dtype: Any) -> Any:
    """Returns `x * y + z`, rounded once."""
    return rounding.operation("fma", "rn", [x, y, z], dtype)


def converted(value: Any, target: str, mode: str, dtype: Any) -> Any:
    """Returns a float as an integer, clamped to its range, or a number as a float, rounded as `mode` says."""
    if target in ("float", "double"):
        return rounding.operation("value", mode, [value], np.dtype(np.float32 if target == "float" else np.float64))
    kind = np.dtype({"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}[target])
    rounds = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}[mode]
    return integer(rounds(np.asarray(value, dtype=np.float64)), kind, value.dtype == np.float64).view(dtype)


def to_long(rounds: Function) -> Function:
    """Returns a function to 64-bit integers, clamped as PTX clamps."""
    return lambda x, dtype: integer(rounds(np.asarray(x, dtype=np.float64)), np.dtype(np.int64), True).astype(dtype)


def integer(whole: Any, kind: Any, from_double: bool) -> Any:
    """Returns whole doubles as integers of `kind`, as PTX converts: clamped; NaN is 0 in 32 bits from a float, else the top bit alone."""
    limits = np.iinfo(kind)
    of_nan = 0 if kind.itemsize == 4 and not from_double else 1 << (kind.itemsize * 8 - 1)
    nan = np.array(of_nan, dtype=f"uint{kind.itemsize * 8}").view(kind)
    is_low, is_high = whole <= float(limits.min), whole >= float(limits.max)
    inside = np.where(is_low | is_high | np.isnan(whole), 0, whole).astype(kind)
    clamped = np.where(is_low, kind.type(limits.min), np.where(is_high, kind.type(limits.max), inside))
    return np.where(np.isnan(whole), nan, clamped)


def tells(name: str) -> Function:
    """Returns numpy's question `name` with 1 for yes."""
    return lambda x, dtype: getattr(np, name)(x).astype(dtype)


REALS: dict[str, Function] = {
    **{name: getattr(np, name) for name in PLAIN},
    **{name: special.by_torch(name) for name in ("erf", "erfc", "erfcx", "erfinv")},
    "fabs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "pow": np.power,
    "powi": np.power,
    "powif": np.power,
    "fast_powf": lambda x, y: np.exp2(y * np.log2(x)),
    "fast_fdividef": special.quotient,
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "frsqrt_rn": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "norm3d": lambda x, y, z: np.hypot(np.hypot(x, y), z),
    "rnorm3d": lambda x, y, z: 1 / np.hypot(np.hypot(x, y), z),
    "norm4d": lambda x, y, z, w: np.hypot(np.hypot(x, y), np.hypot(z, w)),
    "rnorm4d": lambda x, y, z, w: 1 / np.hypot(np.hypot(x, y), np.hypot(z, w)),
    "saturate": lambda x: np.fmin(np.fmax(x, 0.0), 1.0),
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0.0)),
    "remainder": special.by_math(math.remainder),
    "round": special.rounded_away,
    "nearbyint": np.rint,
    "logb": special.exponent,
    "sinpi": special.sine_of_pi,
    "cospi": special.cosine_of_pi,
    "tgamma": special.gamma,
    "lgamma": special.by_torch("lgamma"),
    "erfcinv": lambda x: -special.by_torch("ndtri")(x / 2) / math.sqrt(2),
    "normcdf": lambda x: special.by_torch("erfc")(-x / math.sqrt(2)) / 2,
    "normcdfinv": special.by_torch("ndtri"),
    "cyl_bessel_i0": special.by_torch("i0"),
    "cyl_bessel_i1": special.by_torch("i1"),
    "j0": functools.partial(bessel.first_kind, 0),
    "j1": functools.partial(bessel.first_kind, 1),
    "y0": functools.partial(bessel.second_kind, 0),
    "y1": functools.partial(bessel.second_kind, 1),
    "jn": bessel.first_kind,
    "yn": bessel.second_kind,
}
"""Functions of real numbers by their names for doubles, and where those of floats differ, by theirs."""

TYPED: dict[str, Function] = {
    "fma": fused,
    "ldexp": special.scaled,
    "scalbn": special.scaled,
    "ilogb": special.integer_exponent,
    "nextafter": special.next_after,
    "signbit": special.sign_of,
    "isnan": tells("isnan"),
    "isinf": tells("isinf"),
    "isfinite": tells("isfinite"),
    "finite": tells("isfinite"),
    "llrint": to_long(np.rint),
    "llround": to_long(special.rounded_away),
    "float_as_int": bitwise.viewed,
    "float_as_uint": bitwise.viewed,
    "int_as_float": bitwise.viewed,
    "uint_as_float": bitwise.viewed,
    "double_as_longlong": bitwise.viewed,
    "longlong_as_double": bitwise.viewed,
    "double2loint": bitwise.half_of_double(0),
    "double2hiint": bitwise.half_of_double(1),
    "hiloint2double": bitwise.joined,
}
"""Functions whose operands or results are not all real numbers of one type."""

INTEGERS: dict[str, Function] = {
    **dict.fromkeys(("abs", "llabs"), bitwise.by_integers(abs)),
    **dict.fromkeys(("clz", "clzll"), bitwise.by_bits(lambda bits, width: width - bits.bit_length())),
    **dict.fromkeys(("popc", "popcll"), bitwise.by_bits(lambda bits, width: bits.bit_count())),
    **dict.fromkeys(("brev", "brevll"), bitwise.by_bits(bitwise.reversed_bits)),
    **dict.fromkeys(("ffs", "ffsll"), bitwise.by_bits(bitwise.first_bit)),
    **dict.fromkeys(("mulhi", "umulhi"), bitwise.by_integers(lambda x, y: x * y >> 32)),
    **dict.fromkeys(("mul64hi", "umul64hi"), bitwise.by_integers(lambda x, y: x * y >> 64)),
    **dict.fromkeys(("hadd", "uhadd"), bitwise.by_integers(lambda x, y: (x + y) >> 1)),
    **dict.fromkeys(("rhadd", "urhadd"), bitwise.by_integers(lambda x, y: (x + y + 1) >> 1)),
    **dict.fromkeys(("sad", "usad"), bitwise.by_integers(lambda x, y, z: abs(x - y) + z)),
    "mul24": bitwise.by_integers(lambda x, y: bitwise.low_24(x, True) * bitwise.low_24(y, True)),
    "umul24": bitwise.by_integers(lambda x, y: bitwise.low_24(x, False) * bitwise.low_24(y, False)),
    "byte_perm": bitwise.by_integers(bitwise.permuted_bytes),
}
