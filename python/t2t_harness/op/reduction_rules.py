"""The arithmetic of reductions, norms, scans, windows and losses, and how they go through memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from t2t_harness.op.rule import AtenCall, Operand, Rule, Work, family, outputs


def _reduce(per_input: int, per_output: int) -> Work:
    """The rule `per_input` for each element that goes in and `per_output` for each that comes out."""
    return lambda call: per_input * call.operand("self", "input", "inp", "a").count + per_output * outputs(call)


def _norm(call: AtenCall) -> int:
    order = call.argument("ord", "p")
    order = 2 if order is None else order
    elements, results = call.operand("self").count, outputs(call)
    if order == 2:
        return 2 * elements
    if order in (0, 1) or abs(order) == math.inf:
        return 2 * elements - results
    return 3 * elements


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


def _window(per_element: int, per_output: int) -> Work:
    """`per_element` for each element of a pooling window and `per_output` for each window; padding counts too."""

    def work(call: AtenCall) -> int:
        kernel = call.argument("kernel_size")
        spatial = 3 if "pool3d" in call.name else 2
        length: int = kernel[0] ** spatial if len(kernel) == 1 else math.prod(kernel)
        return (per_element * length + per_output) * outputs(call)

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


REDUCTIONS: Mapping[str, Rule] = dict(
    entry
    for one in (
        family(
            "sum prod amax amin max min argmax argmin any all",
            "n - 1 per output of n elements",
            _reduce(1, -1),
            "reduction",
        ),
        family("mean", "n per output of n elements", _reduce(1, 0), "reduction"),
        family("aminmax", "2n - 2 per output pair of n elements", _reduce(2, -2), "reduction"),
        family("count_nonzero", "2n - 1 per output of n elements", _reduce(2, -1), "reduction"),
        family("nansum", "3n - 1 per output of n elements", _reduce(3, -1), "reduction"),
        family("var var_mean", "4n per output of n elements", _reduce(4, 0), "reduction"),
        family("std std_mean", "4n + 1 per output of n elements", _reduce(4, 1), "reduction"),
        family("logsumexp", "4n per output of n elements", _reduce(4, 0), "reduction"),
        family(
            "linalg_vector_norm norm",
            "per output of n elements: 2n (p = 2), 2n - 1 (p = 0, 1, ∞), else 3n",
            _norm,
            "reduction",
        ),
        family("trace", "n - 1 for a diagonal of n", lambda call: max(min(call.inputs[0].shape) - 1, 0), "reduction"),
        family("_softmax _safe_softmax", "5n - 2 per row of n", _per_row(5, -2), "reduction"),
        family("_log_softmax", "5n - 1 per row of n", _per_row(5, -1), "reduction"),
        family("native_layer_norm", "5n + 2 per row of n, n more each for weight and bias", _layer_norm, "reduction"),
        family("_fused_rms_norm", "3n + 2 per row of n, n more for the weight", _rms_norm, "reduction"),
        family("native_group_norm", "5n + 2 per group of n, n more each for weight and bias", _group_norm, "reduction"),
        family(
            "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training",
            "training: 5n + 2 per channel of n, 7 more for running statistics; else 2n + 2; n each for weight and bias",
            _batch_norm,
            "reduction",
        ),
        family("cumsum cumprod cummax cummin", "n - 1 per row of n", _scan(1), "scan"),
        family("logcumsumexp", "7(n - 1) per row of n", _scan(7), "scan"),
        family(
            "max_pool2d_with_indices max_pool3d_with_indices",
            "k - 1 per output of a window of k",
            _window(1, -1),
            "sliding window",
        ),
        family("avg_pool2d avg_pool3d", "k per output of a window of k", _window(1, 0), "sliding window"),
        family(
            "_adaptive_avg_pool2d _adaptive_avg_pool3d", "k per output of a window of k", _adaptive(0), "sliding window"
        ),
        family(
            "adaptive_max_pool2d adaptive_max_pool3d",
            "k - 1 per output of a window of k",
            _adaptive(-1),
            "sliding window",
        ),
        family("col2im", "1 per column element", lambda call: call.inputs[0].count, "sliding window"),
        family("mse_loss", "2 per element; mean: n more, sum: n - 1 more", _mse_loss, "loss"),
        family(
            "nll_loss_forward nll_loss2d_forward",
            "1 per sample; mean: n more, sum: n - 1 more; with weights n more, and n - 1 more for the mean",
            _nll_loss,
            "gather-scatter",
            gathers="self",
            gathered=lambda call: call.operand("target").count,
        ),
    )
    for entry in one
)
