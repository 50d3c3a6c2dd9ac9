"""Probes of lengths: fixed in advance, drawn, and from the integers in the kernel's file."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases, elementwise, literals, probing, reach
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, Missed, VariantRequest

DRAWN = 2
"""How many shapes are drawn."""


BEYOND = 4099
"""A long row that goes beyond a power of two, and a prime."""


FEW_ROWS = 64
"""So many rows, or fewer, have no case of their own: one has 131, or half of them."""


APART = (577, 131)
"""Lengths of two dims that no input shares: more rows of blocks than programs are grouped by, usually 8 of up to 64, and more than one block beside each."""

SHARED = 8
"""The length of the other dims there, which are summed up."""


def apart(declaration: Declaration, limit: int) -> Iterator[Case]:
    """Yields a case in which two dims are long that no input shares, as the rows and columns of a product: programs that are numbered in groups leave some out, or do them twice, where the last group is not full."""
    if "shapes" in cases.edges_off(declaration) or "blocks" in cases.edges_off(declaration):
        return
    inputs = [{str(dim) for dim in given["shape"]} for given in tensors(declaration)]
    dims = probing.loose(declaration)
    both = next(
        (
            (first, second)
            for place, first in enumerate(dims)
            for second in dims[place + 1 :]
            if any(first in one for one in inputs)
            and any(second in one for one in inputs)
            and not any({first, second} <= one for one in inputs)
        ),
        None,
    )
    if both is not None:
        lengths = dict(zip(both, APART, strict=True))
        found = probing.shape(declaration, "shape", lengths, SHARED, limit, both)
        yield from (replace(case, has_own_budget=True) for case in found)


def of_sorted(declaration: Declaration, limit: int) -> Iterator[Case]:
    """Yields a case for the dim along which an input is in order, where it is not the last one: a search that halves its rows a few times too seldom finds most places of a shorter one. It takes no other's place."""
    dims = probing.loose(declaration)
    lasts = [
        given["shape"][-1] for given in tensors(declaration) if given["init"]["kind"] == "sorted" and given["shape"]
    ]
    for dim in [str(dim) for dim in lasts if dim in dims[:-1]][:1]:
        if "shapes" not in cases.edges_off(declaration):
            others = {dims[-1]: FEW_ROWS} if dims[-1] != dim else {}
            found = probing.shape(declaration, "shape", {**others, dim: BEYOND}, 1, limit, (dim,))
            yield from probing.budgeted(found)


TOGETHER = 180
"""Two dims are at most so long at once where an integer that something is compared with lies below both."""


def at_once(declaration: Declaration, compared: Container[int], limit: int) -> Iterator[Case]:
    """Yields a case in which the first and the last dim are both longer than an integer that the kernel's files compare something with, the largest for which there is room: a wrapper may take another kernel where both are. It takes no other's place."""
    dims, off = probing.loose(declaration), cases.edges_off(declaration)
    if len(dims) < 2 or elementwise.shows_anywhere(declaration) or "blocks" in off or "literals" in off:
        return
    for value in (value for value in range(TOGETHER, 15, -1) if value in compared):
        lengths = {dims[0]: value + 3, dims[-1]: value + 1}
        found = list(probing.shape(declaration, "literal", lengths, 1, limit, (dims[0], dims[-1])))
        yield from probing.budgeted(found)
        if found:
            return


SAMPLED = "sampled"
"""What a case is called in which drawn numbers of rows that are longer than blocks are tested together."""

EXPANDED = (67, 16)
"""Lengths of rows there that are one row in memory, and how many there are."""

BLOCK = 1024
"""Longer blocks are not looked for there."""


def sampled(declaration: Declaration, integers: Sequence[int], limit: int) -> Iterator[Case]:
    """Yields, for an op that draws random numbers, a case of rows two and a half times as long as the largest of the `integers` of the kernel's files, up to `BLOCK`: one number may be drawn for two places, where it is drawn by a place in a block."""
    dims = probing.loose(declaration)
    held = [one for one in integers if 16 <= one <= BLOCK]
    if not declaration.get("random") or len(dims) < 2 or "shapes" in cases.edges_off(declaration):
        return
    if cases.may_be_expanded(declaration) and any(len(given["shape"]) >= 2 for given in tensors(declaration)):
        # Rows that are one row in memory have numbers of their own.
        binding = probing.bound(declaration, dict(zip(reversed(dims), EXPANDED, strict=False)), 1)
        if probing.fits(declaration, binding, limit):
            yield probing.probe(declaration, f"{SAMPLED}[expanded]", binding, layout="expanded", has_own_budget=True)
    if not held:
        return
    length = 5 * max(held) // 2 + 1
    for case in probing.shape(declaration, SAMPLED, {dims[-1]: length}, 3, limit, (dims[-1],)):
        yield replace(case, values="declared", has_own_budget=True)


DIVISORS = 2
"""So many arguments are taken that all lengths of some dims are multiples of."""


def of_arguments(declaration: Declaration) -> Iterator[Case]:
    """Yields, for a whole number among the arguments that all lengths of some dims are multiples of, cases in which these are other multiples, each its own one: plain, transposed, and with NaN and infinities. A reference may refuse all other lengths."""
    known = [*probing.sizes(declaration), *declaration["check_sizes"].values()]
    off = cases.edges_off(declaration)
    found = 0
    for value in declaration["kwargs"].values() if "shapes" not in off else ():
        if type(value) is not int or not 2 <= value <= FEW_ROWS or found == DIVISORS:
            continue
        dims = [dim for dim in probing.free(declaration) if all(size.get(dim, 0) % value == 0 for size in known)]
        if not dims or not known:
            continue
        found += 1
        lengths = {dim: value * (2 + place) for place, dim in enumerate(dims)}
        binding = {**probing.tiny(declaration), **lengths}
        word = f"multiple[{','.join(f'{dim}={length}' for dim, length in lengths.items())}"
        yield probing.probe(declaration, f"{word}]", binding, values="ends", has_own_budget=True)
        if "transposed" not in off and any(len(given["shape"]) >= 2 for given in tensors(declaration)):
            yield probing.probe(declaration, f"{word},transposed]", binding, layout="transposed", has_own_budget=True)
        if "special" not in off and probing.of_values(declaration) and not probing.hides(declaration):
            special = probing.probe(declaration, f"{word},special]", binding, values="special", has_own_budget=True)
            yield probing.forward(declaration, special)


def shapes(declaration: Declaration, lane: str, limit: int) -> Iterator[Case]:
    """Yields the shapes that are fixed in advance, as far as they fit: one long dim after the other, all of them odd, the longest that there may be, and lengths about powers of two."""
    chance = probing.by_chance(declaration)
    dims = probing.loose(declaration)
    for dim in chance:
        length = bindings.own_lengths(declaration)[dim] or 1
        for other in (length + 1, 2 * length):
            yield from probing.shape(declaration, "shape", {dim: other}, probing.NARROW, limit, (dim,))
    if not dims:
        return
    *firsts, last = dims
    yield from probing.budgeted(
        probing.long(declaration, last, probing.LONG, limit, probing.NARROW if lane == "cuda" else 1)
    )
    for dim in reversed(firsts):
        if dim == dims[0]:
            # A program a row is what an interpreted row costs.
            # Three columns: where a row is made to have no mean and one variance, fewer leave nothing of a gradient.
            yield from probing.budgeted(
                probing.long(declaration, dim, (257, 131) if lane == "cuda" else (131, 67), limit, 3)
            )
        else:
            found = probing.long(declaration, dim, probing.LONG, limit, probing.NARROW if lane == "cuda" else 1)
            yield from probing.budgeted(found)
    odd = dict(zip(reversed(dims), (131, 67, 5, 3) if lane == "cuda" else (131, 7, 5, 3), strict=False))
    while (
        not probing.fits(declaration, probing.bound(declaration, odd, probing.NARROW), limit) and max(odd.values()) > 7
    ):
        longest = max(odd, key=lambda dim: odd[dim])
        odd[longest] = odd[longest] // 2 | 1
    yield from probing.shape(declaration, "shape", odd, probing.NARROW, limit, dims)
    beyond = list(probing.long(declaration, last, (BEYOND,), limit, probing.NARROW if lane == "cuda" else 1))
    yield from probing.budgeted(beyond)
    largest = max((size.get(last, 0) for size in probing.sizes(declaration)), default=0)
    tops = [(1 << power) + 1 for power in range(16, 8, -1) if 1 << power <= max(largest, 4096)]
    if beyond and tops[0] < BEYOND:
        # Both are just above the same power of two.
        tops = []
    yield from probing.long(declaration, last, tops, limit, 1)
    for power in range(max(largest.bit_length(), 1), 3, -1):
        for length in ((1 << power) - 1, (1 << power) + 1):
            # Of long rows that are interpreted those just below a power of two show what a second one does.
            is_alone = lane == "interpreter" and length > 1 << max(power, ROWS_UP_TO)
            yield from probing.shape(declaration, "shape", {last: length}, 1 if is_alone else 2, limit, (last,))


ROWS_UP_TO = 10
"""The exponent of the power of two up to which there are two rows on either side of it."""


LONGEST = 1 << 17
"""The most elements of a case whose last dim is one above an integer that something is compared with: a wrapper takes another kernel there."""


def too_long(request: VariantRequest) -> list[Missed]:
    """Returns the lengths of which `of_literals` has no case on the interpreter though something is compared with the integer below, a power of two: `size`, `kernel`, `constants`, `reason`. Others of that size are bytes of shared memory more often than lengths."""
    declaration = request["op"]
    dims = probing.loose(declaration)
    if not dims or "blocks" in cases.edges_off(declaration) or "literals" in cases.edges_off(declaration):
        return []
    values = sorted(filter(is_power, literals.thresholds(literals.read(request))))
    reason = f"its file, or one that this imports, compares something with {{}}, and inputs of at most {LONGEST} elements are interpreted for it"
    return [
        reach.missed(f"{dims[-1]}={value + 1}", None, reason.format(value))
        for value in values
        if not probing.fits(declaration, probing.bound(declaration, {dims[-1]: value + 1}, 1), LONGEST)
    ]


def is_power(value: int) -> bool:
    """Tells whether `value`, which is positive, is a power of two."""
    return value & (value - 1) == 0


def of_literals(
    declaration: Declaration,
    known: Sequence[Case],
    found: Sequence[int],
    lane: str,
    limit: int,
    compared: Container[int] = (),
) -> Iterator[Case]:
    """Yields, for each integer of the kernel's files, a shape with the last dim one above it, and one with the first dim so, of those that something is `compared` with one with each other dim, unless another case has a length of that dim that is little longer.

    Where one of `shapes` has, for whatever dim, that one is yielded: it comes the earlier for it, but for many rows on the interpreter, which are dear. They come as they are `found`.
    """
    dims = probing.loose(declaration)
    if not dims:
        return
    had = {dim: {case.binding.get(dim, 0) for case in known} for dim in dims}
    own = list(shapes(declaration, lane, limit))
    for value, dim in product(found, dict.fromkeys((dims[-1], dims[0], *dims))):
        above = range(value + 1, value + max(value // 4, 8) + 1)
        if any(length in above for length in had[dim]):
            continue
        had[dim].add(value + 1)
        if dim == dims[0] != dims[-1] and value <= FEW_ROWS:
            # The case of many rows goes beyond it, even where it is run with half of them.
            continue
        covering = [case for case in own if case.binding[dim] in above]
        if covering and (dim != dims[0] or lane == "cuda"):
            yield covering[0]
        elif not covering and (dim in (dims[-1], dims[0]) or value in compared):
            is_chosen = dim == dims[0] != dims[-1] and value in compared
            own_case: list[Case] = []
            # Three columns leave something of a gradient, for which the interpreter has no time.
            for others in ((3, 1) if lane == "cuda" else (1,)) if is_chosen else (probing.NARROW,):
                found_case = list(probing.shape(declaration, "literal", {dim: value + 1}, others, limit, (dim,)))
                own_case = own_case or found_case
            if is_chosen:
                # Another kernel for many rows, in few elements.
                own_case = list(probing.budgeted(own_case))
            if not own_case and dim != dims[0] and value in compared:
                longer = probing.shape(declaration, "literal", {dim: value + 1}, 1, max(limit, LONGEST), (dim,))
                own_case = list(probing.budgeted(longer))
            yield from own_case


def at_literals(declaration: Declaration, known: Sequence[Case], found: Sequence[int], limit: int) -> Iterator[Case]:
    """Yields shapes whose last dim, and whose first, has the very length that the kernel's files hold something to be equal to, unless another case has."""
    dims = probing.loose(declaration)
    for value, dim in product(found, dict.fromkeys((*dims[-1:], *dims[:1]))):
        if not any(case.binding.get(dim) == value for case in known):
            yield from probing.shape(declaration, "literal", {dim: value}, probing.NARROW, limit, (dim,))


def at_multiples(declaration: Declaration, found: Sequence[int], limit: int) -> Iterator[Case]:
    """Yields shapes of three times the integers that the kernel's files divide something by, to see whether a rest is left: in all dims at once, in all but the first, or in the last one where those do not fit."""
    dims = probing.loose(declaration)
    for value in found if dims else ():
        for shown in (dims, dims[1:] or dims, dims[-1:]):
            lengths = {dim: 3 * value for dim in shown}
            cases_found = list(probing.shape(declaration, "multiple", lengths, probing.NARROW, limit, shown))
            yield from cases_found
            if cases_found:
                break


def in_pieces(declaration: Declaration, found: Sequence[int], limit: int) -> Iterator[Case]:
    """Yields shapes in which a dim other than the last is three times the largest integer that the kernel's files divide something by, and one more: what is done in pieces of so many has several, and a rest. They take no other's place."""
    if "shapes" not in cases.edges_off(declaration):
        for dim in probing.loose(declaration)[:-1] if found else ():
            lengths = {dim: 3 * max(found) + 1}
            yield from probing.budgeted(probing.shape(declaration, "multiple", lengths, 1, limit, (dim,)))


def drawn(declaration: Declaration, salt: str, limit: int, lane: str) -> Iterator[Case]:
    """Yields shapes that are drawn in the build: odd lengths, and on a device last dims that need a block of 32, so that it has the kernels for them."""
    dims = probing.loose(declaration)
    for turn in range(DRAWN if dims else 0):
        bits = hashlib.sha256(f"{salt}\0{declaration['name']}\0{turn}".encode()).digest()
        # A program a row is what an interpreted row costs: few, so that the budget has room for them.
        ranges = ((17, 32 if lane == "cuda" else 60), (9, 20), (5, 16), (5, 16))
        lengths = {
            dim: (low + bits[place] % (high - low)) | 1
            for place, (dim, (low, high)) in enumerate(zip(reversed(dims), ranges, strict=False))
        }
        binding = probing.bound(declaration, lengths, probing.NARROW)
        if probing.fits(declaration, binding, limit):
            yield probing.probe(declaration, f"drawn-{turn}", binding)
