"""CUDA's libdevice on the interpreter: every function that Triton names is there, and is what CUDA's documents say of it."""

from __future__ import annotations

import math
import re
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

import numpy as np
import pytest
import triton.language.extra.cuda.libdevice as cuda

from t2t_harness.faults import lacking
from t2t_harness.triton import libdevice

inf, nan = math.inf, math.nan

NOT_SUPPLIED = {"__nv_rcp64h"}
"""The upper half of an approximate reciprocal: no document says which bits it has."""


def symbols() -> list[str]:
    return sorted(set(re.findall(r'"(__nv_\w+)"', Path(cuda.__file__).read_text())))


def value(symbol: str, *operands: float, kinds: str = "f", result: str = "f4") -> float:
    """Returns a function of numbers: `kinds` are numpy's types of the operands, the last for all further ones."""
    types = [kinds.split()[min(place, len(kinds.split()) - 1)] for place in range(len(operands))]
    arrays = [np.array([one], dtype="f4" if kind == "f" else kind) for one, kind in zip(operands, types, strict=True)]
    return libdevice.call(symbol, arrays, np.dtype(result))[0].item()


def test_every_function_that_triton_names_is_supplied_or_lacking_by_name() -> None:
    assert len(symbols()) > 300
    for symbol in symbols():
        if symbol in NOT_SUPPLIED:
            with pytest.raises(lacking.Lacking, match=symbol):
                libdevice.function_of(symbol)
        else:
            libdevice.function_of(symbol)


REALS = [
    # Values of tables, to all digits of a float.
    ("rsqrt", (4.0,), 0.5),
    ("tanh", (0.5,), 0.46211715726000975),
    ("erf", (1.0,), 0.8427007929497149),
    ("erfc", (2.0,), 0.004677734981047266),
    ("erfcx", (10.0,), 0.05614099274382259),
    ("erfinv", (0.5,), 0.4769362762044699),
    ("erfcinv", (1e-10,), 4.572824967389486),
    ("normcdf", (-5.0,), 2.866515718791939e-07),
    ("normcdfinv", (0.75,), 0.6744897501960817),
    ("lgamma", (10.5,), 13.940625219403763),
    ("tgamma", (5.5,), 52.34277778455352),
    ("j0", (2.5,), -0.048383776468198),
    ("j1", (-6.0,), 0.27668385812756563),
    ("j0", (30.0,), -0.08636798358104021),
    ("y0", (6.0,), -0.28819468398157916),
    ("y0", (2.0**-10,), -4.486515076710974),
    ("y1", (2.0**-10,), -651.9009930106312),
    ("y1", (30.0,), 0.08442557066174723),
    ("cyl_bessel_i0", (1.5,), 1.646723189772891),
    ("cyl_bessel_i1", (1.5,), 0.981666428577908),
    ("pow", (2.0, 0.5), math.sqrt(2)),
    ("sinpi", (0.25,), math.sqrt(0.5)),
    ("cospi", (0.25,), math.sqrt(0.5)),
    ("exp10", (2.0,), 100.0),
    ("cbrt", (-27.0,), -3.0),
    ("rcbrt", (8.0,), 0.5),
    ("hypot", (3.0, 4.0), 5.0),
    ("rhypot", (3.0, 4.0), 0.2),
    ("norm3d", (2.0, 3.0, 6.0), 7.0),
    ("rnorm3d", (2.0, 3.0, 6.0), 1 / 7),
    ("norm4d", (1.0, 2.0, 2.0, 4.0), 5.0),
    ("rnorm4d", (1.0, 2.0, 2.0, 4.0), 0.2),
    ("log1p", (2.0**-27,), 7.4505805691682525e-09),
    ("expm1", (2.0**-27,), 7.450580624679404e-09),
    ("atan2", (1.0, -1.0), 3 * math.pi / 4),
    ("fdim", (3.0, 1.0), 2.0),
    ("fmod", (-7.0, 3.0), -1.0),
    ("remainder", (8.0, 3.0), -1.0),
    # Special values, as the CUDA Math API lists them.
    ("rsqrt", (0.0,), inf),
    ("rsqrt", (-0.0,), -inf),
    ("rsqrt", (-1.0,), nan),
    ("tanh", (inf,), 1.0),
    ("erf", (-inf,), -1.0),
    ("erfinv", (1.0,), inf),
    ("erfinv", (2.0,), nan),
    ("erfcinv", (0.0,), inf),
    ("erfcinv", (2.0,), -inf),
    ("normcdfinv", (0.0,), -inf),
    ("lgamma", (-2.0,), inf),
    ("lgamma", (-inf,), inf),
    ("tgamma", (-0.0,), -inf),
    ("tgamma", (-2.0,), nan),
    ("tgamma", (-inf,), nan),
    ("tgamma", (inf,), inf),
    ("pow", (-8.0, 1 / 3), nan),
    ("pow", (-1.0, inf), 1.0),
    ("pow", (1.0, nan), 1.0),
    ("pow", (nan, 0.0), 1.0),
    ("pow", (-0.0, -3.0), -inf),
    ("log", (0.0,), -inf),
    ("log1p", (-1.0,), -inf),
    ("acosh", (0.5,), nan),
    ("atanh", (1.0,), inf),
    ("sinpi", (3.0,), 0.0),
    ("sinpi", (inf,), nan),
    ("cospi", (0.5,), 0.0),
    ("y0", (0.0,), -inf),
    ("y1", (-1.0,), nan),
    ("j0", (inf,), 0.0),
    ("logb", (0.0,), -inf),
    ("logb", (-inf,), inf),
    ("logb", (0.15625,), -3.0),
    ("fdim", (1.0, 3.0), 0.0),
    ("fmod", (1.0, 0.0), nan),
    ("remainder", (inf, 1.0), nan),
    ("remainder", (5.0, 2.0), 1.0),
    ("round", (2.5,), 3.0),
    ("round", (-0.5,), -1.0),
    ("rint", (2.5,), 2.0),
    ("nearbyint", (-3.5,), -4.0),
    ("copysign", (3.0, -0.0), -3.0),
]


@pytest.mark.parametrize(("name", "operands", "expected"), REALS)
def test_a_real_function_is_the_documented_one(name: str, operands: tuple[float, ...], expected: float) -> None:
    rounded = np.float32(expected)
    assert np.array_equal(np.float32(value(f"__nv_{name}f", *operands)), rounded, equal_nan=True)
    # Of a double: CUDA documents errors of up to 10 ulp of these functions, and more of Bessel's.
    double = value(f"__nv_{name}", *operands, kinds="f8", result="f8")
    assert np.isclose(double, expected, rtol=2e-13 if name in ("y0", "y1") else 2e-14, atol=0, equal_nan=True)


def test_signs_of_zeros_stay() -> None:
    for name, operand, sign in [("sinpi", -3.0, -1), ("round", -0.3, -1), ("trunc", -0.3, -1), ("cbrt", -0.0, -1)]:
        assert math.copysign(1, value(f"__nv_{name}f", operand)) == sign, name


def test_fast_functions_are_what_they_approximate_and_lose_what_is_documented() -> None:
    assert value("__nv_fast_expf", 1.0) == np.float32(math.e)
    assert value("__nv_fast_log2f", 8.0) == 3.0
    assert value("__nv_fast_powf", 2.0, 3.0) == 8.0
    assert math.isnan(value("__nv_fast_powf", -2.0, 2.0))
    # For a divisor above 2**126 the quotient is 0, and that of infinity is NaN.
    assert value("__nv_fast_fdividef", 3.0, 4.0) == 0.75
    assert value("__nv_fast_fdividef", 2.0**127, 2.0**127) == 0.0
    assert math.isnan(value("__nv_fast_fdividef", inf, 2.0**127))


def test_questions_are_answered_with_1() -> None:
    assert [value("__nv_isnanf", one, result="i4") for one in (nan, inf, 1.0)] == [1, 0, 0]
    assert [value("__nv_isinff", one, result="i4") for one in (nan, -inf, 1.0)] == [0, 1, 0]
    assert [value("__nv_finitef", one, result="i4") for one in (nan, inf, 1.0)] == [0, 0, 1]
    assert [value("__nv_isfinited", one, kinds="f8", result="i4") for one in (nan, inf, 1.0)] == [0, 0, 1]
    assert [value("__nv_signbitf", one, result="i4") for one in (-0.0, 0.0, -inf)] == [1, 0, 1]


def test_bessel_functions_of_an_order() -> None:
    expected = [
        (0, 1.0, 0.7651976865579666),
        (2, 1.0, 0.1149034849319005),
        (5, 1.0, 0.00024975773021123443),
        (3, 10.0, 0.058379379305186815),
    ]
    for order, x, right in expected:
        assert value("__nv_jn", order, x, kinds="i4 f8", result="f8") == pytest.approx(right, abs=1e-13)
    assert math.isnan(value("__nv_jnf", -1, 1.0, kinds="i4 f4"))
    assert value("__nv_yn", 2, 1.0, kinds="i4 f8", result="f8") == pytest.approx(-1.6506826068162543, rel=1e-13)
    assert value("__nv_yn", 5, 30.0, kinds="i4 f8", result="f8") == pytest.approx(0.03162735928926443, rel=1e-13)
    assert value("__nv_ynf", 3, 0.0, kinds="i4 f4") == -inf


ROUNDED = [
    ("fadd", "rn", (1.0, 2.0**-30), 1.0),
    ("fadd", "ru", (1.0, 2.0**-30), 1.0 + 2.0**-23),
    ("fadd", "rd", (1.0, -(2.0**-30)), 1.0 - 2.0**-24),
    ("fadd", "rz", (-1.0, 2.0**-30), -(1.0 - 2.0**-24)),
    ("fsub", "rd", (1.0, 1.0), -0.0),
    ("fsub", "ru", (1.0, 1.0), 0.0),
    ("fmul", "rz", (3e38, 2.0), 3.4028234663852886e38),
    ("fmul", "ru", (3e38, 2.0), inf),
    ("fmul", "ru", (1e-30, 1e-30), 2.0**-149),
    ("fmul", "rd", (1e-30, 1e-30), 0.0),
    ("fmul", "ru", (-1e-30, 1e-30), -0.0),
    ("fdiv", "rd", (1.0, 3.0), 0.3333333134651184),
    ("fdiv", "ru", (1.0, 3.0), 0.3333333432674408),
    ("fdiv", "rz", (-1.0, 3.0), -0.3333333134651184),
    ("fdiv", "rz", (1.0, 0.0), inf),
    ("frcp", "ru", (3.0,), 0.3333333432674408),
    ("fsqrt", "rd", (2.0,), 1.4142135381698608),
    ("fsqrt", "ru", (2.0,), 1.41421365737915),
    ("fsqrt", "ru", (4.0,), 2.0),
    ("fsqrt", "rz", (-1.0,), nan),
]


@pytest.mark.parametrize(("name", "mode", "operands", "expected"), ROUNDED)
def test_a_named_rounding_is_exact(name: str, mode: str, operands: tuple[float, ...], expected: float) -> None:
    found = value(f"__nv_{name}_{mode}", *operands)
    assert struct.pack("f", found) == struct.pack("f", expected) or (math.isnan(found) and math.isnan(expected))


def test_fused_products_are_rounded_once() -> None:
    x, z = np.float32(1 + 2.0**-12), -np.float32(1 + 2.0**-11)
    assert value("__nv_fmaf", x, x, z) == 2.0**-24
    # The sum of the product and the addend lies halfway of two floats but for a bit that no double has.
    assert value("__nv_fmaf", 1 + 2.0**-23, 1 - 2.0**-23, 2.0**24 + 2) == 2.0**24 + 2
    assert value("__nv_fma", 1 + 2.0**-52, 1 - 2.0**-52, -1.0, kinds="f8", result="f8") == -(2.0**-104)
    assert value("__nv_fmaf_rd", 1.0, 1.0, 2.0**-30) == 1.0
    assert value("__nv_fmaf_ru", 1.0, 1.0, 2.0**-30) == 1.0 + 2.0**-23


def test_conversions_round_clamp_and_have_a_value_for_nan() -> None:
    rounds = [value(f"__nv_float2int_{mode}", 2.5, result="i4") for mode in ("rn", "rz", "rd", "ru")]
    assert rounds == [2, 2, 2, 3]
    assert [value(f"__nv_float2int_{mode}", -2.5, result="i4") for mode in ("rn", "rz", "rd", "ru")] == [-2, -2, -3, -2]
    assert value("__nv_float2int_rn", 1e20, result="i4") == 2**31 - 1
    assert value("__nv_float2int_rn", nan, result="i4") == 0
    assert value("__nv_double2int_rn", nan, kinds="f8", result="i4") == -(2**31)
    assert value("__nv_float2ll_rz", -1e30, result="i8") == -(2**63)
    assert value("__nv_float2ll_rz", nan, result="i8") == -(2**63)
    # Triton types the unsigned ones as signed: the same bits.
    assert value("__nv_float2uint_rz", 3e9, result="i4") == 3_000_000_000 - 2**32
    assert value("__nv_float2uint_rz", -5.0, result="i4") == 0
    assert value("__nv_int2float_ru", 2**24 + 1, kinds="i4") == 2**24 + 2
    assert value("__nv_int2float_rz", 2**24 + 1, kinds="i4") == 2**24
    assert value("__nv_double2float_ru", 1 + 2.0**-40, kinds="f8") == 1 + 2.0**-23
    assert value("__nv_ull2double_rd", 2**64 - 1, kinds="u8", result="f8") == 2.0**64 - 2**11
    assert [value("__nv_llrintf", one, result="i8") for one in (2.5, -3.5)] == [2, -4]
    assert [value("__nv_llroundf", one, result="i8") for one in (2.5, -3.5)] == [3, -4]


def test_bits_are_seen_as_they_are() -> None:
    assert value("__nv_float_as_int", 1.0, result="i4") == 0x3F800000
    assert value("__nv_int_as_float", 0x40490FDB, kinds="i4") == np.float32(math.pi)
    assert value("__nv_double_as_longlong", -0.0, kinds="f8", result="i8") == -(2**63)
    assert value("__nv_double2hiint", 1.0, kinds="f8", result="i4") == 0x3FF00000
    assert value("__nv_double2loint", 1.0 + 2.0**-52, kinds="f8", result="i4") == 1
    assert value("__nv_hiloint2double", 0x3FF00000, 1, kinds="i4", result="f8") == 1.0 + 2.0**-52
    assert value("__nv_nextafterf", 1.0, 2.0) == 1.0 + 2.0**-23
    assert value("__nv_ldexpf", 0.75, 4, kinds="f4 i4") == 12.0
    assert value("__nv_scalbnf", 1.0, -149, kinds="f4 i4") == 2.0**-149
    assert [value("__nv_ilogbf", one, result="i4") for one in (10.0, 0.0, inf)] == [3, -(2**31), 2**31 - 1]
    assert [value("__nv_saturatef", one) for one in (-1.0, 0.5, 2.0, nan)] == [0.0, 0.5, 1.0, 0.0]
    assert value("__nv_powif", -2.0, 3, kinds="f4 i4") == -8.0


INTEGERS = [
    ("clz", (1,), "i4", 31),
    ("clz", (0,), "i4", 32),
    ("clz", (-1,), "i4", 0),
    ("popc", (-1,), "i4", 32),
    ("ffs", (0,), "i4", 0),
    ("ffs", (8,), "i4", 4),
    ("brev", (1,), "i4", -(2**31)),
    ("abs", (-5,), "i4", 5),
    ("mulhi", (-(2**31), 4), "i4", -2),
    ("umulhi", (2**31, 4), "u4", 2),
    ("mul24", (0x1FFFFFF, 3), "i4", -3),
    ("umul24", (0x1FFFFFF, 3), "u4", 0xFFFFFF * 3),
    ("hadd", (-3, 2), "i4", -1),
    ("hadd", (2**31 - 1, 2**31 - 1), "i4", 2**31 - 1),
    ("rhadd", (-3, 2), "i4", 0),
    ("uhadd", (2**32 - 1, 1), "u4", 2**31),
    ("usad", (3, 10, 1), "u4", 8),
    ("byte_perm", (0x33221100, 0x77665544, 0x7531), "i4", 0x77553311),
]


@pytest.mark.parametrize(("name", "operands", "kind", "expected"), INTEGERS)
def test_an_integer_function_is_the_documented_one(
    name: str, operands: tuple[int, ...], kind: str, expected: int
) -> None:
    assert value(f"__nv_{name}", *operands, kinds=kind, result=kind) == expected


def test_integer_functions_of_64_bits() -> None:
    assert value("__nv_clzll", 1, kinds="i8", result="i4") == 63
    assert value("__nv_popcll", -1, kinds="i8", result="i4") == 64
    assert value("__nv_ffsll", 2**40, kinds="i8", result="i4") == 41
    assert value("__nv_brevll", 1, kinds="i8", result="i8") == -(2**63)
    assert value("__nv_mul64hi", 2**62, -8, kinds="i8", result="i8") == -2
    assert value("__nv_umul64hi", 2**63, 4, kinds="u8", result="u8") == 2
    assert value("__nv_sad", -5, 5, 1, kinds="i4 i4 u4", result="i4") == 11
