"""Inputs and arguments that an op may be meant for, the likeliest first: from names, from what code says of them, and from the shapes of the first input.

It does not know whether the op takes them. torch is imported nowhere.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from t2t_harness.phases import nearby
from t2t_harness.sources.use import Use

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Json, Length
    from t2t_harness.sources.signatures import Parameter


class Tried(TypedDict, total=False):
    """A tensor that a call is tried with."""

    shape: list[Length]
    dtype: str
    init: dict[str, Json]
    """As ops.yaml writes it."""
    optional: bool


GUESSES: Mapping[str, Json] = {
    "dim": -1,
    "axis": -1,
    "normalized_shape": ["N"],
    "p": 0.5,
    "k": 4,
    "chunks": 2,
    "eps": 1e-6,
    "num_groups": 4,
    "lr": 0.001,
    "beta1": 0.9,
    "beta2": 0.999,
    "decay": 0.9,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "step": 1,
    "reduction": "mean",
    "ignore_index": -100,
    "padding_idx": 0,
    "pad_slot_id": -1,
    "label_smoothing": 0.1,
}
"""What an argument without a default is tried with."""

ROTARY = re.compile(r"(.*_)?(cos|sin)(_.*)?", re.IGNORECASE)
"""Names of the tables of a rotary embedding, which have half of the last dim."""

WEIGHT = re.compile(r"[wbg]|(.*_)?(weight|bias|gamma|beta|scale)s?", re.IGNORECASE)
"""Names of tensors that have a value for each place of the last dim."""

OFFSETS = re.compile(r"(.*_)?(cu_seqlens?|indptr|offsets|row_?ptr|ptr)(_.*)?", re.IGNORECASE)
"""Names of tensors that say where segments begin."""

PLACES = re.compile(
    r"(.*_)?(ids?|idx|ind|index|indices|labels?|slots?|slot_mapping|(block|page)_tables?|tables|positions?|tokens|starts|mapping)",
    re.IGNORECASE,
)
"""Names of tensors that hold places."""

COUNTS = re.compile(r"(.*_)?(lens|lengths|seq_?lens|counts?)", re.IGNORECASE)
"""Names of tensors that hold how many there are."""

MASKS = re.compile(r"(.*_)?(masks?|dones?|valid|keep|resets?)", re.IGNORECASE)
"""Names of tensors of booleans."""

NUMBERS = re.compile(
    r"(.*_)?(eps|epsilon|scale|alpha|beta\d?|lr|decay|momentum|temperature|gamma|theta|factor|max_norm|softcap|p|rate)",
    re.IGNORECASE,
)
"""Names of numbers that have a point."""

WHOLE = re.compile(
    r"(num|max|n|min)_.+|.*_(size|dim|heads|groups|len|width|blocks|experts)|(k|top_?k|groups?|blocks?|bins|window|size|heads|stride|padding|seed|levels|radius)",
    re.IGNORECASE,
)
"""Names of whole numbers."""

FLAGS = re.compile(
    r"(is|use|has|do|with|return)_.+|causal|log_target|renormalize|inplace|training|normalize|interleaved",
    re.IGNORECASE,
)
"""Names of flags."""

COUNTED = re.compile(r"(num|n)_.+|.*_(classes|experts|segments|bins|rows|nodes)|bins", re.IGNORECASE)
"""Names of numbers that say how many places there are."""

SCALES = re.compile(r"(.*_)?scales?(_.*)?|s[xw]", re.IGNORECASE)
"""Names of what quantized values are multiplied by."""

QUANTIZED = re.compile(r".+_(q|u?int[48]|fp8|float8|quant|quantized|packed)|[xw]q|q[xw]|q_?weight", re.IGNORECASE)
"""Names of quantized values; `q` alone is a query."""

FLOAT8 = re.compile(r".*(fp8|float8).*", re.IGNORECASE)
"""Those of eight bits with a point."""

RANGES: Mapping[str, tuple[int, int]] = {
    "int8": (-127, 128),
    "uint8": (0, 256),
    "int32": (0, 2147483647),
    "int64": (0, 2147483647),
}
"""What integers that are no places are drawn from."""

UNBOUND = "V"
"""What bounds places in what is no argument: a dim of its own."""

DATA = frozenset("x input inp hidden_states hidden data img u".split())
"""Names of the input that others belong to; beside `p`, `g` and `b` are no weights."""


@dataclass(frozen=True)
class Call:
    """Tensors and other arguments of a call."""

    inputs: dict[str, Tried]
    kwargs: dict[str, Json]


Choice = tuple[float, "Tried | Number"]
"""How unlikely an argument is, and what it is."""


@dataclass(frozen=True)
class Beside:
    """What is known of a call whose other tensors are looked for."""

    base: tuple[Length, ...]
    """The shape of the tensor by which others go."""
    is_data: bool
    """Whether that has the name of data."""
    is_scaled: bool
    """Whether an argument is called a scale."""


@dataclass(frozen=True)
class Number:
    """An argument that is no tensor; it is left out where its value is None."""

    value: Json


def calls(parameters: Sequence[Parameter], uses: Mapping[str, Use]) -> Iterator[Call]:
    """Yields calls with each of these arguments, the likeliest first."""
    names = [one.name for one in parameters]
    told = next((name for name in names if uses[name].dims is not None and not is_index(name, uses[name])), None)
    anchor = told or next((name for name in names if may_be_base(name, uses[name])), None)
    merged = heapq.merge(
        *(combined(parameters, uses, anchor, *base) for base in bases(uses, anchor)), key=lambda one: one[0]
    )
    for _, chosen in merged:
        inputs = {name: one for name, one in chosen.items() if not isinstance(one, Number)}
        told_numbers = ((name, one.value) for name, one in chosen.items() if isinstance(one, Number))
        numbers: dict[str, Json] = {name: value for name, value in told_numbers if value is not None}
        yield Call({name: resolved(name, inputs, numbers, uses) for name in inputs}, numbers)


def bases(uses: Mapping[str, Use], anchor: str | None) -> Iterator[tuple[float, tuple[Length, ...]]]:
    """Yields the shapes that the input has by which others go, and how unlikely each is."""
    if anchor is None:
        yield 0.0, ("M", "N")
        return
    use = uses[anchor]
    if use.dims is not None:
        yield 0.0, (*lengths_in(use.dims),)
        return
    for dims in (lengths_in(one.dims) for one in uses.values() if one.dims is not None):
        # Those of what holds places in it, or beside it: a row for each.
        yield 0.0, (dims[0], "N")
        yield 0.5, (*dims, "N")
        yield 0.6, (*dims,)
    for cost, base in nearby.BASES:
        if has_fitting_rank(base, use):
            yield cost, base


def lengths_in(dims: Sequence[str]) -> list[Length]:
    """Returns dims as a shape: numbers as such, and a name for each that has none, or only underscores."""
    spare = iter("X Y Z U V W".split())
    return [int(one) if one.isdigit() else (next(spare) if one.strip("_") == "" else one) for one in dims]


def combined(
    parameters: Sequence[Parameter], uses: Mapping[str, Use], anchor: str | None, cost: float, base: tuple[Length, ...]
) -> Iterator[tuple[float, dict[str, Tried | Number]]]:
    """Yields what the arguments may be together where the anchor has this shape, by how unlikely they are."""
    known = [length for use in uses.values() for length in use.dims or () if not length.isdigit()]
    dims: list[Length] = [*dict.fromkeys([*known, *(length for length in base if isinstance(length, str))])]
    is_scaled = any(SCALES.fullmatch(one.name) for one in parameters)
    choices: list[list[Choice]] = []
    for one in parameters:
        use = uses[one.name]
        if one.name == anchor:
            choices.append([(0.0, {"shape": exactly([*base], use), **typed(one.name, use, is_scaled=is_scaled)})])
            continue
        beside = Beside(base, is_data=anchor in DATA, is_scaled=is_scaled)
        found = sorted(choices_of(one, use, beside, dims), key=lambda one: one[0])
        if not found:
            return
        choices.append(found)
    for total, picked in ascending(choices):
        yield cost + total, {one.name: choice for one, choice in zip(parameters, picked, strict=True)}


def ascending(choices: list[list[Choice]]) -> Iterator[tuple[float, list[Tried | Number]]]:
    """Yields one of each list, by the sum of their costs, for lists that are sorted by theirs."""
    first = (0,) * len(choices)
    heap = [(sum(one[0][0] for one in choices), first)]
    seen = {first}
    while heap:
        cost, at = heapq.heappop(heap)
        yield cost, [one[place][1] for one, place in zip(choices, at, strict=True)]
        for number, place in enumerate(at):
            if place + 1 < len(choices[number]):
                following = (*at[:number], place + 1, *at[number + 1 :])
                if following not in seen:
                    seen.add(following)
                    more = choices[number][place + 1][0] - choices[number][place][0]
                    heapq.heappush(heap, (cost + more, following))


def may_be_base(name: str, use: Use) -> bool:
    """Tells whether others may go by the shape of this argument."""
    return not is_index(name, use) and (use.is_tensor or not (use.is_number or is_named_number(name)))


def is_named_number(name: str) -> bool:
    """Tells whether an argument has the name of a number, or of a flag."""
    return name in GUESSES or any(pattern.fullmatch(name) for pattern in (NUMBERS, WHOLE, FLAGS))


def is_index(name: str, use: Use) -> bool:
    """Tells whether an argument holds places, offsets or counts."""
    by_name = name not in GUESSES and any(pattern.fullmatch(name) for pattern in (OFFSETS, PLACES, COUNTS))
    is_told = use.dtype in ("int32", "int64") and not use.is_bits
    return bool(use.places) or use.is_offsets or is_told or (by_name and not use.is_number)


def choices_of(one: Parameter, use: Use, beside: Beside, dims: list[Length]) -> Iterator[Choice]:
    """Yields what an argument may be, and how unlikely that is."""
    is_told, is_named = one.default is not None or one.is_number, is_named_number(one.name)
    if not is_told and (use.is_tensor or not use.is_number):
        for cost, tensor in tensors(one.name, use, beside):
            yield cost + (2.0 if is_named and not use.is_tensor else 0.0), tensor
    if is_told or not use.is_tensor:
        for cost, value in numbers(one, use, dims):
            yield cost + (0.0 if is_told or is_named or use.is_number else 2.0), Number(value)
    if is_absent(one):
        yield 2.5, Number(None)


def is_absent(one: Parameter) -> bool:
    """Tells whether an argument may be left out, and is None then."""
    return one.has_default and one.default is None


def numbers(one: Parameter, use: Use, dims: list[Length]) -> Iterator[tuple[float, Json]]:
    """Yields what an argument that is no tensor may be: its default, or a guess."""
    if one.default is not None:
        yield 0.0, one.default  # type: ignore[misc]
    elif one.name in GUESSES and not (use.is_whole and isinstance(GUESSES[one.name], float)):
        yield 0.0, GUESSES[one.name]
    elif FLAGS.fullmatch(one.name) or (use.is_flag and not (use.is_whole or WHOLE.fullmatch(one.name))):
        yield 0.0, True
        yield 0.1, False
    elif use.is_whole or WHOLE.fullmatch(one.name) or one.name in dims:
        if one.name in dims:
            yield 0.0, one.name
        yield from ((0.0, 4), (0.3, 2), (0.6, 1))
        yield from ((0.7, length) for length in dims)
    else:
        yield 0.0, 0.5
        yield 0.8, 2


def tensors(name: str, use: Use, beside: Beside) -> Iterator[tuple[float, Tried]]:
    """Yields what a tensor may be beside the anchor."""
    base = beside.base
    if use.is_offsets or OFFSETS.fullmatch(name):
        shape: list[Length] = ["G+1"] if use.dims is None else lengths_in(use.dims)
        for cost, total in ((0.0, base[0]), (0.2, nearby.fresh(base)[0])):
            yield cost, Tried(shape=shape, dtype=use.dtype or "int32", init={"offsets": total})
        return
    more: Tried = {}
    if is_index(name, use):
        kind = "unique" if use.is_written_at else "randint"
        shapes, more = nearby.places(base), {"dtype": use.dtype or "int64", "init": {kind: [0, UNBOUND]}}
    elif use.is_mask or use.dtype == "bool" or MASKS.fullmatch(name):
        shapes, more = nearby.related(base, is_weight=False), {"dtype": "bool", "init": {"mask": 0.5}}
    elif ROTARY.fullmatch(name):
        shapes = nearby.rotary(base)
    else:
        shapes = nearby.related(
            base, is_weight=WEIGHT.fullmatch(name) is not None and (len(name) > 1 or beside.is_data)
        )
        more = typed(name, use, is_scaled=beside.is_scaled)
    for cost, near in shapes if use.dims is None else [(0.0, lengths_in(use.dims))]:
        if has_fitting_rank(near, use):
            yield cost, {"shape": exactly(near, use), **more}


def typed(name: str, use: Use, *, is_scaled: bool) -> Tried:
    """Returns what a tensor is beyond its shape where it does not follow the tested dtype: whose bits are looked at, of which the dtype is told, or which has the name of a quantized one, is made a float and has a scale beside it."""
    dtype = use.dtype
    if dtype is None and use.is_bits:
        dtype = "int32" if use.is_wide else "uint8"
    if dtype is None and is_scaled and use.is_widened and QUANTIZED.fullmatch(name):
        dtype = "float8_e4m3fn" if FLOAT8.fullmatch(name) else "int8"
    if dtype is None:
        return {}
    return {"dtype": dtype, "init": {"randint": [*RANGES[dtype]]}} if dtype in RANGES else {"dtype": dtype}


def has_fitting_rank(shape: Sequence[Length], use: Use) -> bool:
    """Tells whether a shape has as many dims as the code names."""
    return use.least <= len(shape) and (use.most is None or len(shape) <= max(use.most, use.least))


def exactly(shape: list[Length], use: Use) -> list[Length]:
    """Returns a shape with the lengths that code names: as many places as it reads by number, and whole parts."""
    found = [*shape]
    for at, length in use.fixed.items():
        if length > 1 and -len(found) <= at < len(found) and use.dims is None:
            found[at] = length
    for at, count in use.parts.items():
        if -len(found) <= at < len(found) and isinstance(found[at], str):
            found[at] = f"{count}*{found[at]}"
    return found


def resolved(name: str, inputs: Mapping[str, Tried], kwargs: Mapping[str, Json], uses: Mapping[str, Use]) -> Tried:
    """Returns a tensor with the bounds of the places that it holds."""
    found = inputs[name]
    open_ones = [kind for kind, bounds in (found.get("init") or {}).items() if bounds == [0, UNBOUND]]
    bounds = bounds_of(name, inputs, kwargs, uses[name])
    return {**found, "init": {kind: bounds for kind in open_ones}} if open_ones else found


def bounds_of(name: str, inputs: Mapping[str, Tried], kwargs: Mapping[str, Json], use: Use) -> list[Json]:
    """Returns the bounds of places: the length of the dim in which they lie, or the number that says how many there are. Those of what counts are few."""
    for other, at in use.places:
        shape = inputs[other]["shape"] if other in inputs else []
        if -len(shape) <= at < len(shape):
            return [0, shape[at]]
    counted = [value for other, value in kwargs.items() if COUNTED.fullmatch(other)]
    if use.places:
        return [0, *(counted or [UNBOUND])[:1]]
    if COUNTS.fullmatch(name):
        return [1, 5]
    rows = next((one["shape"] for one in inputs.values() if "dtype" not in one), [UNBOUND])
    return [0, rows[-1]]
