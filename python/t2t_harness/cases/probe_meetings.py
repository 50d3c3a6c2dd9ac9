"""Probes in which an argument at another value meets values that inputs seldom have: code of one flag, word or order treats NaN, zeros and ties in its own way. Nothing here makes values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, product, zip_longest
from typing import TYPE_CHECKING

from t2t_harness.cases import (
    arguments_compared,
    arguments_known,
    bindings,
    cases,
    elementwise,
    probe_values,
    probing,
    seeds,
)
from t2t_harness.cases.cases import Case

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

MOST = 8
"""So many of them are tried."""

FURTHER = 2
"""So many flags and words meet whole numbers in the second input."""

SPECIAL = "special"
"""The values with NaN and infinities."""

LARGE = "large"
"""The values of which many functions overflow."""

EIGHTHS = "eighths"
"""Values of which some are in the middle of two whole numbers: to which one those are rounded depends on what is added before."""

ODD = 2
"""So many arguments meet those."""

NOT_FINITE = (SPECIAL, cases.PAIRS)
"""Values of which some are not finite."""

SUMMED = ("reduction",)
"""Words that say what becomes of terms. Where one of these is infinite, as that of a label that has no weight, kernels and torch may differ."""

ELSEWHERE = (
    *("keepdim", "eps", "dtype", "size", "ignore_index", "padding_idx", "pad", "repeats", "shifts", "diagonal"),
    *("offset", "stride", "padding", "dilation", "kernel_size", "output_padding", "scale_factor", "output_size"),
    *arguments_known.DIMS,
)
"""Arguments that say where values are read and written, or that meet other values elsewhere."""


def meetings(declaration: Declaration, others: Sequence[Case]) -> Iterator[Case]:
    """Yields, of the cases `others` in which one flag, word or number differs from what is declared, some with NaN and infinities in the first floating input, and some with zeros, or with values of another input: those of different arguments first."""
    floating = probing.of_values(declaration)
    kinds = kinds_of(declaration)
    if not floating or not kinds or seeds.is_random(declaration):
        return
    columns: dict[str, list[tuple[str, object, Case]]] = {}
    for name, value, case in changes(declaration, others):
        # A number to pad with is one, and no length.
        is_value = name == "pad" and isinstance(value, float)
        if (name not in ELSEWHERE or is_value) and isinstance(value, bool | str | int | float):
            columns.setdefault(name, []).append((name, value, case))
    met = [
        [
            of_pairs(declaration, case) if kind == cases.PAIRS else meeting(case, floating[0], kind)
            for _, value, case in sorted(column, key=lambda one: place(one[1]))
            for kind in sorted(kinds, key=lambda kind: (kind in NOT_FINITE) != is_decision(value))
            if fits(kind, name, value)
        ]
        for name, column in columns.items()
    ]
    beside = [
        [meeting(case, name, cases.PLANTED)]
        for name in floating[1:2]
        for column in columns.values()
        for _, value, case in column[:1]
        if is_decision(value) and "zeros" not in cases.edges_off(declaration)
    ]
    met += beside[:FURTHER]
    turns = chain.from_iterable(zip_longest(*met))
    for case in islice((case for case in turns if case is not None), MOST):
        # Few meet large values, and what comes before them has used the budget up.
        own = case.has_own_budget or case.values == LARGE
        yield probing.forward(declaration, replace(case, has_own_budget=own))


def beside(declaration: Declaration, others: Sequence[Case], limit: int) -> Iterator[Case]:
    """Yields what takes no other's place; no input has more than `limit` elements."""
    yield from halves(declaration, others)
    yield from in_blocks(declaration, others, limit)
    yield from at_declared(declaration, others)
    yield from by_zero(declaration, others)


def by_zero(declaration: Declaration, others: Sequence[Case]) -> Iterator[Case]:
    """Yields, of the cases `others` in which a number is zero that the reference compares with zero, the first ones with NaN and infinities in each further floating input: what is left out then may have no value, and zero times that is none."""
    floating = probing.of_values(declaration)[1:]
    if SPECIAL in cases.edges_off(declaration) or probing.hides(declaration) or seeds.is_random(declaration):
        return
    zeros = [
        case
        for name, value, case in changes(declaration, others)
        if probing.is_plain(value) and value == 0 and arguments_compared.is_asked_for_zero(declaration, name)
    ]
    for case in zeros[:ZEROS]:
        for name in floating[:FURTHER_INPUTS]:
            found = replace(meeting(case, name, SPECIAL), has_own_budget=True)
            yield probing.forward(declaration, found)


ZEROS = 2
"""So many arguments that are zero meet NaN."""

FURTHER_INPUTS = 3
"""In so many inputs."""


def at_declared(declaration: Declaration, others: Sequence[Case]) -> Iterator[Case]:
    """Yields, of the cases `others` in which one argument differs from what is declared, the first ones at the declared sizes of checks, as far as those are small: with few elements an argument may decide nothing, or have another meaning where a dim is one."""
    if elementwise.shows_anywhere(declaration) or seeds.is_random(declaration):
        return
    sizes = [
        (name, dict(size))
        for name, size in declaration["check_sizes"].items()
        if size and bindings.is_possible(declaration, size) and bindings.largest(declaration, size) <= FEW
    ]
    names: set[str] = set()
    for name, value, case in changes(declaration, others):
        is_known = name in (*names, *arguments_known.DIMS, *ELSEWHERE)
        if is_known or not isinstance(value, bool | int | float | str) or len(names) == DECLARED:
            continue
        names.add(name)
        for size, binding in sizes[:SIZES]:
            yield probing.probe(declaration, word(case, size), binding, kwargs=case.kwargs, has_own_budget=True)


DECLARED = 6
"""So many arguments are tried at declared sizes."""

SIZES = 2
"""At so many of them."""

FEW = 4096
"""What is declared to be checked is small where no input has more elements."""


def in_blocks(declaration: Declaration, others: Sequence[Case], limit: int) -> Iterator[Case]:
    """Yields, of the cases `others` in which one flag, word or whole number differs from what is declared, the first ones with the last dim but one, and the first one, so long that several blocks read it: code of a flag may be right within one block. Long last dims are tried elsewhere."""
    dims = probing.loose(declaration)
    if len(dims) < 2 or elementwise.shows_anywhere(declaration) or seeds.is_random(declaration):
        return
    names: set[str] = set()
    for name, value, case in changes(declaration, others):
        is_known = name in (*names, *arguments_known.DIMS)
        if is_known or not isinstance(value, bool | int | str) or len(names) == BLOCKED:
            continue
        names.add(name)
        for dim, length in product(dict.fromkeys((dims[-2], dims[0])), LENGTHS):
            binding = probing.bound(declaration, {dim: length}, probing.NARROW)
            if probing.fits(declaration, binding, limit):
                at = word(case, f"{dim}={binding[dim]}")
                yield probing.probe(declaration, at, binding, kwargs=case.kwargs, has_own_budget=True)
                break


BLOCKED = 4
"""So many arguments meet those lengths."""

LENGTHS = (67,)
"""Lengths that several blocks read."""


def halves(declaration: Declaration, others: Sequence[Case]) -> Iterator[Case]:
    """Yields, of the cases `others` in which one argument is another odd number, the first ones with eighths in the first floating input. They take no other's place."""
    floating = probing.of_values(declaration)
    if not floating or "zeros" in cases.edges_off(declaration) or seeds.is_random(declaration):
        return
    names: set[str] = set()
    for name, value, case in changes(declaration, others):
        is_odd = type(value) is int and value > 0 and value % 2 == 1
        if is_odd and name not in (*names, *ELSEWHERE) and len(names) < ODD:
            names.add(name)
            found = replace(meeting(case, floating[0], EIGHTHS), has_own_budget=True)
            yield probing.forward(declaration, found)


def kinds_of(declaration: Declaration) -> list[str]:
    """Returns the values that an argument meets, but for those that ops.yaml turns off."""
    off: Mapping[str, str | None] = cases.edges_off(declaration)
    found: list[str] = []
    if SPECIAL not in off and not probing.hides(declaration):
        found.append(SPECIAL)
        if "zeros" not in off and probe_values.pairs(declaration, probing.rows(declaration)):
            found.append(cases.PAIRS)
    if "zeros" not in off:
        known = cases.comparable(declaration, declaration["dtypes"][0])
        found.append(cases.TIES if len(known) > 1 and probing.of_values(declaration)[:1] == known[:1] else "zeros")
    if LARGE not in off:
        found.append(LARGE)
    return found


def fits(kind: str, name: str, value: object) -> bool:
    """Tells whether an argument at `value` meets values of that kind: those that are not finite tell of decisions alone, and large ones of zero, whose product with what is infinite is no number, and of negative numbers, with which the largest is the smallest."""
    if kind == LARGE:
        return not isinstance(value, bool | str) and isinstance(value, int | float) and value <= 0
    return kind not in NOT_FINITE or (is_decision(value) and name not in SUMMED)


def difference(declaration: Declaration, case: Case) -> dict[str, object]:
    """Returns the arguments of `case` that ops.yaml does not declare so; nothing where one of them is left out."""
    own, changed = declaration["kwargs"], case.kwargs or {}
    if own.keys() - changed.keys():
        return {}
    return {name: value for name, value in changed.items() if name not in own or own[name] != value}


def changes(declaration: Declaration, others: Sequence[Case]) -> Iterator[tuple[str, object, Case]]:
    """Yields, of the cases `others`, those that differ from what is declared in one argument alone: its name, its value, and the case."""
    for case in others:
        changed = difference(declaration, case)
        if len(changed) == 1 and case.values == "declared":
            yield *next(iter(changed.items())), case


def word(case: Case, at: str) -> str:
    """Returns what a case of one changed argument is called at other lengths, which `at` names."""
    return f"{case.name.split('/')[1].removesuffix(']')},{at}]"


def is_decision(value: object) -> bool:
    """Tells whether `value` is a flag, a word, or an infinite order, which say what is taken and not by how much."""
    return isinstance(value, bool | str) or value in (math.inf, -math.inf)


def place(value: object) -> int:
    """Returns the place of a value among those of its argument: negative numbers and zero divide, and come first."""
    if is_decision(value) or not probing.is_plain(value):
        return 2
    return 0 if value < 0 else 1 if value == 0 else 3


def of_pairs(declaration: Declaration, case: Case) -> Case:
    """Returns `case` with special numbers of its inputs that meet, for which it has enough elements."""
    return replace(meeting(case, cases.ALL, cases.PAIRS), binding=probing.of_pairs(declaration, case.binding))


def meeting(case: Case, name: str, kind: str) -> Case:
    """Returns `case` with the values `kind` in the input `name`."""
    label, _, dtype = case.name.rpartition("]/")
    return replace(case, name=f"{label},{name}={kind}]/{dtype}", values=kind, of=name)
