"""How an operation goes through memory: the access classes of its aten calls, and the most demanding of them."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_harness.op import aten

WORDS = {
    "factorization": "a matrix is rewritten panel by panel; every element is used about n times",
    "transform": "every result depends on all elements of its row, in log n passes",
    "contraction": "every element is used many times: tiles are kept on the chip and reused",
    "sort": "elements change places by their values, in several passes over each row",
    "scan": "each result depends on all elements before it in its row",
    "sliding window": "each result reads a small window; neighbouring windows overlap",
    "row reduction": "all elements along the contiguous dim combine into one result per row",
    "column reduction": "elements that lie a stride apart combine; neighbouring results read neighbouring elements",
    "full reduction": "all elements combine into one result",
    "gather-scatter": "addresses come from an index tensor",
    "broadcast": "element by element; an input is smaller than the output and read again along the dims it lacks",
    "elementwise": "each result reads the element of the same index of every input, once",
    "data movement": "elements are written or go to other places, nothing is computed",
    "none": "only the description of the memory changes; no element moves",
}
"""What each class is, the most demanding first."""


def patterns(found: aten.Trace) -> list[str]:
    """Return the access classes of everything that the call came down to, most demanding first."""
    seen = {of_call(one) for one in aten.leaves(found.dispatched)}
    return [name for name in WORDS if name in seen and name != "none"]


def class_of(found: aten.Trace, patterns: Sequence[str]) -> str | None:
    """Return the most demanding pattern; None where an operation has no rule, or the result depends on values."""
    if found.blocked is not None or any(one.access is None for one in aten.leaves(found.dispatched)):
        return None
    return patterns[0] if patterns else "data movement" if found.bytes else "none"


def of_call(one: aten.Dispatched) -> str | None:
    """Return the access class of one aten call, that of its most demanding part if decomposed; None without a rule."""
    if one.parts:
        seen = {of_call(part) for part in one.parts}
        return None if None in seen else next(name for name in WORDS if name in seen)
    if one.access in ("view", "allocation"):
        return "none"
    if one.access == "loss":
        return "elementwise" if one.call.arguments.get("reduction") == 0 else "full reduction"
    if one.access == "reduction":
        return _reduction(one)
    if one.access == "elementwise":
        result = one.call.outputs[0].count if one.call.outputs else 0
        small = any(operand.shape and operand.distinct < result for operand in one.call.inputs)
        return "broadcast" if small else "elementwise"
    return one.access


def _reduction(one: aten.Dispatched) -> str:
    operand = one.call.operand("self", "input", "inp", "a")
    rank = len(operand.shape)
    if "layer_norm" in one.op or "rms_norm" in one.op or "group_norm" in one.op:
        return "row reduction"
    if "batch_norm" in one.op:
        return "column reduction"
    dims = one.call.argument("dim", "dims")
    dims = [dims] if isinstance(dims, int) else dims
    reduced = {dim % rank for dim in dims} if dims and rank else set(range(rank))
    long = [dim for dim in range(rank) if operand.shape[dim] > 1]
    if reduced.issuperset(long):
        return "row reduction" if "softmax" in one.op else "full reduction"
    contiguous = min(long, key=lambda dim: operand.stride[dim])
    return "row reduction" if contiguous in reduced else "column reduction"
