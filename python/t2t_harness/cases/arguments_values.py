"""Other values of one argument, by its name and the value that it has.

It knows no op, makes no tensors, and imports no torch.
"""

from __future__ import annotations

from typing import Any

from t2t_harness.cases import cases
from t2t_harness.cases.arguments_known import DIMS, UNSET

WORDS = {
    "reduction": ("none", "sum", "mean", "batchmean"),
    "approximate": ("tanh", "none"),
    "rounding_mode": ("floor", "trunc"),
    "side": ("left", "right"),
    "padding": ("same", "valid"),
    "interpolation": ("nearest", "midpoint", "lower", "higher", "linear"),
    "reduce": ("mean", "amax", "amin", "prod", "sum"),
    "padding_mode": ("border", "reflection", "zeros"),
    "norm": ("ortho", "forward", "backward"),
    "indexing": ("ij", "xy"),
    "UPLO": ("L", "U"),
}
"""Arguments with a few values."""

LEFT_ALONE = ("dropout_p", "inplace", "sparse", "out", "generator")
"""Arguments away from whose value torch's result is drawn, lies in the input, or is no dense tensor, so that no other can be held against it."""

LAUNCHING = ("num_warps", "num_stages", "num_ctas")
"""Arguments that say how a kernel is launched, and nothing of what it computes."""

OPEN = ("sorted", "stable")
"""Flags without which torch leaves an order open: they are tried where they are set."""

MAY_BE_ZERO = (
    "alpha",
    "beta",
    "value",
    "label_smoothing",
    "negative_slope",
    "weight_decay",
    "momentum",
    "lambd",
    "threshold",
    "min",
    "max",
    "padding_idx",
    "nan",
    "posinf",
    "neginf",
    "eps",
)
"""Numbers for which zero makes sense, and for which kernels forget it."""

OF_SPECIAL = ("nan", "posinf", "neginf")
"""Numbers that take the place of what is not finite."""

SIGNED = ("negative_slope", "alpha", "value", "weight", "scale")
"""Numbers that may have either sign."""

SHARES = ("q",)
"""Numbers between 0 and 1."""

RELATIVE = ("rtol",)
"""Numbers that say how large a part of a value another one may be off by."""

PAIRS = cases.PLACED
"""Arguments that have one value per spatial dim, if they are written as one number."""

WHOLE = (
    "diagonal",
    "shifts",
    "shift",
    "lag",
    "periods",
    "delay",
    "k",
    "offset",
    "p",
    "dilation",
    "stride",
    "kernel_size",
)
"""Arguments that are integers, and mean no length that another argument must agree with."""

MAY_BE_NEGATIVE = ("diagonal", "shifts", "shift", "lag", "periods", "delay", "k", "offset")
"""Integers that count from either side."""

DTYPES = {
    "torch.float16": "torch.bfloat16",
    "torch.bfloat16": "torch.float16",
    "torch.float32": "torch.bfloat16",
    "torch.float64": "torch.float32",
    "torch.float8_e4m3fn": "torch.float8_e5m2",
    "torch.float8_e5m2": "torch.float8_e4m3fn",
    "torch.int32": "torch.int64",
    "torch.int64": "torch.int32",
}
"""Dtype that an argument says → another one that a kernel which has a choice has, too."""

ABOVE = 1.5
"""A number above one, for those that are below it."""

MODERATE = 100
"""A number that is less is another one where a half is added."""


def away(name: str, value: Any, rank: int) -> list[Any]:
    """Returns other values for the argument `name` than `value`, the one that tells most first; none where none is known to make sense."""
    if name in LEFT_ALONE:
        return []
    if isinstance(value, bool):
        return [] if value and name in OPEN else [not value]
    if isinstance(value, str) and value in DTYPES:
        return [DTYPES[value]]
    if isinstance(value, str):
        return [word for word in WORDS.get(name, ()) if word != value]
    if name in DIMS:
        return dims_away(value, rank)
    if name == "scale_factor" and value is not None:
        return scales_away(value, rank)
    if name in PAIRS and isinstance(value, list) and value and all(isinstance(one, int) for one in value):
        least = 0 if name == "output_padding" and value[0] else value[0] + 1
        return [[least, *value[1:]]]
    if name == "pad" and not isinstance(value, int | float):
        return pads_away(value)
    if value is None:
        # Code that asks whether there is a value takes zero for none.
        zeros = [0] if name in MAY_BE_ZERO and UNSET.get(name) != 0 else []
        # The last place may be named from the end.
        ends = [-1] if name == "padding_idx" else []
        return [UNSET[name], *ends, *zeros] if name in UNSET else []
    zero = [type(value)(0)] if name in MAY_BE_ZERO and value else []
    if name in SIGNED and isinstance(value, int | float):
        zero.append(-value if value else -1)
    if name in RELATIVE:
        # Of both operands the larger one, or the second one alone: a small part of either is the same.
        return [0.5]
    if name in SHARES and isinstance(value, float | int):
        return [one for one in (0.25, 0.9, 1.0, 0.0) if one != value]
    if name == "threshold":
        # A lower one, which more values are above.
        return [value / 4 if value else 1.0, *zero]
    if isinstance(value, float):
        first = 1e-2 if 0 < abs(value) < 1e-3 else 2.5 * value if value else 0.75
        if 0.4 < abs(value) < 1:
            # A part of a whole stays one: what is left of it may be a root's.
            first = round(value / 2.5, 6)
        # What counts something may be a fraction as well.
        is_whole = value.is_integer() and first.is_integer() and abs(value) < MODERATE
        # A part may be more than all: a slope of that is the larger one on the other side.
        above = [ABOVE] if 0 < abs(value) <= 0.4 and abs(first) < 1 else []
        return [first, *([value + 0.5] if is_whole else []), *zero, *above]
    if not isinstance(value, int):
        return []
    pairs = [[value + 1, *[value] * (rank - 3)]] if name in PAIRS and rank > 3 else []
    if name == "padding":
        # More than half a window is too much for torch.
        uneven = [[value - 1 if value else 1, *[value] * (rank - 3)]] if rank > 3 else []
        return [*uneven, 0 if value else 1]
    if name == "output_padding":
        # It is less than a step.
        return [*([[0 if value else 1, *[value] * (rank - 3)]] if rank > 3 else []), 0 if value else 1]
    if name == "padding_idx":
        return [-1, *zero]
    if name in ("min", "max"):
        return [value - 1 if name == "min" else value + 1, *zero]
    if name == "repeats":
        return [value + 1, *(one for one in (1, value - 1) if 0 < one != value)]
    if name in ("alpha", "beta", "value"):
        return [3 * value + 1, *zero]
    if name == "ignore_index":
        # A label that some rows have.
        return [1 if value < 0 else value + 1]
    if name == "correction":
        return [one for one in (0, value + 1) if one != value]
    if name in WHOLE:
        return [*pairs, value + 1, *([-value - 2] if name in MAY_BE_NEGATIVE else [])]
    return pairs


def pads_away(value: object) -> list[Any]:
    """Returns other lengths than `value`, a list of those by which dims become longer: one that is more, all of them in different steps, the last one, and one by which a dim becomes shorter."""
    if not isinstance(value, list) or not value or any(type(one) is not int for one in value):
        return []
    more = [
        [value[0] + 1, *value[1:]],
        [one + 1 + step for step, one in enumerate(value)],
        [*value[:-1], value[-1] + 1],
    ]
    return [
        *(one for place, one in enumerate(more) if one not in more[:place]),
        [-1 if value[0] != -1 else -2, *value[1:]],
    ]


def scales_away(value: object, rank: int) -> list[object]:
    """Returns other factors than `value`, or than those in it, by which places become more: by a fraction lengths are rounded."""

    def other(factor: Any) -> Any:
        # One by which the ratio of the lengths is not the factor.
        return round(factor + (0.3 if float(factor).is_integer() else 0.8), 6)

    if isinstance(value, list):
        return [[other(value[0]), *value[1:]]] if value else []
    return [other(value), *([[other(value), *[value] * (rank - 3)]] if rank > 3 else [])]


def dims_away(value: object, rank: int) -> list[object]:
    """Returns other dims than `value` of a tensor with `rank` dims: another one, the same by its other name, the last but one, and each that is none of these; of several the first, the two ends, and all."""
    found: list[object] = []
    if isinstance(value, list):
        gap = [[0, rank - 1]] if rank > 2 and value != [-rank, -1] else []
        found = [value[:1], *gap, value[::-1], list(range(rank))] if len(value) > 1 else [list(range(rank)), *gap]
    elif value is None:
        found = [0, -1]
    elif isinstance(value, int) and rank > 1:
        found = [0 if value in (-1, rank - 1) else -1, value + rank if value < 0 else value - rank, -2]
        places = {one % rank for one in (value, *found) if isinstance(one, int)}
        found += [place for place in range(rank) if place not in places]
    return [one for place, one in enumerate(found) if one != value and one not in found[:place]]
