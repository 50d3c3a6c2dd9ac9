"""Probes of what inputs hold and how they lie: unusual values, layouts, broadcast inputs, and which of them ask for gradients. Nothing here makes values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import (
    arguments_compared,
    bindings,
    cases,
    elementwise,
    probe_indices,
    probe_marks,
    probing,
    reference_code,
)
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, TensorInput

LATE_ROWS = 4
"""How many rows have NaN and infinities where a row is read in blocks."""


MASK = "mask"
"""What is in the name of an input that is added to what is weighed."""


MASKED = (131, 67)
"""Lengths of a mask; the first that fits is used."""


INDICES = 1 << 16
"""Integers from 0 up to so many, or to a dim, may be indices; other values would point outside."""


def layouts(declaration: Declaration) -> Iterator[Case]:
    """Yields cases in which inputs lie as parts of larger tensors do: rows that are dense, with memory between them and between blocks of them; with their first two dims swapped; with channels last; and with the second and third dim swapped."""
    ranks = [len(given["shape"]) for given in tensors(declaration)]
    if any(rank >= 2 for rank in ranks):
        yield probing.probe(declaration, "padded", probing.tiny(declaration), layout="padded")
    if any(rank >= 3 for rank in ranks):
        yield probing.probe(declaration, "swapped", probing.tiny(declaration), layout="swapped")
    for layout in ("channels_last", "inner_swapped") if any(rank >= 4 for rank in ranks) else ():
        yield probing.probe(declaration, layout, probing.tiny(declaration), layout=layout, has_own_budget=True)


def late(declaration: Declaration, lane: str, limit: int) -> Iterator[Case]:
    """Yields a case of long rows with NaN and infinity in them, which kernels that read a row in blocks lose between those."""
    dims = probing.loose(declaration)
    names = probing.of_values(declaration)
    is_open = not probing.hides(declaration) and not elementwise.multiplies(declaration)
    if names and dims and is_open and not elementwise.shows_anywhere(declaration):
        for case in probing.long(declaration, dims[-1], probing.LONG, limit, LATE_ROWS):
            named = f"{dims[-1]}={case.binding[dims[-1]]}"
            found = probing.probe(declaration, f"special-late[{named}]", case.binding, values="late", of=names[0])
            yield replace(found, has_own_budget=True)
            # The NaN of one row is that of a mean of them all, which hides what becomes of a row that only begins with minus infinity.
            begun = probing.probe(
                declaration, f"masked[{names[0]},{named}]", case.binding, values="masked", of=names[0]
            )
            yield replace(begun, has_own_budget=True)
    for given in tensors(declaration):
        # A mask is added to what is weighed, and has infinities every day.
        along = given["shape"][-1] if given["name"] in names and len(given["shape"]) > 1 else None
        if MASK in given["name"] and along in dims and not probing.hides(declaration):
            for case in probing.long(declaration, str(along), MASKED, limit, probing.NARROW):
                named = f"masked[{given['name']},{along}={case.binding[str(along)]}]"
                found = probing.probe(declaration, named, case.binding, values="masked", of=given["name"])
                yield replace(found, has_own_budget=True)


def values(declaration: Declaration, lane: str) -> Iterator[Case]:
    """Yields cases of other values: in each floating input NaN and infinities, a large mean, rows that are all minus infinity, zeros of both signs and ties, denormal numbers, and
    terms that cancel; of integers the limits of their type."""
    dtype, small = declaration["dtypes"][0], probing.rows(declaration)
    if cases.has_probabilities(declaration):
        return
    floating = probing.of_values(declaration)
    # A NaN in the second input is lost more often than anything else.
    # What lies between the places of a transposed convolution, as a gradient is one, is nothing to torch, and zero times the weight to others.
    function = elementwise.name_of(declaration)
    is_transposed = "conv_transpose" in function or (bool(declaration["backward"]) and "conv" in function)
    is_transposed |= any(name.startswith("conv_transpose") for name in reference_code.names_called(declaration))
    is_open = not probing.hides(declaration) and not is_transposed
    is_anywhere, met = elementwise.shows_anywhere(declaration), pairs(declaration, small)
    # Then each number meets all others in one case.
    is_met = is_anywhere and met is not None
    if len(floating) > 1 and is_open:
        if met is None or declaration["backward"]:
            every = probing.probe(declaration, "special[all]", small, values="special", of=cases.ALL)
            yield of_formula(declaration, every)
            absent = tuple(given["name"] for given in tensors(declaration) if given.get("optional"))
            if absent:
                word = f"special[all,without-{cases.JOINED.join(absent)}]"
                without = probing.probe(declaration, word, small, values="special", of=cases.ALL, absent=absent)
                yield probing.forward(declaration, replace(without, has_own_budget=True))
        if met is not None:
            yield probing.forward(declaration, met)
    for name in floating[:1]:
        if not is_anywhere:
            # What lies far from zero is lost where it is summed up.
            yield probing.probe(declaration, f"offset[{name}]", small, values="offset", of=name)
        yield probing.probe(declaration, f"small[{name}]", small, values="small", of=name)
    for given in tensors(declaration):
        if given["name"] in floating[:1] and probing.numbers(declaration, given):
            found = probing.probe(
                declaration, f"planted[{given['name']}]", small, values=cases.PLANTED, of=given["name"]
            )
            # Where a function has a corner, kernels and torch may take another gradient each.
            yield probing.forward(declaration, found)
    yield from of_ranges(declaration, small, () if is_met else floating[1:])
    yield from probe_indices.planted(declaration)
    for name in floating[:1] if not is_anywhere else ():
        yield probing.probe(declaration, f"below[{name}]", small, values="below", of=name, has_own_budget=True)
    for name in floating[:1] if is_open and not is_anywhere else ():
        rows = probing.probe(declaration, f"nan-rows[{name}]", small, values="nan-rows", of=name)
        yield probing.forward(declaration, replace(rows, has_own_budget=True))
    for given in tensors(declaration) if not is_anywhere else ():
        if given["name"] in floating[:1] and len(given["shape"]) > 1:
            # Other rows lie as far from zero, for what is summed up along the first dim.
            yield probing.probe(
                declaration,
                f"offset[{given['name']},level]",
                small,
                values="level",
                of=given["name"],
                has_own_budget=True,
            )
    for name in floating[:1] if arguments_compared.rounds(declaration) else ():
        halves = probing.probe(
            declaration, f"halves[{name}]", probing.rows(declaration, HALVES), values="halves", of=name
        )
        yield probing.forward(declaration, replace(halves, has_own_budget=True))
    yield from of_functions(declaration, small, floating)
    for name in floating[1:] if is_open and not is_met else ():
        yield of_formula(declaration, probing.probe(declaration, f"special[{name}]", small, values="special", of=name))
    for name in floating[1:2] if not is_met else ():
        yield probing.probe(declaration, f"zeros[{name}]", small, values="zeros", of=name)
    ranks = {given["name"]: len(given["shape"]) for given in tensors(declaration)}
    for position, name in enumerate(floating):
        kinds = ("infinite-rows", "zeros", "cancelling", "denormal")
        # A vector is no rows, and torch may fold a weight of infinities into another factor.
        is_open = ranks[name] > 1 and not probing.hides(declaration)
        left_out = {
            *(("denormal",) if lane == "cuda" else ()),
            *(("infinite-rows", "cancelling") if is_anywhere else ()),
            *(("zeros",) if is_met and position > 0 else ()),
        }
        for kind in kinds if position == 0 else (*kinds[: int(is_open)], "zeros"):
            if kind not in left_out:
                yield probing.probe(declaration, f"{kind}[{name}]", small, values=kind, of=name)
    limited: list[str] = []
    for given in tensors(declaration):
        kind = given["dtype"] or dtype
        is_tested = given["dtype"] is None or kind != "int64" or elementwise.takes_numbers(declaration)
        is_large = is_number(declaration, given) or (
            elementwise.reduces_integers(declaration) and given["init"]["kind"] == "randint"
        )
        if is_tested and given["shape"] and is_large and kind not in cases.FLOATING:
            limited.append(given["name"])
            few = probing.probe(declaration, f"limits[{given['name']}]", small, values="limits", of=given["name"])
            yield few
            dims = probing.loose(declaration)
            for case in (
                probing.long(declaration, dims[-1], probing.LONG, bindings.reach_limit(lane), 1) if dims else ()
            ):
                named = f"limits[{given['name']},{dims[-1]}={case.binding[dims[-1]]}]/{dtype}"
                yield replace(few, name=f"edge/{named}", binding=case.binding, has_own_budget=True)

    if len(limited) > 1 and len(limited) == len(tensors(declaration)):
        yield from limits_at_once(declaration, small, lane)


def of_formula(declaration: Declaration, case: Case) -> Case:
    """Returns `case`, of a reference in Python without gradients: how far a NaN of one input goes in the gradient of another depends on the formula, which is the kernel's own where torch has none."""
    return probing.forward(declaration, case) if declaration.get("reference") else case


RANGES = 3
"""So many inputs that are drawn from a range are tried at its ends."""


def of_ranges(declaration: Declaration, small: Mapping[str, int], names: Sequence[str]) -> Iterator[Case]:
    """Yields, for further inputs that are drawn from a range, such as probabilities, cases in which some values are its ends, or numbers between them that something is decided by: none of them is drawn by chance."""
    drawn = [given for given in tensors(declaration) if given["name"] in names and given["init"]["kind"] == "uniform"]
    for given in drawn[:RANGES]:
        word = f"planted[{given['name']}]"
        found = probing.probe(declaration, word, small, values=cases.PLANTED, of=given["name"], has_own_budget=True)
        yield probing.forward(declaration, found)


HALVES = (19, 6, 2)
"""Lengths of a case of halves: each greatest number of a row is that of two of them."""


def limits_of(declaration: Declaration, dtype: str, small: Mapping[str, int]) -> Iterator[Case]:
    """Yields, for a whole dtype that is not the first, a case in which the first input that has it is at the limits of the type: code of one type may begin with a number of another."""
    open_ = [
        given["name"] for given in tensors(declaration) if given["dtype"] is None and is_number(declaration, given)
    ]
    if open_ and dtype not in cases.FLOATING and elementwise.takes_large_integers(declaration):
        yield probing.probe(declaration, f"limits[{open_[0]}]", small, dtype=dtype, values="limits", of=open_[0])


def limits_at_once(declaration: Declaration, small: Mapping[str, int], lane: str) -> Iterator[Case]:
    """Yields a case in which all inputs, which are integers, have the limits of their type at once; where they may be summed up in one of a row so long that a float32 does not hold sums of products of 8 bits."""
    along, loose = tensors(declaration)[0]["shape"][-1], probing.loose(declaration)
    binding, has_own_budget = small, False
    if not elementwise.is_elementwise(declaration) and along in loose:
        longer = probing.bound(declaration, {str(along): LONG_LIMITS}, probing.NARROW)
        if probing.fits(declaration, longer, bindings.reach_limit(lane)):
            binding, has_own_budget = longer, True
    found = probing.probe(declaration, "limits[all]", binding, values="limits", of=cases.ALL)
    yield replace(found, has_own_budget=has_own_budget)


LONG_LIMITS = 4099
"""So many products of the largest integers of 8 bits are more than 2²⁴."""


def of_functions(declaration: Declaration, small: Mapping[str, int], floating: Sequence[str]) -> Iterator[Case]:
    """Yields, for functions that torch says something of, a case of floating inputs whose squares are beyond their type, one of powers of two, one in which results approach zero, one of windows that are -inf, and one of integers that are next to each other and that a float does not tell apart."""
    if floating and elementwise.is_elementwise(declaration):
        yield probing.probe(declaration, f"extreme[{floating[0]}]", small, values="extreme", of=cases.ALL)
        powers = probing.probe(declaration, f"powers[{floating[0]}]", small, values="powers", of=floating[0])
        # One, of either sign, is where some functions have no gradient.
        yield probing.forward(declaration, powers)
    if floating and "pool" in elementwise.name_of(declaration):
        # A window of nothing else than -inf.
        images = probing.probe(declaration, f"low[{floating[0]}]", small, values="low", of=floating[0])
        yield replace(images, has_own_budget=True)
    if floating and elementwise.has_tails(declaration):
        yield probing.probe(declaration, f"tails[{floating[0]}]", small, values=cases.TAILS, of=floating[0])
    drawn = [given for given in tensors(declaration) if given["init"]["kind"] == "randint" and given["shape"]]
    is_open = elementwise.takes_numbers(declaration) or (
        elementwise.orders(declaration) and all(is_number(declaration, given) for given in drawn)
    )
    if drawn and not floating and is_open:
        yield probing.probe(declaration, f"neighbours[{drawn[0]['name']}]", small, values="neighbours", of=cases.ALL)


def pairs(declaration: Declaration, small: Mapping[str, int]) -> Case | None:
    """Returns, for an op that works element by element on two or more inputs of one shape, the case in which their special numbers meet; None for others, and where `zeros` are off."""
    is_open = "zeros" not in cases.edges_off(declaration)
    if not is_open or len(probing.alike(declaration)) < 2 or not elementwise.is_elementwise(declaration):
        return None
    binding = probing.of_pairs(declaration, small)
    return probing.probe(declaration, "pairs[all]", binding, values=cases.PAIRS, of=cases.ALL)


def empty(declaration: Declaration) -> Iterator[Case]:
    """Yields cases without elements along another dim than that of the edge `empty`: what is summed up, or the last one. Not where dims are those of elements alone, hold channels or what indices point to."""
    free, held = probing.free(declaration), {*bindings.steps(declaration), *bindings.taken(declaration)}
    # What a reference makes of nothing is a convention of its own.
    is_of_torch = not declaration.get("reference") and not declaration.get("random")
    if len(free) < 2 or not is_of_torch or elementwise.is_elementwise(declaration):
        return
    # Its kernels on devices make nothing of no input channels, not the bias, nor the shape that they make of others.
    is_convolution = "conv" in elementwise.name_of(declaration)
    is_left_out = is_convolution or probe_marks.is_attention(declaration)
    if is_left_out or any(is_index(declaration, given) for given in tensors(declaration)):
        return
    others = [dim for dim in free if dim != bindings.emptied(declaration, free) and dim not in held]
    for dim in reversed(others[-EMPTY:]):
        binding = {**probing.tiny(declaration), dim: 0}
        if bindings.is_possible(declaration, binding):
            yield replace(probing.probe(declaration, f"{cases.EMPTY}[{dim}]", binding), has_own_budget=True)


EMPTY = 3
"""So many dims of an op are tried without elements, beside the first."""


def is_index(declaration: Declaration, given: TensorInput) -> bool:
    """Tells whether an input holds integers that may be indices: there is nothing that they could point to along an empty dim."""
    kind = given["init"]["kind"]
    return kind in ("permutation", "distinct", "unique_between", "sorted", "offsets") or (
        kind == "randint" and not is_number(declaration, given)
    )


def runs(declaration: Declaration, limit: int) -> Iterator[Case]:
    """Yields, for an input of random integers with dims, a case of long rows in which each one is there three times, one after the other: those that are declared, and no others."""
    if declaration.get("random"):
        return
    dims = probing.loose(declaration)
    for given in tensors(declaration):
        along = str(given["shape"][-1]) if given["shape"] else ""
        if given["init"]["kind"] == "randint" and along in dims:
            for case in probing.long(declaration, along, RUNS, limit, probing.NARROW):
                word = f"runs[{given['name']},{along}={case.binding[along]}]"
                found = probing.probe(declaration, word, case.binding, values="runs", of=given["name"])
                yield replace(found, has_own_budget=True)
            return


RUNS = (1031, 259, 131)
"""Lengths of rows in which runs of equal integers lie across the ends of blocks."""


def ties(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which one input has values of another: a tie for code that compares them."""
    is_met = elementwise.shows_anywhere(declaration) and pairs(declaration, probing.rows(declaration)) is not None
    if cases.has_probabilities(declaration) or is_met:
        return
    dtype = declaration["dtypes"][0]
    known = cases.comparable(declaration, dtype)
    name = next((name for name in probing.of_values(declaration) if name in known), None)
    if name is not None and len(known) > 1:
        yield probing.probe(declaration, f"ties[{name}]", probing.rows(declaration), values=cases.TIES, of=name)
    # Integers of a wide range are never the same by chance.
    for name in probe_indices.ties(declaration):
        found = probing.probe(declaration, f"ties[{name}]", probing.rows(declaration), values=cases.TIES, of=name)
        yield replace(found, has_own_budget=True)


def is_number(declaration: Declaration, given: TensorInput) -> bool:
    """Tells whether an input holds random integers that are not indices: those of functions of numbers, and where others than indices are declared."""
    init = given["init"]
    if init["kind"] != "randint":
        return False
    low, high = init["low"], init["high"]
    if isinstance(low, str) or isinstance(high, str):
        # A bound that is a length makes them lengths, or places.
        return False
    return low != 0 or high > INDICES or elementwise.takes_numbers(declaration)


def of_one(declaration: Declaration) -> Iterator[Case]:
    """Yields cases in which one input alone is transposed, for all but the first that can be: they catch a kernel that uses one input's strides for another."""
    wide = [given for given in tensors(declaration) if len(given["shape"]) >= 2]
    lists = [given.get("list") for given in wide]
    # Of a list the second member stands for all behind the first.
    asked = [
        given["name"]
        for place, given in enumerate(wide)
        if lists[place] is None or lists[:place].count(lists[place]) == 1
    ]
    for name in asked[1:] if lists[:1] == [None] else asked:
        yield probing.probe(declaration, f"transposed[{name}]", probing.tiny(declaration), layout="transposed", of=name)


def broadcasts(declaration: Declaration) -> Iterator[Case]:
    """Yields, for an op that broadcasts, cases in which the second input has one column, and each other one row."""
    inputs = [given for given in tensors(declaration) if given.get("list") is None]
    if declaration["broadcast"] and len(inputs) >= 2:
        first, second = inputs[0], inputs[1]
        if second["shape"]:
            last = f"broadcast[{second['name']},last]"
            yield probing.probe(
                declaration, last, probing.tiny(declaration), broadcast=True, of=second["name"], is_last=True
            )
        shaped = [given["name"] for given in inputs[1:] if given["shape"]]
        if len(shaped) > 1:
            rest = cases.JOINED.join(shaped)
            yield probing.probe(declaration, f"broadcast[{rest}]", probing.tiny(declaration), broadcast=True, of=rest)
            yield probing.probe(
                declaration, f"broadcast[{rest},last]", probing.tiny(declaration), broadcast=True, of=rest, is_last=True
            )
        for name in (given["name"] for given in (first, *inputs[2:]) if given["shape"]):
            yield probing.probe(declaration, f"broadcast[{name}]", probing.tiny(declaration), broadcast=True, of=name)


def single(declaration: Declaration) -> Iterator[Case]:
    """Yields, for an op that broadcasts, cases in which the second input has one element, with as many dims as it is declared with and with none, and the first one has. They take no other's place."""
    inputs, small = [given for given in tensors(declaration) if given.get("list") is None], probing.tiny(declaration)
    if not declaration["broadcast"] or len(inputs) < 2:
        return
    asked = [(inputs[1], "one", 1), (inputs[1], "scalar", 0), (inputs[0], "one", 1)]
    for given, word, times in (one for one in asked if one[0]["shape"]):
        name, shape = given["name"], [1] * (times * len(given["shape"]))
        yield probing.probe(declaration, f"broadcast[{name},{word}]", small, shapes={name: shape}, has_own_budget=True)
