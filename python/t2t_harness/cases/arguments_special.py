"""Other values for arguments that mean something of their own in some of torch's functions, and for whole numbers of a reference in Python.

It makes no values. torch is imported only by what it asks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_turned, bindings, elementwise, probing, windows
from t2t_harness.op import expression

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

ORDERS = {
    "ord": ("norm", "vector_norm", "matrix_norm"),
    "p": ("norm", "normalize", "dist", "cdist", "pdist", "pairwise_distance"),
}
"""An argument that is the order of a norm → the functions of which it is."""

TRIED = (3, math.inf, 0, 1, -math.inf, 0.5, -1, 2)
"""Orders of norms, each with a formula of its own, or with none but the general one."""

BY_WORDS = (math.inf, 1, -math.inf, -1)
"""Orders of a norm that is named by a word: those of a matrix."""

TRAINING = ("training", "train")
"""Flags with which functions draw random numbers that do not without them."""

RESIZED = ("interpolate", "upsample")
"""What the names of functions begin with whose result has the lengths of `size`."""

MODES = {
    "pad": ("reflect", "replicate", "circular", "constant"),
    "grid_sample": ("nearest", "bilinear", "bicubic"),
    "embedding_bag": ("sum", "mean", "max"),
    "interpolate": ("nearest", "nearest-exact", "linear", "bilinear", "area", "bicubic"),
}
"""Function → the words that its argument `mode` may be, of which torch refuses some for its input."""

BY_SHAPE = ("groups", "num_groups", "normalized_shape")
"""Whole numbers that the shapes of inputs determine."""

BOUNDING = ("num_classes", "num_embeddings", "depth", "dim_size")
"""Whole numbers that say how large an index may be: with fewer torch ends the process on a device."""

GRID = "affine_grid"
"""The function whose result has the lengths of an image, `size`, behind batch and channels."""

NAMED = 3
"""So many numbers of an argument that has them by names are other ones, each in a case of its own."""

MANY = 8
"""A whole number from which on a quarter of it is another one."""

OPPOSITES = (("min", "max"), ("low", "high"), ("lower", "upper"), ("start", "end"), ("start", "stop"))
"""Words in the names of two arguments between which something is held."""


def others(declaration: Declaration, name: str, value: object, rank: int) -> list[object] | None:
    """Returns other values for the argument `name` of the op than `value`; None where it has no meaning of its own."""
    function = elementwise.name_of(declaration)
    if function in ORDERS.get(name, ()):
        return orders_away(value)
    if name == windows.ARGUMENT and windows.is_asked(declaration):
        return windows.sizes_away(value, rank)
    if name == "size" and function.startswith(RESIZED):
        return lengths_away(value)
    if name == "mode" and function in MODES:
        return [word for word in MODES[function] if word != value]
    if name in TRAINING and value is False and ("dropout" in function or function.startswith("rrelu")):
        return []
    if name == "dtype" and value is None and str(declaration.get("torch") or "").startswith("torch.linalg."):
        # Narrower ones are refused there.
        return ["torch.float64"]
    return None


def orders_away(value: object) -> list[object]:
    """Returns other orders of a norm than `value`, as whole numbers where that is one."""
    tried = BY_WORDS if isinstance(value, str) else TRIED
    kind = float if isinstance(value, float) else type(value)
    return [kind(one) if kind is float else one for one in tried if one != value]


def lengths_away(value: object) -> list[object]:
    """Returns other lengths of a result than `value`: more, about half as many, and one."""
    if type(value) is int:
        return [one for one in dict.fromkeys((value + 3, max(value // 2, 1), 1)) if one != value]
    if not isinstance(value, list) or not value or any(type(one) is not int for one in value):
        return []
    found = [[value[0] + 3, *value[1:]], [*value[:-1], max(value[-1] // 2, 1)], [1] * len(value)]
    return [one for place, one in enumerate(found) if one != value and one not in found[:place]]


def single(declaration: Declaration) -> dict[str, object]:
    """Returns the argument that says the lengths of a result with all of them 1, if the op has one: nothing lies between the ends of such a result."""
    size = declaration["kwargs"].get("size")
    if elementwise.name_of(declaration) == GRID and isinstance(size, list):
        return {"size": [*size[:2], *[1] * (len(size) - 2)]}
    if not elementwise.name_of(declaration).startswith(RESIZED) or not isinstance(size, int | list):
        return {}
    return {"size": [1] * len(size) if isinstance(size, list) else 1}


def longer_expressions(declaration: Declaration, value: object) -> list[object]:
    """Returns one more than an argument of a reference that is a product or a quotient of dims, as of an image that becomes twice as large: of several in a list each by itself. What is a dim by itself, or has a difference, may be where something ends."""
    dims = bindings.smallest(declaration)

    def is_one(one: object) -> bool:
        is_scaled = isinstance(one, str) and "-" not in one and ("*" in one or "//" in one)
        return is_scaled and expression.stands_for(str(one), dims)

    if isinstance(value, list):
        places = [place for place, one in enumerate(value) if is_one(one)]
        return [[*value[:place], f"{value[place]}+1", *value[place + 1 :]] for place in places]
    return [f"{value}+1"] if is_one(value) else []


BLOCKS = 32
"""A power of two from here on may be the length of a block or a group."""


def whole_away(declaration: Declaration, name: str, value: object, rank: int) -> list[object]:
    """Returns other whole numbers than `value` for an argument of which nothing else is known: the next one, of several the first of them, of fractions the first and the last, which torch or a reference refuses where it makes no sense; of torch's zero and a half, too, and of a large one of a reference a quarter, of a power of two its double and its half. Nothing for a dim of an input, of which the largest has `rank`; what is called so and is more is a length."""
    is_dim = name.startswith(("dim", "axis")) and not (type(value) is int and value > rank)
    if is_dim or name in BY_SHAPE:
        return []
    if declaration.get("reference") and (longer := longer_expressions(declaration, value)):
        return longer
    if isinstance(value, list) and value and all(type(one) is int for one in value):
        more: list[object] = [[value[0] + 1, *value[1:]], [*value[:-1], value[-1] + 1]]
        return more[: len(value)]
    if isinstance(value, list) and value and all(type(one) in (int, float) for one in value):
        # A pair of numbers, each of which may be forgotten.
        pair: list[object] = [[value[0] / 2 or 0.5, *value[1:]], [*value[:-1], value[-1] / 2 or 0.5]]
        return pair[: len(value)]
    if declaration.get("reference") and isinstance(value, dict):
        # Each of them by itself, as weights by their names.
        held = {key: one for key, one in value.items() if type(one) in (int, float)}
        return [value | {key: one + 1 if type(one) is int else one / 2 or 0.5} for key, one in [*held.items()][:NAMED]]
    if declaration.get("reference") and isinstance(value, float) and value:
        # A power, a weight and a threshold of zero have a meaning; a factor above one takes another way below it.
        return [0.0, *([0.5] if value > 1 else [])]
    if type(value) is not int:
        return []
    own = declaration["kwargs"]
    if declaration.get("reference"):
        found = [*([int(value / 4)] if abs(value) >= MANY else []), value + 1]
        if arguments_turned.is_off(declaration, name):
            found += [one for one in arguments_turned.GROUPS if one not in found]
        # Who takes sizes of blocks and groups takes powers of two, and maybe no others.
        found += [2 * value, value // 2] if value >= BLOCKS and value & (value - 1) == 0 else []
    elif name in BOUNDING:
        found = [value + 1]
    else:
        found = [one for one in dict.fromkeys((value + 1, 0, int(value / 2))) if one != value]
    return [one for one in found if not is_crossed(own, {**own, name: one})]


def is_crossed(own: Mapping[str, object], changed: Mapping[str, object]) -> bool:
    """Tells whether of two arguments between which something is held, by their names, the lower one is above the upper one in `changed`, or they are equal, and not in `own`."""
    for low, high in OPPOSITES:
        for name in changed:
            other = name.replace(low, high)
            if low not in name:
                continue
            before = [value for value in (own.get(name), own.get(other)) if probing.is_plain(value)]
            after = [value for value in (changed.get(name), changed.get(other)) if probing.is_plain(value)]
            if len(before) == len(after) == 2 and before[0] < before[1] and after[0] >= after[1]:
                return True
    return False


def has_zero(declaration: Declaration, changed: Mapping[str, object]) -> bool:
    """Tells whether an argument of a reference in Python is zero that it declares otherwise, or not at all: a divisor, or the base of a logarithm, cannot be."""
    own = declaration["kwargs"]
    return bool(declaration.get("reference")) and any(
        type(value) in (int, float) and value == 0 and own.get(name) != 0 for name, value in changed.items()
    )


def has_other_whole(declaration: Declaration, changed: Mapping[str, object]) -> bool:
    """Tells whether an argument of a reference in Python is another whole number than it declares."""
    own = declaration["kwargs"]
    return bool(declaration.get("reference")) and any(
        type(value) is int and type(own.get(name)) is int and own[name] != value for name, value in changed.items()
    )
