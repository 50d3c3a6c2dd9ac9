"""The arithmetic of gathering, scattering, sorting and searching, and how they go through memory."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_harness.op.rule import AtenCall, Operand, Rule, family, is_given, nothing, outputs


def _log2_steps(length: int) -> int:
    return max(length - 1, 0).bit_length()


def _sort(call: AtenCall) -> int:
    operand, dim = call.operand("self"), call.argument("dim")
    length = operand.shape[-1 if dim is None else dim] if operand.shape else 1
    return operand.count * _log2_steps(length)


def _topk(call: AtenCall) -> int:
    return call.operand("self").count * _log2_steps(int(call.argument("k")) + 1)


def _search(call: AtenCall) -> int:
    return outputs(call) * _log2_steps(call.operand("sorted_sequence", "boundaries").shape[-1] + 1)


def _scatter(call: AtenCall) -> int:
    return call.operand("index").count if call.argument("reduce") is not None else 0


def _scatter_sum(call: AtenCall) -> int | None:
    if call.argument("reduce") == "mean":
        return None
    return call.operand("src", "source").count * (1 + is_given(call.argument("alpha"), 1))


def _index_put(call: AtenCall) -> int | None:
    return None if call.argument("accumulate") else 0


def _bag(call: AtenCall) -> int:
    """Sum (mode 0) and maximum (2) take one result less than a bag has rows, the mean (1) as many; no bag is empty."""
    indices, width = call.operand("indices").count, call.operand("weight").shape[-1]
    bags = call.outputs[0].shape[0]
    weighted = indices * width if isinstance(call.argument("per_sample_weights"), Operand) else 0
    return (indices if call.argument("mode") == 1 else indices - bags) * width + weighted


INDEXED: Mapping[str, Rule] = dict(
    entry
    for one in (
        family("embedding", "0", nothing, "gather-scatter", gathers="weight"),
        family("gather index_select index _unsafe_index take", "0", nothing, "gather-scatter", gathers="self"),
        family("scatter", "0; with reduce 1 per index", _scatter, "gather-scatter"),
        family("index_copy index_fill masked_scatter", "0", nothing, "gather-scatter"),
        family("index_put _unsafe_index_put", "0 where nothing is accumulated", _index_put, "gather-scatter"),
        family(
            "scatter_add index_add scatter_reduce",
            "1 per source element, 2 where alpha ≠ 1",
            _scatter_sum,
            "gather-scatter",
        ),
        family(
            "_embedding_bag _embedding_bag_forward_only",
            "per column of a bag of n rows: n - 1 (sum, max), n (mean), n more with weights",
            _bag,
            "gather-scatter",
            gathers="weight",
            gathered=lambda call: call.operand("indices").count * call.operand("weight").shape[-1],
        ),
        family("sort", "n · ⌈log2 n⌉ comparisons per row of n", _sort, "sort"),
        family("topk", "n · ⌈log2 (k + 1)⌉ comparisons per row of n", _topk, "sort"),
        family(
            "searchsorted bucketize", "⌈log2 (n + 1)⌉ comparisons per value in n boundaries", _search, "gather-scatter"
        ),
    )
    for entry in one
)
