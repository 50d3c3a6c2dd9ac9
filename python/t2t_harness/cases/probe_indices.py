"""Probes of inputs that say where values are read or written: indices that count from the end, indices of another shape than what they are for, and counts of copies. It makes no values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_compared, bindings, cases, drawing, elementwise, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import bind_init, tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, TensorInput

NAMES = ("index", "indices")
"""What an input, or a list of inputs, with indices is called."""

FLAT = ("take", "put")
"""Functions in which an index below zero counts from the end of all elements of the first input."""

ALONG = ("index_fill", "take_along_dim")
"""Functions in which one counts from the end of the dim that the argument `dim` names."""

LISTED = ("index_put",)
"""Functions in which one counts from the end of a dim: the first tensor of a list has indices of the first dim."""


GATHERED = ("gather",)
"""Functions whose indices may be fewer than the first input's elements along any dim."""

SCATTERED = ("scatter", "scatter_add", "scatter_reduce")
"""Functions whose indices may be so, and fewer than those of the further input that says what is written."""

SPREAD = ("take_along_dim",)
"""Functions whose indices are the same along a dim where they have the length 1."""


REPEATING = "repeat_interleave"
"""The function that copies each element as often as an input says."""

REPEATS = "repeats"
"""What that input is called."""

LENGTHS = (9, 7, 5, 4)
"""Lengths from the last dim on of a case of fewer indices: more than one row of them is left."""


def indices(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which some indices are below zero, where torch's function counts those from the end. It takes no other's place."""
    small = probing.tiny(declaration)
    bound = cases.shapes(declaration, probing.probe(declaration, cases.NEGATIVE, small))
    held = counted(declaration, bound)
    if held:
        named = f"{cases.NEGATIVE}[{cases.JOINED.join(held)}]"
        yield probing.probe(declaration, named, small, values=cases.NEGATIVE, has_own_budget=True)
    yield from shorter(declaration)
    yield from counts(declaration)


def bounded(declaration: Declaration) -> list[str]:
    """Returns the names of the inputs of integers that are drawn up to a length, in order or not: places, or counts of them."""
    found = []
    for given in tensors(declaration):
        init = given["init"]["of"] if given["init"]["kind"] == "sorted" else given["init"]
        last = init["high"] if init["kind"] == "randint" else init["total"] if init["kind"] == "offsets" else None
        if isinstance(last, str) and given["shape"]:
            found.append(given["name"])
    return found


def bounds(declaration: Declaration, compared: Iterable[int], limit: int) -> Iterator[Case]:
    """Yields cases in which integers that are drawn up to a length are as small or as large as they may be: at few places, at many, and at one more than an integer that the kernel's files compare something with. They take no other's place."""
    held, free = bounded(declaration), probing.free(declaration)
    if not held or declaration.get("random") or "limits" in cases.edges_off(declaration):
        return
    yield probing.probe(declaration, cases.BOUNDS, probing.tiny(declaration), values=cases.BOUNDS, has_own_budget=True)
    for dim in sorted(bindings.pointed_into(declaration)):
        lengths = [probing.LONG[0], *(value + 1 for value in compared if value >= probing.LONG[0])]
        for length in lengths if dim in free else ():
            binding = probing.bound(declaration, {dim: length}, probing.NARROW)
            if probing.fits(declaration, binding, limit):
                word = f"{cases.BOUNDS}[{dim}={binding[dim]}]"
                yield probing.probe(declaration, word, binding, values=cases.BOUNDS, has_own_budget=True)


def planted(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which some of the integers of an input are whole numbers among the arguments, or beside them: an index of nothing, a mark, a first one that is other than the rest; of a wide range its ends and zero, too. It takes no other's place."""
    wanted = whole(declaration)
    if declaration.get("random"):
        return
    # There are as many places as those numbers point to.
    places = {dim: min(max(wanted, default=0) + 2, MOST_PLACES) for dim in bindings.pointed_into(declaration)}
    small = probing.tiny(declaration)
    for given in tensors(declaration):
        binding = probing.bound(declaration, {**small, **places}, probing.NARROW)
        if given["shape"] and planted_in(declaration, given, binding) and bindings.is_possible(declaration, binding):
            word = f"{cases.PLANTED}[{given['name']}]"
            found = probing.probe(declaration, word, binding, values=cases.PLANTED, of=given["name"])
            yield replace(found, has_own_budget=True)


MOST_PLACES = 300
"""So many places there are at most for a number that points to one."""


WIDE = 1 << 9
"""A range of so many integers is seldom drawn at its ends."""

MANY = 19
"""So many indices are tried at few places."""


def planted_in(
    declaration: Declaration,
    given: TensorInput,
    binding: Mapping[str, int],
    changed: Mapping[str, object] | None = None,
) -> list[int]:
    """Returns the numbers that are planted among the integers of an input, in a call with the arguments `changed` where there are some."""
    found = within(given, binding, whole(declaration, changed))
    if given["init"]["kind"] == "randint" and changed is None:
        known = span(given)
        if known is not None and known.stop - known.start > WIDE:
            ends = [*([0] if known.start < 0 < known.stop else []), known[0], known[-1]]
            found += [one for one in ends if one not in found]
        if known is not None:
            found += [one for one in at_divisors(declaration) if one in known and one not in found]
    return found


def at_divisors(declaration: Declaration) -> list[int]:
    """Returns the numbers at which what a reference divides leaves nothing: the divisors of its code, of both signs, and those less a whole number among the arguments, which may be added before."""
    own = [value for value in (declaration.get("kwargs") or {}).values() if type(value) is int]
    both = [sign * one for one in arguments_compared.divisors(declaration) for sign in (1, -1)]
    return [one - away for away in (0, *own[:DIVIDED]) for one in both]


DIVIDED = 2
"""So many arguments may be added before a division."""


def ties(declaration: Declaration) -> dict[str, str]:
    """Returns the inputs of random integers that are tried with values of another one, and which that is: the first of several that are drawn alike, and the wider of two of one shape and dtype whose ranges of numbers meet."""
    drawn = [given for given in tensors(declaration) if given["init"]["kind"] == "randint" and given["shape"]]
    found: dict[str, str] = {}
    for one, other in combinations([given for given in drawn if not given.get("optional")], 2):
        if (one["init"], one["dtype"]) == (other["init"], other["dtype"]):
            found.setdefault(one["name"], other["name"])
        elif do_meet(one, other):
            narrow, wide = sorted((one, other), key=lambda given: len(span(given) or range(0)))
            found.setdefault(wide["name"], narrow["name"])
    return dict(list(found.items())[:MOST_TIES])


MOST_TIES = 3
"""So many inputs of integers are tried so."""


def do_meet(one: TensorInput, other: TensorInput) -> bool:
    """Tells whether two inputs of random integers, of one shape and dtype, may have the same values."""
    own, theirs = span(one), span(other)
    if (one["shape"], one["dtype"]) != (other["shape"], other["dtype"]) or own is None or theirs is None:
        return False
    return max(own.start, theirs.start) < min(own.stop, theirs.stop)


def span(given: TensorInput) -> range | None:
    """Returns the range that an input of random integers is drawn from, None where a length is one of its ends."""
    init = given["init"]
    low, high = (init["low"], init["high"]) if init["kind"] == "randint" else ("", "")
    return range(low, high) if isinstance(low, int) and isinstance(high, int) else None


def met(declaration: Declaration, changed: Mapping[str, object], names: Iterable[str]) -> str | None:
    """Returns the first input of integers, where an argument of those `names` is a whole number in a call with the arguments `changed` that the reference compares with something; else None."""
    whole_ones = [name for name in names if type(changed.get(name)) is int]
    if not any(arguments_compared.is_met(declaration, name) for name in whole_ones):
        return None
    held = [given["name"] for given in tensors(declaration) if given["init"]["kind"] == "randint" and given["shape"]]
    return held[0] if held else None


def marks(declaration: Declaration, case: Case) -> Iterator[tuple[str, int, int]]:
    """Yields the inputs of integers the least of which is a mark, as of a slot that is free: an argument says which number that is, by its name, or since the reference compares it with something. After the name come the mark as it is declared, and what it is in `case`."""
    for argument, own in (declaration.get("kwargs") or {}).items():
        other = (case.kwargs or {}).get(argument, own)
        if type(own) is not int or own >= 0 or type(other) is not int or other == own:
            continue
        is_known = argument in (cases.IGNORE, cases.PADDING)
        if not is_known and not arguments_compared.is_met(declaration, argument):
            continue
        for given in tensors(declaration):
            if given["init"]["kind"] in ("randint", "distinct") and given["init"]["low"] == own:
                yield given["name"], own, other


def lengths_of(declaration: Declaration) -> list[str]:
    """Returns the dims of the inputs whose integers are drawn up to a length: how many there are, and not the lengths."""
    shaped = [given["shape"] for given in tensors(declaration) if given["name"] in bounded(declaration)]
    pointed, free = bindings.pointed_into(declaration), probing.free(declaration)
    return [str(dim) for shape in shaped for dim in shape if dim in free and dim not in pointed]


def whole(declaration: Declaration, changed: Mapping[str, object] | None = None) -> list[int]:
    """Returns the whole numbers from 2 on among the op's arguments; less are drawn anyway. In a call with the arguments `changed` they are those that are others there."""
    own = declaration.get("kwargs") or {}
    if changed is not None:
        return sorted({value for name, value in changed.items() if type(value) is int and own.get(name) != value})
    told = [*own.values(), *elementwise.defaults(declaration).values()]
    return sorted({value for value in told if type(value) is int and value >= 2})


def within(given: TensorInput, binding: Mapping[str, int], wanted: Iterable[int]) -> list[int]:
    """Returns those of the `wanted` numbers, and of the numbers beside them, that a declared input of integers may hold."""
    init = bind_init(given["init"]["of"] if given["init"]["kind"] == "sorted" else given["init"], binding)
    if init["kind"] not in ("randint", "offsets"):
        # Those that are declared to be distinct would not be so.
        return []
    low, last = drawing.bounds(init)
    high = last + 1
    found = [value for value in wanted if low <= value < high]
    beside = [value + step for value in found for step in (-1, 1) if low <= value + step < high]
    return [*dict.fromkeys([*found, *beside])]


def shorter(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which indices are fewer than what they are for, along every dim that has more than one; where torch spreads them, in which they have the length 1 along one dim."""
    inputs, small = tensors(declaration), probing.rows(declaration, LENGTHS)
    held = [given["name"] for given in inputs[1:] if holds_indices(given) and given.get("list") is None]
    function, dim = elementwise.name_of(declaration), along(declaration)
    if function not in (*GATHERED, *SCATTERED, *SPREAD) or len(held) != 1 or dim is None:
        return
    shapes = cases.shapes(declaration, probing.probe(declaration, "shorter", small))
    own, declared, (name,) = shapes[inputs[0]["name"]], shapes[held[0]], held
    if len(own) != len(declared) or not -len(own) <= dim < len(own):
        return
    elsewhere = [place for place in range(len(own)) if place != dim % len(own) and declared[place] > 1]
    if function in SPREAD:
        found = {name: [1 if place in elsewhere[:1] else length for place, length in enumerate(declared)]}
    else:
        fewer = [max(length - 1, 1) for length in declared]
        found = {name: fewer}
        if declaration["backward"]:
            # torch has no gradient of what is not read.
            found |= {given["name"]: fewer for given in inputs[1:] if shapes[given["name"]] == declared}
    if found[name] != declared and (elsewhere or function in SCATTERED):
        yield probing.probe(declaration, f"shorter[{name}]", small, shapes=found, has_own_budget=True)


def counted(declaration: Declaration, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Returns the inputs whose indices may count from the end, by name, with the number of places that they count from; `shapes` are those of all inputs. Elsewhere torch refuses an index below zero, on a device by an assertion that ends the process."""
    function, inputs = elementwise.name_of(declaration), tensors(declaration)
    held = [given for given in inputs[1:] if holds_indices(given)]
    own = shapes[inputs[0]["name"]] if inputs else ()
    dim = along(declaration)
    if function in FLAT:
        return {given["name"]: math.prod(own) for given in held}
    if function in ALONG and dim is not None and -len(own) <= dim < len(own):
        return {given["name"]: own[dim] for given in held}
    if function in LISTED:
        listed = [given for given in inputs[1:] if given.get("list") in NAMES]
        # A mask among them would take several dims.
        if listed == held and len(held) <= len(own):
            return {given["name"]: length for given, length in zip(held, own, strict=False)}
    return {}


def holds_indices(given: TensorInput) -> bool:
    """Tells whether an input holds indices, by its name, or that of its list, and its type."""
    return (given.get("list") or given["name"]) in NAMES and str(given["dtype"]) in ("int64", "int32")


def along(declaration: Declaration) -> int | None:
    """Returns the dim that the op is called with, as an argument or a number among the inputs; None where there is none."""
    told = {one["name"]: one["scalar"] for one in declaration["inputs"] if "scalar" in one} | declaration["kwargs"]
    dim = told.get("dim")
    return dim if type(dim) is int else None


def counts(declaration: Declaration) -> Iterator[Case]:
    """Yields cases in which a few elements are copied much more often than the others, in one of them more often than most blocks are long; nothing where the op is told the length of the result."""
    inputs = tensors(declaration)
    told = {one["name"]: one["scalar"] for one in declaration["inputs"] if "scalar" in one} | declaration["kwargs"]
    if elementwise.name_of(declaration) != REPEATING or told.get("output_size") is not None:
        return
    for given in inputs:
        is_meant = given["name"] == REPEATS or len(inputs) == 1
        if is_meant and str(given["dtype"]) in ("int64", "int32") and given["init"]["kind"] == "randint":
            few = probing.bound(declaration, {str(dim): FEW for dim in given["shape"]}, probing.NARROW)
            for values, word in ((cases.COUNTS, given["name"]), (cases.LONG_COUNT, f"{given['name']},long")):
                named = f"{cases.COUNTS}[{word}]"
                yield probing.probe(declaration, named, few, values=values, of=given["name"], has_own_budget=True)


FEW = 5
"""So many elements are copied."""
