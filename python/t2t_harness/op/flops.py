"""How much arithmetic one aten call does, and how it goes through memory: the rules, one per family of operations.

The unit of work is one elementary result: a sum, product, quotient, comparison, selection, rounding or special function
of numbers counts one, whatever its dtype; moving, viewing, allocating and converting count nothing. docs/reference/analyze.md
states every rule in words. An operation without a rule has no count: `rule_of` returns None, and nothing here guesses.
Knows shapes only; imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operand:
    """A tensor as a rule sees it: lengths and strides in elements, dtype by torch's name without the prefix."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def distinct(self) -> int:
        """The number of elements with a place of their own in memory; an expanded dim adds none."""
        if self.count == 0:
            return 0
        return math.prod(length for length, step in zip(self.shape, self.stride, strict=True) if step != 0)


@dataclass(frozen=True)
class AtenCall:
    """One dispatched operation: name without overload, arguments by schema name with tensors as `Operand`, tensors."""

    name: str
    arguments: Mapping[str, Any]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]

    def argument(self, *names: str) -> Any:
        """Return the first of the named arguments that is present and not None, else None."""
        return next((self.arguments[name] for name in names if self.arguments.get(name) is not None), None)

    def operand(self, *names: str) -> Operand:
        """Return the tensor argument of one of these names; the first input where none is a tensor."""
        found = self.argument(*names)
        return found if isinstance(found, Operand) else self.inputs[0]


Work = Callable[[AtenCall], int | None]


@dataclass(frozen=True)
class Rule:
    """The work of a family: a formula in words, the function that computes it, and how the family goes through memory.

    `gathers` names the argument of which only the selected elements are read. `overwrites` says that the tensor changed
    in place is not read.
    """

    formula: str
    work: Work
    access: str
    gathers: str | None = None
    gathered: Callable[[AtenCall], int] | None = None
    overwrites: bool = False


def selected(call: AtenCall, rule: Rule | None, name: str) -> int | None:
    """Return how many elements of the argument `name` are read at most, None where all of them are."""
    if rule is None or rule.gathers != name:
        return None
    return rule.gathered(call) if rule.gathered is not None else _outputs(call)


def rule_of(name: str) -> Rule | None:
    """Return the rule for an aten name without overload (`softmax`, `relu_`, `add`), or None where there is none."""
    if name in RULES:
        return RULES[name]
    return RULES.get(name.removesuffix("_")) if not name.startswith("__") else None


def work_of(call: AtenCall, rule: Rule) -> int | None:
    """Return how many elementary results `call` makes under `rule`, or None where the rule does not cover it.

    A rule does not cover shapes that lack the dims it speaks of. Complex numbers are covered where nothing is computed,
    and in Fourier transforms.
    """
    is_complex = any(operand.dtype.startswith("complex") for operand in (*call.inputs, *call.outputs))
    if is_complex and rule.access not in ("data movement", "allocation", "transform"):
        return None
    try:
        return rule.work(call)
    except (IndexError, ZeroDivisionError):
        return None


def _outputs(call: AtenCall) -> int:
    """The elements of the first output; of the tensor changed in place where nothing is returned."""
    return call.outputs[0].count if call.outputs else call.inputs[0].count


def _nothing(_: AtenCall) -> int:
    return 0


def _per_element(weight: int) -> Work:
    return lambda call: weight * _outputs(call)


def _is_given(value: Any, neutral: float) -> bool:
    """Tell whether a scalar argument makes work: present, and not the one that changes nothing."""
    return value is not None and value != neutral


def _add(call: AtenCall) -> int:
    return (1 + _is_given(call.argument("alpha"), 1)) * _outputs(call)


def _addc(call: AtenCall) -> int:
    return (2 + _is_given(call.argument("value"), 1)) * _outputs(call)


def _gelu(call: AtenCall) -> int:
    return (9 if call.argument("approximate") == "tanh" else 5) * _outputs(call)


def _elu(call: AtenCall) -> int:
    scalings = sum(_is_given(call.argument(name), 1) for name in ("alpha", "scale", "input_scale"))
    return (3 + scalings) * _outputs(call)


def _celu(call: AtenCall) -> int:
    return (3 + 2 * _is_given(call.argument("alpha"), 1)) * _outputs(call)


def _softplus(call: AtenCall) -> int:
    return (4 + 2 * _is_given(call.argument("beta"), 1)) * _outputs(call)


def _clamp(call: AtenCall) -> int:
    return sum(call.argument(name) is not None for name in ("min", "max")) * _outputs(call)


def _logit(call: AtenCall) -> int:
    return (3 + 2 * (call.argument("eps") is not None)) * _outputs(call)


def _div(call: AtenCall) -> int:
    return (1 + (call.argument("rounding_mode") is not None)) * _outputs(call)


def _reduce(per_input: int, per_output: int) -> Work:
    """The rule `per_input` for each element that goes in and `per_output` for each that comes out."""
    return lambda call: per_input * call.operand("self", "input", "inp", "a").count + per_output * _outputs(call)


def _norm(call: AtenCall) -> int:
    order = call.argument("ord", "p")
    order = 2 if order is None else order
    elements, results = call.operand("self").count, _outputs(call)
    if order == 2:
        return 2 * elements
    if order in (0, 1) or abs(order) == math.inf:
        return 2 * elements - results
    return 3 * elements


def _cdist(call: AtenCall) -> int | None:
    length, pairs = call.operand("x1").shape[-1], _outputs(call)
    order = call.argument("p")
    if order == 2:
        return 3 * length * pairs
    return (3 * length - 1) * pairs if order == 1 or order == math.inf else None


def _rows(call: AtenCall) -> int:
    """The number of rows along the argument `dim`; a tensor without dims is one row."""
    operand, dim = call.operand("self", "input"), call.argument("dim")
    if not operand.shape:
        return 1
    length = operand.shape[-1 if dim is None else dim]
    return operand.count // length if length else 0


def _per_row(per_input: int, per_row: int) -> Work:
    return lambda call: per_input * call.operand("self", "input").count + per_row * _rows(call)


def _scan(per_step: int) -> Work:
    return lambda call: per_step * (call.operand("self").count - _rows(call))


def _layer_norm(call: AtenCall) -> int:
    operand = call.operand("input")
    length = math.prod(call.argument("normalized_shape"))
    rows = operand.count // length if length else 0
    return 5 * operand.count + 2 * rows + _affine(call, operand.count)


def _rms_norm(call: AtenCall) -> int:
    operand = call.operand("input")
    length = math.prod(call.argument("normalized_shape"))
    return 3 * operand.count + 2 * (operand.count // length if length else 0) + _affine(call, operand.count)


def _group_norm(call: AtenCall) -> int:
    count = call.operand("input").count
    groups = int(call.argument("N")) * int(call.argument("group"))
    return 5 * count + 2 * groups + _affine(call, count)


def _batch_norm(call: AtenCall) -> int:
    operand = call.operand("input")
    channels = operand.shape[1]
    affine = _affine(call, operand.count)
    if not call.argument("training"):
        return 2 * operand.count + 2 * channels + affine
    running = 7 * channels if isinstance(call.argument("running_mean"), Operand) else 0
    return 5 * operand.count + 2 * channels + running + affine


def _affine(call: AtenCall, count: int) -> int:
    return count * sum(isinstance(call.argument(name), Operand) for name in ("weight", "bias"))


def _product(call: AtenCall) -> int:
    """2·K for each element of a product of which the first factor has rows of length K."""
    return 2 * _outputs(call) * call.operand("self", "input").shape[-1]


def _added_product(first: str) -> Work:
    def work(call: AtenCall) -> int:
        factor, results = call.operand(first), _outputs(call)
        beta, alpha = call.argument("beta"), call.argument("alpha")
        added = 0 if beta == 0 else results * (1 + _is_given(beta, 1))
        batch = factor.shape[0] if call.name.startswith("addbmm") else 1
        return 2 * results * batch * factor.shape[-1] + added + results * _is_given(alpha, 1)

    return work


def _outer_product(call: AtenCall) -> int:
    beta, alpha = call.argument("beta"), call.argument("alpha")
    added = 0 if beta == 0 else 1 + _is_given(beta, 1)
    return (1 + added + _is_given(alpha, 1)) * _outputs(call)


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


def _window(per_element: int, per_output: int) -> Work:
    """`per_element` for each element of a pooling window and `per_output` for each window; padding counts too."""

    def work(call: AtenCall) -> int:
        kernel = call.argument("kernel_size")
        spatial = 3 if "pool3d" in call.name else 2
        length: int = kernel[0] ** spatial if len(kernel) == 1 else math.prod(kernel)
        return (per_element * length + per_output) * _outputs(call)

    return work


def _adaptive(per_output: int) -> Work:
    """One for each element of each adaptive window, and `per_output` for each window."""

    def work(call: AtenCall) -> int:
        spatial = 3 if "pool3d" in call.name else 2
        source, result = call.inputs[0].shape, call.outputs[0].shape
        planes = math.prod(result[:-spatial])
        lengths = [_adaptive_lengths(i, o) for i, o in zip(source[-spatial:], result[-spatial:], strict=True)]
        return planes * math.prod(lengths) + per_output * call.outputs[0].count

    return work


def _adaptive_lengths(source: int, result: int) -> int:
    """The lengths of all windows of one axis, added: window i covers ⌊i·source/result⌋ to ⌈(i+1)·source/result⌉."""
    return sum(-(-(i + 1) * source // result) - i * source // result for i in range(result))


def _mse_loss(call: AtenCall) -> int:
    return 2 * call.operand("self").count + _loss_reduction(call, max(operand.count for operand in call.inputs))


def _loss_reduction(call: AtenCall, count: int) -> int:
    """The work of torch's `reduction`, 0 none, 1 mean, 2 sum, over `count` elements."""
    return {0: 0, 1: count, 2: max(count - 1, 0)}[1 if (mode := call.arguments.get("reduction")) is None else mode]


def _nll_loss(call: AtenCall) -> int:
    samples = call.operand("target").count
    reduction = _loss_reduction(call, samples)
    if not isinstance(call.argument("weight"), Operand):
        return samples + reduction
    total_weight = max(samples - 1, 0) if call.arguments.get("reduction", 1) == 1 else 0
    return 2 * samples + reduction + total_weight


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


def _log2_steps(length: int) -> int:
    return max(length - 1, 0).bit_length()


def _sort(call: AtenCall) -> int:
    operand, dim = call.operand("self"), call.argument("dim")
    length = operand.shape[-1 if dim is None else dim] if operand.shape else 1
    return operand.count * _log2_steps(length)


def _topk(call: AtenCall) -> int:
    return call.operand("self").count * _log2_steps(int(call.argument("k")) + 1)


def _search(call: AtenCall) -> int:
    return _outputs(call) * _log2_steps(call.operand("sorted_sequence", "boundaries").shape[-1] + 1)


def _scatter(call: AtenCall) -> int:
    return call.operand("index").count if call.argument("reduce") is not None else 0


def _scatter_sum(call: AtenCall) -> int | None:
    if call.argument("reduce") == "mean":
        return None
    return call.operand("src", "source").count * (1 + _is_given(call.argument("alpha"), 1))


def _index_put(call: AtenCall) -> int | None:
    return None if call.argument("accumulate") else 0


def _bag(call: AtenCall) -> int:
    """Sum (mode 0) and maximum (2) take one result less than a bag has rows, the mean (1) as many; no bag is empty."""
    indices, width = call.operand("indices").count, call.operand("weight").shape[-1]
    bags = call.outputs[0].shape[0]
    weighted = indices * width if isinstance(call.argument("per_sample_weights"), Operand) else 0
    return (indices if call.argument("mode") == 1 else indices - bags) * width + weighted


def _family(names: str, formula: str, work: Work, access: str, **more: Any) -> Iterable[tuple[str, Rule]]:
    rule = Rule(formula, work, access, **more)
    return ((name, rule) for name in names.split())


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

RULES: Mapping[str, Rule] = dict(
    entry
    for family in (
        _family(_MOVES, "0", _nothing, "data movement"),
        _family("copy", "0", _nothing, "data movement", overwrites=True),
        _family(_ALLOCATIONS, "0", _nothing, "allocation"),
        _family("fill zero", "0", _nothing, "allocation", overwrites=True),
        _family(
            "rand rand_like randn randn_like randint randint_like", "1 per element drawn", _per_element(1), "allocation"
        ),
        _family("bernoulli", "1 per element drawn", _per_element(1), "elementwise"),
        _family(
            "normal uniform exponential cauchy log_normal geometric random",
            "1 per element drawn",
            _per_element(1),
            "allocation",
            overwrites=True,
        ),
        _family("native_dropout", "3 per element: draw, mask, scale", _per_element(3), "elementwise"),
        _family(_ELEMENTARY, "1 per output element", _per_element(1), "elementwise"),
        _family("add sub rsub", "1 per output element, 2 where alpha ≠ 1", _add, "elementwise"),
        _family("div", "1 per output element, 2 with a rounding mode", _div, "elementwise"),
        _family("addcmul addcdiv", "2 per output element, 3 where value ≠ 1", _addc, "elementwise"),
        _family("clamp clip", "1 per output element and bound", _clamp, "elementwise"),
        _family(
            "frac silu glu hardtanh heaviside threshold xlogy special_xlog1py",
            "2 per output element",
            _per_element(2),
            "elementwise",
        ),
        _family(
            "lerp leaky_relu _prelu_kernel hardshrink sinc special_entr",
            "3 per output element",
            _per_element(3),
            "elementwise",
        ),
        _family("mish hardsigmoid hypot", "4 per output element", _per_element(4), "elementwise"),
        _family("hardswish softshrink", "5 per output element", _per_element(5), "elementwise"),
        _family("log_sigmoid_forward nan_to_num", "6 per output element", _per_element(6), "elementwise"),
        _family("logaddexp logaddexp2", "7 per output element", _per_element(7), "elementwise"),
        _family("gelu", "5 per output element with erf, 9 with tanh", _gelu, "elementwise"),
        _family("elu", "3 per output element, 1 more for each factor ≠ 1", _elu, "elementwise"),
        _family("celu", "3 per output element, 5 where alpha ≠ 1", _celu, "elementwise"),
        _family("softplus", "4 per output element, 6 where beta ≠ 1", _softplus, "elementwise"),
        _family("logit", "3 per output element, 5 with eps", _logit, "elementwise"),
        _family(
            "sum prod amax amin max min argmax argmin any all",
            "n - 1 per output of n elements",
            _reduce(1, -1),
            "reduction",
        ),
        _family("mean", "n per output of n elements", _reduce(1, 0), "reduction"),
        _family("aminmax", "2n - 2 per output pair of n elements", _reduce(2, -2), "reduction"),
        _family("count_nonzero", "2n - 1 per output of n elements", _reduce(2, -1), "reduction"),
        _family("nansum", "3n - 1 per output of n elements", _reduce(3, -1), "reduction"),
        _family("var var_mean", "4n per output of n elements", _reduce(4, 0), "reduction"),
        _family("std std_mean", "4n + 1 per output of n elements", _reduce(4, 1), "reduction"),
        _family("logsumexp", "4n per output of n elements", _reduce(4, 0), "reduction"),
        _family(
            "linalg_vector_norm norm",
            "per output of n elements: 2n (p = 2), 2n - 1 (p = 0, 1, ∞), else 3n",
            _norm,
            "reduction",
        ),
        _family("trace", "n - 1 for a diagonal of n", lambda call: max(min(call.inputs[0].shape) - 1, 0), "reduction"),
        _family("_softmax _safe_softmax", "5n - 2 per row of n", _per_row(5, -2), "reduction"),
        _family("_log_softmax", "5n - 1 per row of n", _per_row(5, -1), "reduction"),
        _family("native_layer_norm", "5n + 2 per row of n, n more each for weight and bias", _layer_norm, "reduction"),
        _family("_fused_rms_norm", "3n + 2 per row of n, n more for the weight", _rms_norm, "reduction"),
        _family(
            "native_group_norm", "5n + 2 per group of n, n more each for weight and bias", _group_norm, "reduction"
        ),
        _family(
            "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training",
            "training: 5n + 2 per channel of n, 7 more for running statistics; else 2n + 2; n each for weight and bias",
            _batch_norm,
            "reduction",
        ),
        _family("cumsum cumprod cummax cummin", "n - 1 per row of n", _scan(1), "scan"),
        _family("logcumsumexp", "7(n - 1) per row of n", _scan(7), "scan"),
        _family("mm bmm mv dot vdot _int_mm", "2K per output element", _product, "contraction"),
        _family(
            "addmm",
            "2K per output element, 1 more for the sum and each factor ≠ 1",
            _added_product("mat1"),
            "contraction",
        ),
        _family(
            "addmv",
            "2K per output element, 1 more for the sum and each factor ≠ 1",
            _added_product("mat"),
            "contraction",
        ),
        _family(
            "baddbmm addbmm",
            "2K per output element, 1 more for the sum and each factor ≠ 1",
            _added_product("batch1"),
            "contraction",
        ),
        _family("addr", "2 per output element, 1 more for each factor ≠ 1", _outer_product, "elementwise"),
        _family("linalg_cross", "3 per output element", _per_element(3), "elementwise"),
        _family("_cdist_forward", "per pair of vectors of n: 3n (p = 2), 3n - 1 (p = 1, ∞)", _cdist, "contraction"),
        _family(
            "convolution _convolution",
            "2 · channels per group · kernel size per output element (per input element if transposed), 1 for the bias",
            _convolution,
            "contraction",
        ),
        _family(
            "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention "
            "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
            "_scaled_dot_product_fused_attention_overrideable",
            "2·D + 6 + 2·Dv per pair of query and key, 1 more with a mask, 2 less per query; causal: seen pairs",
            _attention,
            "contraction",
        ),
        _family(
            "max_pool2d_with_indices max_pool3d_with_indices",
            "k - 1 per output of a window of k",
            _window(1, -1),
            "sliding window",
        ),
        _family("avg_pool2d avg_pool3d", "k per output of a window of k", _window(1, 0), "sliding window"),
        _family(
            "_adaptive_avg_pool2d _adaptive_avg_pool3d", "k per output of a window of k", _adaptive(0), "sliding window"
        ),
        _family(
            "adaptive_max_pool2d adaptive_max_pool3d",
            "k - 1 per output of a window of k",
            _adaptive(-1),
            "sliding window",
        ),
        _family("col2im", "1 per column element", lambda call: call.inputs[0].count, "sliding window"),
        _family("mse_loss", "2 per element; mean: n more, sum: n - 1 more", _mse_loss, "loss"),
        _family(
            "nll_loss_forward nll_loss2d_forward",
            "1 per sample; mean: n more, sum: n - 1 more; with weights n more, and n - 1 more for the mean",
            _nll_loss,
            "gather-scatter",
            gathers="self",
            gathered=lambda call: call.operand("target").count,
        ),
        _family("embedding", "0", _nothing, "gather-scatter", gathers="weight"),
        _family("gather index_select index _unsafe_index take", "0", _nothing, "gather-scatter", gathers="self"),
        _family("scatter", "0; with reduce 1 per index", _scatter, "gather-scatter"),
        _family("index_copy index_fill masked_scatter", "0", _nothing, "gather-scatter"),
        _family("index_put _unsafe_index_put", "0 where nothing is accumulated", _index_put, "gather-scatter"),
        _family(
            "scatter_add index_add scatter_reduce",
            "1 per source element, 2 where alpha ≠ 1",
            _scatter_sum,
            "gather-scatter",
        ),
        _family(
            "_embedding_bag _embedding_bag_forward_only",
            "per column of a bag of n rows: n - 1 (sum, max), n (mean), n more with weights",
            _bag,
            "gather-scatter",
            gathers="weight",
            gathered=lambda call: call.operand("indices").count * call.operand("weight").shape[-1],
        ),
        _family("sort", "n · ⌈log2 n⌉ comparisons per row of n", _sort, "sort"),
        _family("topk", "n · ⌈log2 (k + 1)⌉ comparisons per row of n", _topk, "sort"),
        _family(
            "searchsorted bucketize", "⌈log2 (n + 1)⌉ comparisons per value in n boundaries", _search, "gather-scatter"
        ),
        _family("_fft_c2c", "5 N log2 N per transform of N points", _fourier, "transform"),
        _family("_fft_r2c _fft_c2r", "2.5 N log2 N per transform of N points", _fourier, "transform"),
        _family("linalg_cholesky_ex cholesky", "n³/3 per matrix, leading term", _cubic(1, 3), "factorization"),
        _family("linalg_inv_ex", "2n³ per matrix, leading term", _cubic(2, 1), "factorization"),
        _family(
            "linalg_lu_factor_ex _linalg_det _linalg_slogdet",
            "2n³/3 per matrix, leading term",
            _cubic(2, 3),
            "factorization",
        ),
        _family("_linalg_solve_ex", "2n³/3 + 2n²k per matrix, leading terms", _solve, "factorization"),
        _family("linalg_solve_triangular", "n²k per matrix, leading term", _triangular_solve, "factorization"),
        _family(
            "linalg_qr", "2mn² - 2n³/3 per m×n matrix for R, as much again for Q, leading terms", _qr, "factorization"
        ),
    )
    for entry in family
)
