"""Other values for an op's keyword arguments than those that ops.yaml gives: a kernel that has one of them written into it is wrong there.

Wrappers are read and never imported. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_harness.op.declaration import resolve, tensors
from t2t_harness.sources import signatures

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

DIMS = ("dim", "axis")
"""Arguments that name a dim."""

WORDS = {
    "reduction": ("sum", "mean", "none", "batchmean"),
    "approximate": ("tanh", "none"),
    "rounding_mode": ("floor", "trunc"),
    "side": ("left", "right"),
}
"""Arguments with a few values."""

WHOLE = ("diagonal", "shifts", "k", "offset", "n", "p", "dilation", "stride")
"""Arguments that are integers, and mean no length that another argument must agree with."""


LEFT_ALONE = ("dropout_p", "inplace", "sparse", "out", "generator")
"""Arguments away from whose value torch's result is drawn, lies in the input, or is no dense tensor, so that no other can be held against it."""

UNSET = {
    "scale": 0.3,
    "dtype": "torch.float16",
    "divisor_override": 3,
    "posinf": 2.5,
    "neginf": -2.5,
    "min": -1,
    "max": 1,
    "padding_idx": 1,
}
"""A value for arguments that have none by default."""


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
)
"""Numbers for which zero makes sense, and for which kernels forget it."""

PAIRS = ("stride", "padding", "dilation", "kernel_size", "output_padding", "scale_factor")
"""Arguments that have one value per spatial dim, if they are written as one number."""

MAY_BE_NEGATIVE = ("diagonal", "shifts", "k")
"""Integers that count from either side."""


def of_request(request: VariantRequest, rank: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the op's keyword arguments with one away from what is declared, each after what it is called in the name of a case: `alpha=0`, `without-alpha,beta` where they are left to torch's defaults.

    Those are declared arguments that the variant's `call` passes on, and those beside them that both the wrapper and torch know. The first other value of each comes first. `rank` is the largest number of dims of
    an input.
    """
    declaration, variant = request["op"], request["variant"]
    if declaration.get("random"):
        return
    written, own = variant.get("call"), declaration["kwargs"]
    known = of_torch(declaration)
    # How results are compared may name the dim that they are along.
    kept = DIMS if any(how.get("dim") is not None for how in declaration.get("outputs") or ()) else ()
    loose = [name for name in own if name not in kept and (written is None or name in str(written))]
    asked = [(name, [*away(name, own[name], rank), *longer(declaration, name)]) for name in loose]
    if written is None:
        taken = {*own, *(given["name"] for given in declaration["inputs"])}
        beside = [one.name for one in of_wrapper(request) if one.has_default and one.name in known]
        asked += [(name, away(name, known[name], rank)) for name in beside if name not in taken]
    # What flags and arguments that are none change is seen in few elements: the others may use the budget up.
    asked.sort(key=lambda one: not (one[0] in UNSET or any(isinstance(value, bool) for value in one[1])))
    both = dim_and_form({name: own[name] for name in loose}, rank)
    if both:
        yield ",".join(f"{name}={one}" for name, one in both.items()), {**own, **both}
        asked = [(name, values[1:] if name in both else values) for name, values in asked]
    columns = [
        [(f"{name}={value}", {**own, name: value}) for value in values if not is_empty_range({**own, name: value})]
        for name, values in asked
    ]
    rounds = [[one for one in turn if one is not None] for turn in zip_longest(*columns)]
    yield from rounds[0] if rounds else ()
    if written is None:
        left = [name for name in loose if name in known and name not in LEFT_ALONE]
        if left:
            yield f"without-{','.join(left)}", without(own, left)
    yield from chain.from_iterable(rounds[1:])
    yield from together(own, columns)
    if written is None:
        for name in loose:
            # A wrapper may have a dim of its own where torch has all of them.
            if name not in (*LEFT_ALONE, *DIMS) and name in defaulted(declaration):
                yield f"without-{name}", without(own, [name])


def without(own: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns the arguments but for those that are called `names`."""
    return {name: value for name, value in own.items() if name not in names}


def together(
    own: Mapping[str, Any], columns: Sequence[Sequence[tuple[str, dict[str, Any]]]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields arguments with all numbers at their first other value at once, if there are several: an argument may be handled right only while the others have their declared values."""
    changed: dict[str, Any] = {}
    for column in columns:
        for label, values in column[:1]:
            name = label.partition("=")[0]
            if name not in DIMS and type(values[name]) in (int, float):
                changed[name] = values[name]
    if len(changed) > 1 and not is_empty_range({**own, **changed}):
        yield ",".join(f"{name}={value}" for name, value in changed.items()), {**own, **changed}


def is_empty_range(changed: Mapping[str, Any]) -> bool:
    """Tells whether `min` is not below `max`. Functions treat that differently: as the input's range, or as two steps in order."""
    low, high = changed.get("min"), changed.get("max")
    return isinstance(low, (int, float)) and isinstance(high, (int, float)) and low >= high


def dim_and_form(own: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """Returns another dim with the other `keepdim`, which tell of both and of what they are together; nothing where the arguments are not both among `own`."""
    dim = next((name for name in DIMS if name in own), None)
    others = [] if dim is None or "keepdim" not in own else dims_away(own[dim], rank)
    return {dim: others[0], "keepdim": not own["keepdim"]} if dim is not None and others else {}


def away(name: str, value: Any, rank: int) -> list[Any]:
    """Returns other values for the argument `name` than `value`, the one that tells most first; none where none is known to make sense."""
    if name in LEFT_ALONE:
        return []
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [word for word in WORDS.get(name, ()) if word != value]
    if name in DIMS:
        return dims_away(value, rank)
    if name in PAIRS and isinstance(value, list) and value and all(isinstance(one, int) for one in value):
        return [[value[0] + 1, *value[1:]]]
    if value is None:
        zeros = [0] if name in MAY_BE_ZERO else []
        return [UNSET[name], *zeros] if name in UNSET else []
    zero = [type(value)(0)] if name in MAY_BE_ZERO and value else []
    if name == "threshold":
        # A lower one, which more values are above.
        return [value / 4 if value else 1.0, *zero]
    if isinstance(value, float):
        return [1e-2 if 0 < abs(value) < 1e-3 else 2.5 * value if value else 0.75, *zero]
    if not isinstance(value, int):
        return []
    pairs = [[value + 1, *[value] * (rank - 3)]] if name in PAIRS and rank > 3 else []
    if name == "padding":
        # More than half a window is too much for torch.
        uneven = [[value - 1 if value else 1, *[value] * (rank - 3)]] if rank > 3 else []
        return [*uneven, 0 if value else 1]
    if name == "padding_idx":
        return [-1, *zero]
    if name in ("min", "max"):
        return [value - 1 if name == "min" else value + 1, *zero]
    if name in ("alpha", "beta", "value"):
        return [3 * value + 1, *zero]
    if name == "ignore_index":
        # A label that some rows have.
        return [1 if value < 0 else value + 1]
    if name == "correction":
        return [one for one in (0, value + 1) if one != value]
    if name == "ord":
        return [one for one in (value + 1, float("inf"), 1, 0, -float("inf")) if one != value]
    if name in WHOLE:
        return [*pairs, value + 1, *([-value - 2] if name in MAY_BE_NEGATIVE else [])]
    return pairs


def longer(declaration: Declaration, name: str) -> list[Any]:
    """Returns the value of an argument that names the last dims of the only tensor, as `normalized_shape` does, with one dim more."""
    value, shaped = declaration["kwargs"][name], tensors(declaration)
    if not isinstance(value, list) or len(shaped) != 1 or name in DIMS or not value:
        return []
    shape = shaped[0]["shape"]
    return [shape[-len(value) - 1 :]] if len(shape) > len(value) and shape[-len(value) :] == value else []


def is_of_another_kind(declaration: Declaration, changed: Mapping[str, Any]) -> bool:
    """Tells whether one of the arguments is a list where ops.yaml has a number."""
    own = declaration["kwargs"]
    return any(isinstance(value, list) and not isinstance(own.get(name), list) for name, value in changed.items())


def dims_away(value: Any, rank: int) -> list[Any]:
    """Returns other dims than `value` of a tensor with `rank` dims: another one, the same by its other name, and the last but one; of several the first, and all."""
    found: list[Any] = []
    if isinstance(value, list):
        found = [value[:1], list(range(rank))] if len(value) > 1 else [list(range(rank))]
    elif value is None:
        found = [0, -1]
    elif isinstance(value, int) and rank > 1:
        found = [0 if value in (-1, rank - 1) else -1, value + rank if value < 0 else value - rank, -2]
    return [one for place, one in enumerate(found) if one != value and one not in found[:place]]


def of_torch(declaration: Declaration) -> dict[str, Any]:
    """Returns the arguments of the op's torch function that have a plain default, or none and a place in `UNSET`, with it; of a reference in Python none."""
    found = [one for one in parameters(declaration) if one.has_default]
    return {one.name: one.default for one in found if one.default is not None or one.name in UNSET}


def defaulted(declaration: Declaration) -> set[str]:
    """Returns the arguments of the op's torch function that may be left out; of a reference in Python none."""
    return {one.name for one in parameters(declaration) if one.has_default}


def parameters(declaration: Declaration) -> list[signatures.Parameter]:
    """Returns the parameters of the op's torch function; none of a reference in Python."""
    name = declaration.get("torch")
    if not name:
        return []
    meant = {given["name"] for given in declaration["inputs"]} | set(declaration["kwargs"])
    try:
        return signatures.of_op(resolve(name), name, lambda one: one in meant)
    except LookupError:
        return []


def of_wrapper(request: VariantRequest) -> list[signatures.Parameter]:
    """Returns the parameters of the variant's wrapper, as its source says; none of an installed module's."""
    variant = request["variant"]
    if variant.get("module") or not variant.get("file"):
        return []
    try:
        found = signatures.wrappers((Path(request["root"]) / variant["file"]).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    return [one for wrapper in found if wrapper.entry == variant["entry"] for one in wrapper.parameters]
