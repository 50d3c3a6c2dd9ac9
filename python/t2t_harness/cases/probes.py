"""Edges that owe nothing to the kernel's blocks: fixed and drawn shapes, lengths from all integers in its file, values in each input, arguments at other values.

They come after all other cases, the most valuable first, and of those with a budget: on the interpreter they may do a share of what the others did. Nothing here makes
values. torch is imported only inside functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product, zip_longest
from typing import Any

from t2t_harness.cases import arguments_away, cases, literals
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

MOST = {"interpreter": 40, "cuda": 28}
"""Most of them in a check, on each lane; half as many more for each further dtype."""

DRAWN = 2
"""How many shapes are drawn."""

CAUSAL = "is_causal"
"""A flag that says something of blocks, and is tried where there is more than one of them."""

NARROW = 2
"""The length of the dims that are not tried, in a shape where one is."""

KINDS = {
    "shape": "shapes",
    "literal": "literals",
    "drawn": "drawn",
    "kwarg": "kwargs",
    "zeros": "zeros",
    "denormal": "denormal",
    "infinite-rows": "infinite-rows",
    "offset": "offset",
    "cancelling": "cancelling",
    "limits": "limits",
    "ties": "zeros",
    "positive": "shapes",
    "small": "small",
    "gradients": "gradients",
    "padded": "strided",
    "swapped": "transposed",
}
"""What follows `edge/` in a case's name → what turns it off in ops.yaml."""

TWICE = "gradients-twice"
"""The case whose backward pass runs twice: what is written over in the first pass is not asked for where the gradient that comes in may be."""

NOT_FINITE = ("special", "special-late", "infinite-rows")
"""Edges with values that are not finite: where one is off, all are."""


def cases_of(request: Mapping[str, Any], known: Sequence[Case]) -> list[Case]:
    """Returns the probes of a check whose other cases are `known`, in the order in which they run."""
    declaration, lane = request["op"], request["lane"]
    limit = cases.reach_limit(lane)
    own = list(shapes(declaration, lane, limit))
    first = [case for place, case in enumerate(own) if case.has_own_budget or place == 0]
    others = list(kwargs(request))
    above = list(of_literals(declaration, known, literals.of_request(request), lane, limit))
    groups = [
        first,
        others[0::2],
        [*broadcasts(declaration)],
        [*layouts(declaration)],
        others[1::2],
        [*values(declaration, lane)],
        [*further_dtypes(request, limit)],
        [*late(declaration, lane, limit)],
        [*when_long(request, known, limit)],
        [*at_literals(declaration, known, literals.equals(request), limit)],
        [*of_one(declaration)],
        [*ties(declaration)],
        [*gradients(declaration)],
        above[0::2],
        above[1::2],
        [case for case in own if case not in first],
    ]
    turns = chain.from_iterable(zip_longest(*groups))
    names = {case.name for case in known}
    seen: set[str] = set()
    found: list[Case] = []
    for case in turns:
        if case is None or case.name in names or is_off(declaration, case):
            continue
        names.add(case.name)
        same = json.dumps({**case.facts(), "name": None, "has_own_budget": None}, sort_keys=True)
        if same not in seen:
            seen.add(same)
            found.append(case)
    room = MOST[lane] if lane in MOST else MOST["cuda"]
    salted = [
        case for case in drawn(declaration, str(request.get("salt") or ""), limit) if not is_off(declaration, case)
    ]
    return [*found[: room + (room // 2) * (len(declaration["dtypes"]) - 1)], *salted]


def is_off(declaration: Mapping[str, Any], case: Case) -> bool:
    """Tells whether ops.yaml does not ask for this edge, or for one that it is a form of."""
    off = cases.edges_off(declaration)
    word = case.name.split("/")[1].split("[")[0]
    if word in NOT_FINITE and any(kind in off for kind in NOT_FINITE):
        return True
    if word in ("offset", "cancelling", "denormal") and "large" in off:
        return True
    if word == TWICE and "upstream" in off:
        return True
    return KINDS.get(word.split("-")[0], word) in off or (
        "blocks" in off and word.split("-")[0] in ("shape", "literal", "drawn")
    )


def probe(declaration: Mapping[str, Any], word: str, binding: Mapping[str, int], **more: Any) -> Case:
    """Returns the case `edge/WORD/DTYPE`, in the first dtype where `more` says nothing else."""
    dtype = more.pop("dtype", declaration["dtypes"][0])
    return Case(f"edge/{word}/{dtype}", "edge", dtype, dict(binding), is_probe=True, **more)


def free(declaration: Mapping[str, Any]) -> list[str]:
    """Returns the dims whose lengths may be other ones, in the order in which the inputs name them. One that has the same length in all sizes is among them, where `dims` does not fix it."""
    own = cases.own_lengths(declaration)
    stated = declaration.get("fixed")
    loose = [dim for dim, length in own.items() if length is None or (stated is not None and dim not in stated)]
    named = [dim for dim in cases.dims(declaration) if dim in loose]
    return [*named, *(dim for dim in loose if dim not in named)]


def by_chance(declaration: Mapping[str, Any]) -> list[str]:
    """Returns the dims that have the same length in all sizes, though `dims` does not fix them."""
    own = cases.own_lengths(declaration)
    return [dim for dim in free(declaration) if own[dim] is not None]


def bound(declaration: Mapping[str, Any], lengths: Mapping[str, int], others: int) -> dict[str, int]:
    """Returns the lengths of all dims, of which those that are free and not in `lengths` have `others`, and none has 1 where that edge is off."""
    if "one" in cases.edges_off(declaration):
        others = max(others, NARROW)
    own, chance = cases.own_lengths(declaration), by_chance(declaration)
    rest = {dim: (others if length is None else length) for dim, length in own.items()}
    return {**rest, **{dim: length for dim, length in lengths.items() if dim in own or dim in chance}}


def fits(declaration: Mapping[str, Any], binding: Mapping[str, int], limit: int) -> bool:
    """Tells whether the lengths are some, and no input has more than `limit` elements."""
    return cases.is_possible(declaration, binding) and cases.largest(declaration, binding) <= limit


def shapes(declaration: Mapping[str, Any], lane: str, limit: int) -> Iterator[Case]:
    """Yields the shapes that are fixed in advance, as far as they fit: one long dim after the other, all of them odd, the longest that there may be, and lengths about powers of two."""
    chance = by_chance(declaration)
    dims = [dim for dim in free(declaration) if dim not in chance]
    for dim in chance:
        length = cases.own_lengths(declaration)[dim] or 1
        for other in (length + 1, 2 * length):
            yield from shape(declaration, "shape", {dim: other}, NARROW, limit, (dim,))
    if not dims:
        return
    *firsts, last = dims
    yield from budgeted(long(declaration, last, LONG, limit, NARROW if lane == "cuda" else 1))
    for dim in reversed(firsts):
        if dim == dims[0]:
            # A program a row is what an interpreted row costs.
            # Three columns: where a row is made to have no mean and one variance, fewer leave nothing of a gradient.
            yield from budgeted(long(declaration, dim, (257, 131) if lane == "cuda" else (131, 67), limit, 3))
        else:
            yield from long(declaration, dim, LONG, limit, NARROW if lane == "cuda" else 1)
    odd = dict(zip(reversed(dims), (131, 67, 5, 3) if lane == "cuda" else (131, 7, 5, 3), strict=False))
    while not fits(declaration, bound(declaration, odd, NARROW), limit) and max(odd.values()) > 7:
        longest = max(odd, key=lambda dim: odd[dim])
        odd[longest] = odd[longest] // 2 | 1
    yield from shape(declaration, "shape", odd, NARROW, limit, dims)
    yield from budgeted(long(declaration, last, (4099,), limit, NARROW if lane == "cuda" else 1))
    largest = max((size.get(last, 0) for size in sizes(declaration)), default=0)
    tops = [(1 << power) + 1 for power in range(16, 8, -1) if 1 << power <= max(largest, 4096)]
    yield from long(declaration, last, tops, limit, 1)
    for power in range(max(largest.bit_length(), 1), 3, -1):
        for length in ((1 << power) - 1, (1 << power) + 1):
            yield from shape(declaration, "shape", {last: length}, 2, limit, (last,))


FEW_ROWS = 64
"""So many rows, or fewer, have no case of their own: one has 131, or half of them."""

HALVES = ("float16", "bfloat16")
"""Types in which a sum of many positive numbers loses what a sum in float32 keeps."""

BEYOND = 4099
"""A length to which a type of 16 bits does not count."""

LONG = (1031, 517, 259, 131)
"""Lengths of a long dim, of which the first that fits is taken: primes, which no block divides."""


def budgeted(found: Iterable[Case]) -> Iterator[Case]:
    """Yields the cases with a budget of their own."""
    yield from (replace(case, has_own_budget=True) for case in found)


def sizes(declaration: Mapping[str, Any]) -> Iterator[Mapping[str, int]]:
    """Yields the sizes that are measured, on devices where the lane runs smaller ones."""
    yield from declaration["sizes"].values()
    yield from (declaration.get("measured") or {}).values()


def is_of_length(case: Case) -> bool:
    """Tells whether a probe is for the lengths that it has, which its name says, or which the build drew."""
    return case.name.startswith("edge/drawn-") or any(
        f"{dim}={length}" in case.name for dim, length in case.binding.items()
    )


def has_other_kwargs(case: Case) -> bool:
    """Tells whether a probe has an argument at a value that nobody declared."""
    return case.is_probe and case.kwargs is not None


def is_beyond(declaration: Mapping[str, Any], case: Case, times: int = 1) -> bool:
    """Tells whether a probe has a dim that is longer than in any size that is checked or measured, or more than so many `times` as long."""
    known = [*sizes(declaration), *declaration["check_sizes"].values()]
    most = {dim: max((size.get(dim, 0) for size in known), default=0) for dim in case.binding}
    return case.is_probe and any(length > times * most[dim] for dim, length in case.binding.items())


def long(
    declaration: Mapping[str, Any], dim: str, lengths: Sequence[int], limit: int, others: int = NARROW
) -> Iterator[Case]:
    """Yields a shape with the first of `lengths` for `dim` that fits."""
    for length in lengths:
        found = list(shape(declaration, "shape", {dim: length}, others, limit, (dim,)))
        if found:
            yield from found
            return


def shape(
    declaration: Mapping[str, Any], word: str, lengths: Mapping[str, int], others: int, limit: int, shown: Sequence[str]
) -> Iterator[Case]:
    """Yields the shape with these `lengths`, if it fits; `shown` are the dims in its name."""
    binding = bound(declaration, lengths, others)
    if fits(declaration, binding, limit):
        named = ",".join(f"{dim}={binding[dim]}" for dim in shown)
        yield probe(declaration, f"{word}[{named}]", binding, values="ends")


def of_literals(
    declaration: Mapping[str, Any], known: Sequence[Case], found: Sequence[int], lane: str, limit: int
) -> Iterator[Case]:
    """Yields, for each integer of the kernel's files, a shape with the last dim one above it, and one with the first dim so, unless another case has a length of that dim that is little longer.

    Where one of `shapes` has, for whatever dim, that one is yielded: it comes the earlier for it, but for many rows on the interpreter, which are dear. They come as they are `found`.
    """
    dims = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
    if not dims:
        return
    had = {dim: {case.binding.get(dim, 0) for case in known} for dim in dims}
    own = list(shapes(declaration, lane, limit))
    for value, dim in product(found, dict.fromkeys((dims[-1], dims[0], *dims))):
        above = range(value + 1, value + max(value // 4, 8) + 1)
        if any(length in above for length in had[dim]):
            continue
        had[dim].add(value + 1)
        if dim != dims[-1] and value <= FEW_ROWS:
            # The case of many rows goes beyond it, even where it is run with half of them.
            continue
        covering = [case for case in own if case.binding[dim] in above]
        if covering and (dim != dims[0] or lane == "cuda"):
            yield covering[0]
        elif not covering and dim in (dims[-1], dims[0]):
            yield from shape(declaration, "literal", {dim: value + 1}, NARROW, limit, (dim,))


def at_literals(
    declaration: Mapping[str, Any], known: Sequence[Case], found: Sequence[int], limit: int
) -> Iterator[Case]:
    """Yields shapes whose last dim, and whose first, has the very length that the kernel's files hold something to be equal to, unless another case has."""
    dims = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
    for value, dim in product(found, dict.fromkeys((*dims[-1:], *dims[:1]))):
        if not any(case.binding.get(dim) == value for case in known):
            yield from shape(declaration, "literal", {dim: value}, NARROW, limit, (dim,))


def drawn(declaration: Mapping[str, Any], salt: str, limit: int) -> Iterator[Case]:
    """Yields shapes whose lengths nobody knows before the build: odd ones, so that a device has the kernels for them."""
    dims = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
    for turn in range(DRAWN if dims else 0):
        bits = hashlib.sha256(f"{salt}\0{declaration['name']}\0{turn}".encode()).digest()
        # A program a row is what an interpreted row costs: few, so that the budget has room for them.
        ranges = ((17, 60), (9, 20), (5, 16), (5, 16))
        lengths = {
            dim: (low + bits[place] % (high - low)) | 1
            for place, (dim, (low, high)) in enumerate(zip(reversed(dims), ranges, strict=False))
        }
        binding = bound(declaration, lengths, NARROW)
        if fits(declaration, binding, limit):
            yield probe(declaration, f"drawn-{turn}", binding)


def layouts(declaration: Mapping[str, Any]) -> Iterator[Case]:
    """Yields cases in which inputs lie as parts of larger tensors do: rows that are dense, with memory between them and between blocks of them; and with their first two dims swapped."""
    ranks = [len(given["shape"]) for given in tensors(declaration)]
    if any(rank >= 2 for rank in ranks):
        yield probe(declaration, "padded", tiny(declaration), layout="padded")
    if any(rank >= 3 for rank in ranks):
        yield probe(declaration, "swapped", tiny(declaration), layout="swapped")


def late(declaration: Mapping[str, Any], lane: str, limit: int) -> Iterator[Case]:
    """Yields a case of long rows with NaN and infinity in them, which kernels that read a row in blocks lose between those."""
    dims = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
    names = of_values(declaration)
    if names and dims and not hides(declaration, lane):
        for case in long(declaration, dims[-1], LONG, limit, NARROW):
            named = f"{dims[-1]}={case.binding[dims[-1]]}"
            found = probe(declaration, f"special-late[{named}]", case.binding, values="late", of=names[0])
            yield replace(found, has_own_budget=True)


ARGUMENTS = 4
"""So many arguments are tried at a long dim, too."""


def when_long(request: Mapping[str, Any], known: Sequence[Case], limit: int) -> Iterator[Case]:
    """Yields cases of the longest last dim that a block or a measured size led to: a kernel of long rows has strides, large values, means far from zero, and arguments as that of short ones has."""
    declaration = request["op"]
    first = declaration["dtypes"][0]
    dims = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
    led = [case for case in known if case.dtype == first and ("-block[" in case.name or case.name.startswith("reach/"))]
    if not dims or not led:
        return
    length = max(case.binding.get(dims[-1], 0) for case in led)
    at, binding = f"{dims[-1]}={length}", bound(declaration, {dims[-1]: length}, NARROW)
    if not fits(declaration, binding, limit):
        return
    ranks = [len(given["shape"]) for given in tensors(declaration)]
    names = of_values(declaration)
    if any(rank >= 2 for rank in ranks):
        yield probe(declaration, f"padded[{at}]", binding, layout="padded")
    if names and request["lane"] != "cuda":
        # A device has many more elements, of which a few are further off than their last bits are worth.
        yield probe(declaration, f"offset[{names[0]},{at}]", binding, values="offset", of=names[0])
        yield probe(declaration, f"large[{at}]", binding, values="large")
    for label, changed in list(arguments_away.of_request(request, max(ranks, default=0)))[:ARGUMENTS]:
        own, place = binding, at
        if any(changed.get(name) == 0 and f"{name}=0" in label for name in arguments_away.DIMS):
            own, place = bound(declaration, {dims[0]: length, dims[-1]: NARROW}, NARROW), f"{dims[0]}={length}"
        if fits(declaration, own, limit):
            yield probe(declaration, f"kwarg[{label},{place}]", own, kwargs=changed)


def of_values(declaration: Mapping[str, Any]) -> list[str]:
    """Returns the names of the inputs that other values are tried in: floating ones with dims, drawn at random, that are no probabilities."""
    if cases.has_probabilities(declaration):
        return []
    inputs = [given for given in tensors(declaration) if len(given["shape"]) > 0]
    return [given["name"] for given in inputs if cases.random_floats(given, declaration["dtypes"][0])]


def hides(declaration: Mapping[str, Any], lane: str) -> bool:
    """Tells whether torch lets a NaN through that is hidden: its attention of CPUs adds the mask, that of devices does not."""
    return lane != "cuda" and declaration["kwargs"].get(CAUSAL) is True


def values(declaration: Mapping[str, Any], lane: str) -> Iterator[Case]:
    """Yields cases of other values: in each floating input NaN and infinities, a large mean, rows that are all minus infinity, zeros of both signs and ties, denormal numbers, and
    terms that cancel; of integers the limits of their type."""
    dtype, small = declaration["dtypes"][0], rows(declaration)
    if cases.has_probabilities(declaration):
        return
    floating = of_values(declaration)
    for name in floating[:1]:
        yield probe(declaration, f"offset[{name}]", small, values="offset", of=name)
        yield probe(declaration, f"small[{name}]", small, values="small", of=name)
    if len(floating) > 1 and not hides(declaration, lane):
        yield probe(declaration, "special[all]", small, values="special", of=cases.ALL)
    for name in [] if hides(declaration, lane) else floating[1:]:
        yield probe(declaration, f"special[{name}]", small, values="special", of=name)
    ranks = {given["name"]: len(given["shape"]) for given in tensors(declaration)}
    for position, name in enumerate(floating):
        kinds = ("infinite-rows", "zeros", "cancelling", "denormal")
        # A vector is no rows, and torch may fold a weight of infinities into another factor.
        is_open = ranks[name] > 1 and not hides(declaration, lane)
        for kind in kinds if position == 0 else (*kinds[: int(is_open)], "zeros"):
            if kind != "denormal" or lane != "cuda":
                yield probe(declaration, f"{kind}[{name}]", small, values=kind, of=name)
    for given in tensors(declaration):
        kind = given["dtype"] or dtype
        is_tested = given["dtype"] is None or kind != "int64"
        if is_tested and given["shape"] and is_number(given) and kind not in cases.FLOATING:
            few = probe(declaration, f"limits[{given['name']}]", small, values="limits", of=given["name"])
            yield few
            dims = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
            for case in long(declaration, dims[-1], LONG, cases.reach_limit(lane), 1) if dims else ():
                named = f"limits[{given['name']},{dims[-1]}={case.binding[dims[-1]]}]/{dtype}"
                yield replace(few, name=f"edge/{named}", binding=case.binding, has_own_budget=True)


def ties(declaration: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case in which values of one input are those of another: what compares them has more to decide."""
    if cases.has_probabilities(declaration):
        return
    dtype = declaration["dtypes"][0]
    known = cases.comparable(declaration, dtype)
    name = next((name for name in of_values(declaration) if name in known), None)
    if name is not None and len(known) > 1:
        yield probe(declaration, f"ties[{name}]", rows(declaration), values=cases.TIES, of=name)


def gradients(declaration: Mapping[str, Any]) -> Iterator[Case]:
    """Yields cases in which one input alone asks for a gradient, the first or the last of several, and one whose backward pass runs twice."""
    if not declaration["backward"]:
        return
    inputs = [given for given in tensors(declaration) if given.get("list") is None]
    names = [given["name"] for given in inputs if (given["dtype"] or declaration["dtypes"][0]) in cases.FLOATING]
    for name in dict.fromkeys((names[0], names[-1])) if len(names) > 1 else ():
        yield probe(declaration, f"gradients[{name}]", rows(declaration), asks=(name,))
    yield probe(declaration, TWICE, rows(declaration), is_twice=True)


INDICES = 1 << 16
"""Integers from 0 to fewer than so many, or to a dim, may be indices, of which others point outside of what they index."""


def is_number(given: Mapping[str, Any]) -> bool:
    """Tells whether an input holds random integers that are numbers, and no indices."""
    init = given["init"]
    if init["kind"] != "randint":
        return False
    low, high = init["low"], init["high"]
    return low != 0 or (isinstance(high, int) and high > INDICES)


def of_one(declaration: Mapping[str, Any]) -> Iterator[Case]:
    """Yields cases in which one input alone is transposed, for all but the first of those that can be: the strides of one input are not those of another."""
    inputs = [given for given in tensors(declaration) if given.get("list") is None]
    wide = [given["name"] for given in inputs if len(given["shape"]) >= 2]
    for name in wide[1:]:
        yield probe(declaration, f"transposed[{name}]", tiny(declaration), layout="transposed", of=name)


def broadcasts(declaration: Mapping[str, Any]) -> Iterator[Case]:
    """Yields, for an op that broadcasts, cases in which the second input has one column, and each other one row."""
    inputs = [given for given in tensors(declaration) if given.get("list") is None]
    if declaration["broadcast"] and len(inputs) >= 2:
        first, second = inputs[0], inputs[1]
        if second["shape"]:
            last = f"broadcast[{second['name']},last]"
            yield probe(declaration, last, tiny(declaration), broadcast=True, of=second["name"], is_last=True)
        shaped = [given["name"] for given in inputs[1:] if given["shape"]]
        if len(shaped) > 1:
            rest = cases.JOINED.join(shaped)
            yield probe(declaration, f"broadcast[{rest}]", tiny(declaration), broadcast=True, of=rest)
            yield probe(
                declaration, f"broadcast[{rest},last]", tiny(declaration), broadcast=True, of=rest, is_last=True
            )
        for name in (given["name"] for given in (first, *inputs[2:]) if given["shape"]):
            yield probe(declaration, f"broadcast[{name}]", tiny(declaration), broadcast=True, of=name)


def rows(declaration: Mapping[str, Any], lengths_of: Sequence[int] = (19, 5, 2)) -> dict[str, int]:
    """Returns lengths for a case of a few rows, from the last dim on."""
    dims = free(declaration)
    lengths = dict(zip(reversed(dims), lengths_of, strict=False))
    return bound(declaration, {dim: length for dim, length in lengths.items() if dim not in by_chance(declaration)}, 2)


def tiny(declaration: Mapping[str, Any]) -> dict[str, int]:
    """Returns the lengths of `rows`, or those of other edges, with two of what these have one of, where they have fewer elements."""
    few, edge = rows(declaration), cases.small_lengths(declaration)
    edge |= {dim: NARROW for dim in free(declaration) if edge.get(dim) == 1}
    is_smaller = cases.is_possible(declaration, edge) and cases.largest(declaration, edge) < cases.largest(
        declaration, few
    )
    return edge if is_smaller else few


def kwargs(request: Mapping[str, Any]) -> Iterator[Case]:
    """Yields cases for each keyword argument away from its declared value, or from torch's default; along another dim, where that is the first, in a long one as well."""
    declaration = request["op"]
    ranks = [len(given["shape"]) for given in tensors(declaration)]
    dims = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
    for label, changed in arguments_away.of_request(request, max(ranks, default=0)):
        name = label.partition("=")[0]
        binding = tiny(declaration)
        if name == CAUSAL:
            last = free(declaration)[-1:]
            binding = bound(declaration, {**binding, **dict.fromkeys(last, 67)}, NARROW)
        elif name == "ignore_index":
            # Few classes, so that some rows have the label.
            binding = rows(declaration, (3, 19, 3))
        elif name == "ceil_mode":
            binding = left_over(declaration, binding)
        elif name in arguments_away.DIMS:
            # Halves of a dim are asked for where lengths are even.
            binding = rows(declaration, (6, 4, 4))
        yield probe(declaration, f"kwarg[{label}]", binding, kwargs=changed)
        floating = of_values(declaration)
        if label == "beta=0" and floating:
            # By 0 torch multiplies nothing: what the input holds does not matter.
            nowhere = f"kwarg[{label},{floating[0]}=special]"
            yield probe(declaration, nowhere, binding, kwargs=changed, values="special", of=floating[0])
        if name in arguments_away.DIMS and changed[name] == 0 and len(dims) > 1:
            longer = bound(declaration, {**binding, dims[0]: 134, dims[-1]: NARROW}, NARROW)
            alone = {**declaration["kwargs"], name: 0}
            yield probe(declaration, f"kwarg[{name}=0,{dims[0]}={longer[dims[0]]}]", longer, kwargs=alone)


def left_over(declaration: Mapping[str, Any], binding: Mapping[str, int]) -> dict[str, int]:
    """Returns the lengths of `binding`, its last dim one at which windows do not end where the input does: rounding up and down differ."""
    own = {name: value[-1] if isinstance(value, list) else value for name, value in declaration["kwargs"].items()}
    window = own.get("kernel_size")
    loose = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
    if not isinstance(window, int) or not loose:
        return dict(binding)
    step = own.get("stride") or window
    covered = (own.get("dilation") or 1) * (window - 1) + 1
    lengths = range(covered + 2 * step, covered + 3 * step)
    # Rounded up, a window must begin inside of the input, or torch leaves it out.
    uneven = [one for one in lengths if (one + 2 * (own.get("padding") or 0) - covered) % step]
    return bound(declaration, {**binding, loose[-1]: uneven[-1]}, NARROW) if uneven else dict(binding)


def further_dtypes(request: Mapping[str, Any], limit: int) -> Iterator[Case]:
    """Yields, for each dtype but the first, a long last dim, and the kinds of edges that only the first one has otherwise."""
    declaration = request["op"]
    dims = [dim for dim in free(declaration) if dim not in by_chance(declaration)]
    for dtype in declaration["dtypes"][1:]:
        small = tiny(declaration)
        ranks = [len(given["shape"]) for given in tensors(declaration)]
        for dim in dims[-1:]:
            yield from budgeted(of_length(declaration, dim, dtype, limit))
        for dim in dims[-1:] if dtype in HALVES else ():
            beyond = bound(declaration, {dim: BEYOND}, 1)
            if fits(declaration, beyond, limit):
                yield probe(declaration, f"shape[{dim}={BEYOND}]", beyond, dtype=dtype, values="ends")
        if any(rank >= 1 for rank in ranks):
            yield probe(declaration, "strided", small, dtype=dtype, layout="strided")
        if any(rank >= 2 for rank in ranks):
            yield probe(declaration, "transposed", small, dtype=dtype, layout="transposed")
        if declaration["broadcast"] and len(ranks) >= 2 and ranks[1] >= 1:
            yield probe(declaration, "broadcast", small, dtype=dtype, broadcast=True)
        yield from of_dtype(request, dtype, small)
        for dim in dims[:-1][:1]:
            yield from of_length(declaration, dim, dtype, limit)


def of_length(declaration: Mapping[str, Any], dim: str, dtype: str, limit: int) -> Iterator[Case]:
    """Yields the cases of `dtype` in which `dim` alone is long, if they fit: of a type of 16 bits one of positive values, too."""
    binding = bound(declaration, {dim: LONG[0]}, 1)
    if fits(declaration, binding, limit):
        named = f"{dim}={LONG[0]}"
        yield probe(declaration, f"shape[{named}]", binding, dtype=dtype)
        if dtype in HALVES and of_values(declaration):
            yield probe(declaration, f"positive[{named}]", binding, dtype=dtype, values="positive", of=cases.ALL)


def of_dtype(request: Mapping[str, Any], dtype: str, small: Mapping[str, int]) -> Iterator[Case]:
    """Yields, for a dtype that is not the first, other values, nothing to compute, and other arguments."""
    declaration = request["op"]
    if any(cases.random_floats(given, dtype) for given in tensors(declaration)):
        kinds = ("equal-rows",) if cases.has_probabilities(declaration) else ("large", "equal-rows")
        for kind in kinds:
            yield probe(declaration, kind, small, dtype=dtype, values=kind)
    for case in list(kwargs(request))[:2]:
        yield replace(case, name=case.name.rpartition("/")[0] + f"/{dtype}", dtype=dtype)
    loose = free(declaration)
    if loose:
        yield probe(declaration, "empty", {**small, loose[0]: 0}, dtype=dtype)
