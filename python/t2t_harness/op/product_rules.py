"""The arithmetic of products of matrices, convolutions, attention, factorizations and Fourier transforms, and how they go through memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from t2t_harness.op.rule import AtenCall, Operand, Rule, Work, family, is_given, outputs


def _product(call: AtenCall) -> int:
    """2·K for each element of a product of which the first factor has rows of length K."""
    return 2 * outputs(call) * call.operand("self", "input").shape[-1]


def _added_product(first: str) -> Work:
    def work(call: AtenCall) -> int:
        factor, results = call.operand(first), outputs(call)
        beta, alpha = call.argument("beta"), call.argument("alpha")
        added = 0 if beta == 0 else results * (1 + is_given(beta, 1))
        batch = factor.shape[0] if call.name.startswith("addbmm") else 1
        return 2 * results * batch * factor.shape[-1] + added + results * is_given(alpha, 1)

    return work


def _cdist(call: AtenCall) -> int | None:
    length, pairs = call.operand("x1").shape[-1], outputs(call)
    order = call.argument("p")
    if order == 2:
        return 3 * length * pairs
    return (3 * length - 1) * pairs if order == 1 or order == math.inf else None


def _convolution(call: AtenCall) -> int:
    weight, results = call.operand("weight"), call.outputs[0].count
    bias = results if isinstance(call.argument("bias"), Operand) else 0
    meeting = call.inputs[0].count if call.argument("transposed") else results
    return 2 * meeting * math.prod(weight.shape[1:]) + bias


def _attention(call: AtenCall) -> int:
    query, key, value = (call.operand(name) for name in ("query", "key", "value"))
    length, other = query.shape[-2], key.shape[-2]
    rows = query.count // query.shape[-1] if query.count else 0
    heads = rows // length if length else 0
    pairs = rows * other
    if call.argument("is_causal"):
        square = min(length, other)
        pairs = heads * (square * (square + 1) // 2 + (length - square) * other)
    masked = isinstance(call.argument("attn_mask", "attn_bias"), Operand)
    return pairs * (2 * query.shape[-1] + 6 + masked + 2 * value.shape[-1]) - 2 * rows


def _matrices(operand: Operand) -> tuple[int, int, int]:
    """Return (how many matrices, rows, columns) an operand of at least two dims holds."""
    rows, columns = operand.shape[-2:]
    return math.prod(operand.shape[:-2]), rows, columns


def _cubic(numerator: int, denominator: int) -> Work:
    def work(call: AtenCall) -> int:
        matrices, rows, _ = _matrices(call.operand("self", "A", "input"))
        return matrices * (numerator * rows**3 // denominator)

    return work


def _solve(call: AtenCall) -> int:
    matrices, rows, _ = _matrices(call.operand("A"))
    return matrices * (2 * rows**3 // 3) + 2 * rows * call.operand("B").count


def _triangular_solve(call: AtenCall) -> int:
    return call.operand("self", "A").shape[-1] * call.operand("B", "self").count


def _qr(call: AtenCall) -> int:
    matrices, rows, columns = _matrices(call.operand("A"))
    short, long = sorted((rows, columns))
    factors = 1 if call.argument("mode") == "r" else 2
    return matrices * factors * (2 * long * short**2 - 2 * short**3 // 3)


def _fourier(call: AtenCall) -> int:
    real = call.name != "_fft_c2c"
    whole = call.outputs[0] if call.name == "_fft_c2r" else call.inputs[0]
    points = math.prod(whole.shape[dim] for dim in call.argument("dim"))
    if points < 2:
        return 0
    work = 5 * whole.count * math.log2(points)
    return round(work / 2 if real else work)


PRODUCTS: Mapping[str, Rule] = dict(
    entry
    for one in (
        family("mm bmm mv dot vdot _int_mm", "2K per output element", _product, "contraction"),
        family(
            "addmm",
            "2K per output element, 1 more for the sum and each factor ≠ 1",
            _added_product("mat1"),
            "contraction",
        ),
        family(
            "addmv",
            "2K per output element, 1 more for the sum and each factor ≠ 1",
            _added_product("mat"),
            "contraction",
        ),
        family(
            "baddbmm addbmm",
            "2K per output element, 1 more for the sum and each factor ≠ 1",
            _added_product("batch1"),
            "contraction",
        ),
        family("_cdist_forward", "per pair of vectors of n: 3n (p = 2), 3n - 1 (p = 1, ∞)", _cdist, "contraction"),
        family(
            "convolution _convolution",
            "2 · channels per group · kernel size per output element (per input element if transposed), 1 for the bias",
            _convolution,
            "contraction",
        ),
        family(
            "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention "
            "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
            "_scaled_dot_product_fused_attention_overrideable",
            "2·D + 6 + 2·Dv per pair of query and key, 1 more with a mask, 2 less per query; causal: seen pairs",
            _attention,
            "contraction",
        ),
        family("_fft_c2c", "5 N log2 N per transform of N points", _fourier, "transform"),
        family("_fft_r2c _fft_c2r", "2.5 N log2 N per transform of N points", _fourier, "transform"),
        family("linalg_cholesky_ex cholesky", "n³/3 per matrix, leading term", _cubic(1, 3), "factorization"),
        family("linalg_inv_ex", "2n³ per matrix, leading term", _cubic(2, 1), "factorization"),
        family(
            "linalg_lu_factor_ex _linalg_det _linalg_slogdet",
            "2n³/3 per matrix, leading term",
            _cubic(2, 3),
            "factorization",
        ),
        family("_linalg_solve_ex", "2n³/3 + 2n²k per matrix, leading terms", _solve, "factorization"),
        family("linalg_solve_triangular", "n²k per matrix, leading term", _triangular_solve, "factorization"),
        family(
            "linalg_qr", "2mn² - 2n³/3 per m×n matrix for R, as much again for Q, leading terms", _qr, "factorization"
        ),
    )
    for entry in one
)
