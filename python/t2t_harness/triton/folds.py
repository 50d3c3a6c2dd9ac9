"""Reductions and scans of Triton's interpreter by any function, of any number of blocks: pairs are combined block by block, as a device does, and not
element by element.

Triton is imported nowhere: its interpreter's module is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from t2t_harness.faults import lacking
from t2t_harness.triton import blocks, narrow

Combine = Callable[..., list[Any]]
"""Takes two lists of arrays and returns their combination."""


def reduction(interpreter: Any) -> Any:
    """Returns the replacement of `tl.reduce`."""
    standard = interpreter.tl.standard
    known = (standard._elementwise_max, standard._elementwise_min, standard._sum_combine)
    first_of = (standard._argmin_combine_tie_break_left, standard._argmax_combine_tie_break_left)

    def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **hints: Any) -> Any:
        axis, keep_dims = wrapped_axis(interpreter, axis, input), blocks.constant(keep_dims)
        counts = combine_fn in first_of and is_plain(input[0]) and is_counting(input, axis)
        if counts or (combine_fn in known and is_plain(input)):
            made = interpreter.ReduceOps(axis, combine_fn, keep_dims)
            if combine_fn is standard._sum_combine:
                made.sum = lambda one: made.to_tensor(wrapped_sum(one.handle.data, axis, keep_dims), one.dtype)
            return made.apply(input)
        whole = input if isinstance(input, tuple) else (input,)
        arrays = [one.handle.data for one in whole]
        rank, along = arrays[0].ndim, axis
        if axis is None:
            arrays, along = [one.reshape(-1) for one in arrays], 0
        moved = [np.moveaxis(one, along, 0) for one in arrays]
        folded = whole_or_singly(tree, combiner(interpreter, combine_fn, whole), moved)
        if keep_dims:
            folded = [one.reshape((1,) * rank) if axis is None else np.expand_dims(one, along) for one in folded]
        made = [block(interpreter, one, like.dtype) for one, like in zip(folded, whole, strict=True)]
        return tuple(made) if isinstance(input, tuple) else made[0]

    return reduce


def wrapped_sum(values: Any, axis: Any, keep_dims: Any) -> Any:
    """Returns the sum of `values` in their own type, in which integers wrap around: numpy's is of 64 bits."""
    return np.asarray(np.sum(values, axis=axis, keepdims=bool(keep_dims))).astype(values.dtype)[()]


def scan(interpreter: Any) -> Any:
    """Returns the replacement of `tl.associative_scan`."""
    standard = interpreter.tl.standard
    known = (standard._sum_combine, standard._prod_combine)

    def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **hints: Any) -> Any:
        axis, reverse = wrapped_axis(interpreter, axis, input), blocks.constant(reverse)
        if combine_fn in known and is_plain(input):
            return interpreter.ScanOps(axis, combine_fn, reverse).apply(input)
        whole = input if isinstance(input, tuple) else (input,)
        moved = [np.moveaxis(one.handle.data, axis, 0) for one in whole]
        moved = [one[::-1] for one in moved] if reverse else moved
        summed = whole_or_singly(prefixes, combiner(interpreter, combine_fn, whole), moved)
        summed = [one[::-1] for one in summed] if reverse else summed
        made = [
            block(interpreter, np.moveaxis(one, 0, axis), like.dtype) for one, like in zip(summed, whole, strict=True)
        ]
        return tuple(made) if isinstance(input, tuple) else made[0]

    return associative_scan


def is_plain(input: Any) -> bool:
    """Tells whether `input` is one block that numpy folds as a device does: in a narrow float, which it has not or sums as a wider one, each step is rounded."""
    return not isinstance(input, tuple) and input.dtype.name not in ("fp16", "bf16", *narrow.EIGHTS)


def wrapped_axis(interpreter: Any, axis: Any, input: Any) -> int | None:
    """Returns the axis as a number from 0 on, or None for all of them."""
    axis = blocks.constant(axis)
    if axis is None:
        return None
    rank = int((input[0] if isinstance(input, tuple) else input).handle.data.ndim)
    if not -rank <= axis < rank:
        raise ValueError(f"the axis {axis} of a block of {rank} dims")
    return int(axis) % rank


def is_counting(input: Any, axis: int | None) -> bool:
    """Tells whether the second of two blocks counts the elements of the first along the axis."""
    values, indices = (one.handle.data for one in input)
    if axis is None:
        return bool(np.array_equal(indices.reshape(-1), np.arange(values.size)))
    shape = [-1 if dim == axis else 1 for dim in range(values.ndim)]
    return bool((indices == np.arange(values.shape[axis]).reshape(shape)).all())


def combiner(interpreter: Any, function: Any, like: tuple[Any, ...]) -> Combine:
    """Returns `function`, of blocks as `like` are, as one of arrays."""

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        given = [
            block(interpreter, array, one.dtype)
            for side in (left, right)
            for array, one in zip(side, like, strict=True)
        ]
        results = function(*given)
        results = results if isinstance(results, tuple) else (results,)
        made = [blocks.semantic().to_tensor(blocks.constant(one)).handle.data for one in results]
        return [
            np.broadcast_to(one.reshape(old.shape) if one.size == old.size else one, old.shape).astype(old.dtype)
            for one, old in zip(made, left, strict=True)
        ]

    return combine


def block(interpreter: Any, array: Any, dtype: Any) -> Any:
    """Returns an array as a block, or as a scalar where it has no dims."""
    language = interpreter.tl
    if array.ndim == 0:
        return language.tensor(interpreter.TensorHandle(array.reshape(1), dtype), dtype)
    kind = language.block_type(dtype, list(array.shape))
    return language.tensor(interpreter.TensorHandle(np.ascontiguousarray(array), dtype), kind)


def whole_or_singly(fold: Callable[..., list[Any]], combine: Combine, arrays: list[Any]) -> list[Any]:
    """Returns the arrays folded along their first dim: block by block, or element by element where the function asks for the truth of one."""
    try:
        return fold(combine, arrays)
    except Exception as error:
        if not isinstance(lacking.causes(error)[-1], lacking.Refused):
            raise
    return fold(singly(combine), arrays)


def singly(combine: Combine) -> Combine:
    """Returns `combine` as a function that is asked for one element after another."""

    def each(left: list[Any], right: list[Any]) -> list[Any]:
        columns = [one.reshape(-1) for one in (*left, *right)]
        rows = [[one[at].reshape(()) for one in columns] for at in range(columns[0].size)]
        results = [combine(row[: len(left)], row[len(left) :]) for row in rows]
        return [
            np.array([result[at] for result in results], dtype=old.dtype).reshape(old.shape)
            for at, old in enumerate(left)
        ]

    return each


def tree(combine: Combine, arrays: list[Any]) -> list[Any]:
    """Returns all elements combined, neighbours first; their number is a power of two, as in any block."""
    while len(arrays[0]) > 1:
        arrays = combine([one[::2] for one in arrays], [one[1::2] for one in arrays])
    return [one[0] for one in arrays]


def prefixes(combine: Combine, arrays: list[Any]) -> list[Any]:
    """Returns each element combined with all before it."""
    step = 1
    while step < len(arrays[0]):
        # A block has a power of two of elements, so those without a partner take part and are left as they were.
        earlier = [np.concatenate([one[:step], one[:-step]]) for one in arrays]
        joined = combine(earlier, arrays)
        arrays = [np.concatenate([one[:step], new[step:]]) for one, new in zip(arrays, joined, strict=True)]
        step *= 2
    return arrays
