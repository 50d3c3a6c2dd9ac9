"""The arithmetic of operations that go element by element, move, allocate or draw, and how they go through memory."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_harness.op.rule import AtenCall, Rule, family, is_given, nothing, outputs, per_element


def _add(call: AtenCall) -> int:
    return (1 + is_given(call.argument("alpha"), 1)) * outputs(call)


def _addc(call: AtenCall) -> int:
    return (2 + is_given(call.argument("value"), 1)) * outputs(call)


def _gelu(call: AtenCall) -> int:
    return (9 if call.argument("approximate") == "tanh" else 5) * outputs(call)


def _elu(call: AtenCall) -> int:
    scalings = sum(is_given(call.argument(name), 1) for name in ("alpha", "scale", "input_scale"))
    return (3 + scalings) * outputs(call)


def _celu(call: AtenCall) -> int:
    return (3 + 2 * is_given(call.argument("alpha"), 1)) * outputs(call)


def _softplus(call: AtenCall) -> int:
    return (4 + 2 * is_given(call.argument("beta"), 1)) * outputs(call)


def _clamp(call: AtenCall) -> int:
    return sum(call.argument(name) is not None for name in ("min", "max")) * outputs(call)


def _logit(call: AtenCall) -> int:
    return (3 + 2 * (call.argument("eps") is not None)) * outputs(call)


def _div(call: AtenCall) -> int:
    return (1 + (call.argument("rounding_mode") is not None)) * outputs(call)


def _outer_product(call: AtenCall) -> int:
    beta, alpha = call.argument("beta"), call.argument("alpha")
    added = 0 if beta == 0 else 1 + is_given(beta, 1)
    return (1 + added + is_given(alpha, 1)) * outputs(call)


_ELEMENTARY = """
abs acos acosh angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor ceil clamp_max clamp_min copysign cos cosh deg2rad digamma eq erf erfc erfinv exp exp2
expm1 floor floor_divide fmax fmin fmod gcd ge gt i0 igamma igammac isfinite isinf isnan isneginf isposinf lcm le lgamma
log log10 log1p log2 logical_and logical_not logical_or logical_xor lt masked_fill maximum minimum mul multiply mvlgamma
ndtri ne neg nextafter polygamma pow rad2deg reciprocal relu remainder round rsqrt sgn sigmoid sign signbit sin sinh
special_bessel_j0 special_bessel_j1 special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_ndtri
special_zeta sqrt square tan tanh trunc where __and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__
__or__ __rshift__ __xor__
"""
_MOVES = """
_conj_physical _pin_memory _reshape_alias _reshape_copy _to_copy alias_copy as_strided_copy as_strided_scatter
block_diag cat channel_shuffle clone constant_pad_nd convert_element_type diag_embed diagonal_copy diagonal_scatter
expand_copy flip im2col native_channel_shuffle permute_copy pixel_shuffle pixel_unshuffle reflection_pad1d
reflection_pad2d reflection_pad3d repeat replication_pad1d replication_pad2d replication_pad3d rev roll rot90
select_copy select_scatter slice_copy slice_scatter stack t_copy to transpose_copy tril triu unfold_copy unsqueeze_copy
upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d view_as_complex_copy view_copy
"""
_ALLOCATIONS = """
_efficientzerotensor arange empty empty_like empty_permuted empty_strided eye full full_like iota lift_fresh linspace
logspace new_empty new_empty_strided new_full new_ones new_zeros ones ones_like scalar_tensor tril_indices triu_indices
zeros zeros_like _linalg_check_errors _assert_async _assert_tensor_metadata _unsafe_view resize
"""

ELEMENTWISE: Mapping[str, Rule] = dict(
    entry
    for one in (
        family(_MOVES, "0", nothing, "data movement"),
        family("copy", "0", nothing, "data movement", overwrites=True),
        family(_ALLOCATIONS, "0", nothing, "allocation"),
        family("fill zero", "0", nothing, "allocation", overwrites=True),
        family(
            "rand rand_like randn randn_like randint randint_like", "1 per element drawn", per_element(1), "allocation"
        ),
        family("bernoulli", "1 per element drawn", per_element(1), "elementwise"),
        family(
            "normal uniform exponential cauchy log_normal geometric random",
            "1 per element drawn",
            per_element(1),
            "allocation",
            overwrites=True,
        ),
        family("native_dropout", "3 per element: draw, mask, scale", per_element(3), "elementwise"),
        family(_ELEMENTARY, "1 per output element", per_element(1), "elementwise"),
        family("add sub rsub", "1 per output element, 2 where alpha ≠ 1", _add, "elementwise"),
        family("div", "1 per output element, 2 with a rounding mode", _div, "elementwise"),
        family("addcmul addcdiv", "2 per output element, 3 where value ≠ 1", _addc, "elementwise"),
        family("clamp clip", "1 per output element and bound", _clamp, "elementwise"),
        family(
            "frac silu glu hardtanh heaviside threshold xlogy special_xlog1py",
            "2 per output element",
            per_element(2),
            "elementwise",
        ),
        family(
            "lerp leaky_relu _prelu_kernel hardshrink sinc special_entr",
            "3 per output element",
            per_element(3),
            "elementwise",
        ),
        family("mish hardsigmoid hypot", "4 per output element", per_element(4), "elementwise"),
        family("hardswish softshrink", "5 per output element", per_element(5), "elementwise"),
        family("log_sigmoid_forward nan_to_num", "6 per output element", per_element(6), "elementwise"),
        family("logaddexp logaddexp2", "7 per output element", per_element(7), "elementwise"),
        family("gelu", "5 per output element with erf, 9 with tanh", _gelu, "elementwise"),
        family("elu", "3 per output element, 1 more for each factor ≠ 1", _elu, "elementwise"),
        family("celu", "3 per output element, 5 where alpha ≠ 1", _celu, "elementwise"),
        family("softplus", "4 per output element, 6 where beta ≠ 1", _softplus, "elementwise"),
        family("logit", "3 per output element, 5 with eps", _logit, "elementwise"),
        family("addr", "2 per output element, 1 more for each factor ≠ 1", _outer_product, "elementwise"),
        family("linalg_cross", "3 per output element", per_element(3), "elementwise"),
    )
    for entry in one
)
