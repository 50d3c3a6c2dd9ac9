"""Probes in which what does not count is NaN: where a mask of booleans says so, behind the length that another input has of a row, where no index points to, where no row of a paged cache lies, and beside a logarithm of a weight that is -inf.

Padding, free slots and results over no keys hold anything in practice. A kernel that multiplies them by zero makes NaN of it, where a reference that chooses (`where`) makes a number. Of results that are NaN for the
reference, too, nothing is asked: it says nothing of what counts. Nothing here makes values, but for the places that are hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, drawing, probe_pages, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op import expression
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, TensorInput

WORD = "hidden"
"""What such a case is called."""

FALSE, TRUE, BEHIND, LOW = "hidden-false", "hidden-true", "hidden-behind", "hidden-low"
"""The values of such a case: NaN where a mask is false, where it is true, from the place on that an integer says, and beside -inf, which each other element of the input gets that says it."""

NOWHERE = "hidden-nowhere"
"""The values of one in which each other index points nowhere: NaN at the first and the last place, which are what such an index is often read at, and which no other one points to."""

PAGES = "hidden-pages"
"""The values of one in which a paged cache is NaN where no row lies."""

SHOWN = {FALSE: "false", TRUE: "true", BEHIND: "behind", LOW: "-inf", NOWHERE: "nowhere", PAGES: "pages"}
"""What they are called in the name of a case."""

INPUTS = 3
"""So many inputs say what counts, and so many hold what one of them speaks of."""

MOST = 12
"""Most of such cases."""

PLACES = 7
"""So many places there are where each other index points nowhere."""


@dataclass(frozen=True)
class Hiding:
    """What hides values of one input."""

    by: TensorInput
    of: TensorInput
    kinds: Sequence[str]


def hidden(declaration: Declaration) -> Iterator[Case]:
    """Yields the cases of an op whose reference is written in Python. They take no other's place."""
    if not declaration.get("reference") or declaration.get("random"):
        return
    small, left = probing.rows(declaration), MOST
    for one in hidings(declaration):
        by, of = one.by["name"], one.of["name"]
        for kind in one.kinds[:left]:
            word = f"{WORD}[{of},{by}={SHOWN[kind]}]"
            both, at = cases.JOINED.join((by, of)), small
            if kind == NOWHERE:
                at = probing.bound(declaration, {**small, str(counted(one.by)): PLACES}, probing.NARROW)
            elif kind == PAGES:
                at = probing.bound(
                    declaration, {**small, **probe_pages.lengths_of(declaration, by, of)}, probing.NARROW
                )
            yield probing.probe(declaration, word, at, values=kind, of=both, has_own_budget=True)
        left -= len(one.kinds[:left])
    low = [one for one in hidings(declaration) if LOW in one.kinds]
    if len(low) > 1:
        # Nothing counts at all.
        word = f"{WORD}[{cases.JOINED.join(one.of['name'] for one in low)},{SHOWN[LOW]}]"
        every = cases.JOINED.join(name for one in low for name in (one.by["name"], one.of["name"]))
        yield probing.probe(declaration, word, small, values=LOW, of=every, has_own_budget=True)


def hidings(declaration: Declaration) -> Iterator[Hiding]:
    """Yields what inputs say of others: masks first, then lengths, then logarithms."""
    dtype, names = declaration["dtypes"][0], probing.of_values(declaration)
    held = [given for given in tensors(declaration) if given["name"] in names]
    known = [given for given in tensors(declaration) if given["shape"] and given.get("list") is None]
    masks = [given for given in known if (given["dtype"] or dtype) == "bool"]
    for mask in masks[:INPUTS]:
        for given in [one for one in held if is_of(mask, one)][:INPUTS]:
            yield Hiding(mask, given, (FALSE, TRUE))
    lengths = [given for given in known if counted(given)]
    for length in lengths[:INPUTS]:
        for given in [one for one in held if is_of(length, one, counted(length))][:INPUTS]:
            yield Hiding(length, given, (BEHIND,))
    for index in [one for one in known if points_nowhere(one)][:INPUTS]:
        for given in [one for one in held if str(counted(index)) in map(str, one["shape"])][:INPUTS]:
            yield Hiding(index, given, (NOWHERE,))
    for paging in islice(probe_pages.pagings(declaration), INPUTS):
        by, of = (next(one for one in known if one["name"] == name) for name in (paging.lengths, paging.cache))
        yield Hiding(by, of, (PAGES,))
    weights = [given for given in held if drawing.allowed(given)[0] < 0 and given["init"]["kind"] == "normal"]
    taken: set[str] = set()
    for weight in weights:
        whole = [one for one in held if len(one["shape"]) > len(weight["shape"]) and is_of(weight, one)]
        # Where there are several of either kind, as of two results that are put together, the first goes with the first.
        fresh = [one for one in whole if one["name"] not in taken] or whole
        for given in fresh[:1] if len(taken) < INPUTS else ():
            taken.add(given["name"])
            yield Hiding(weight, given, (LOW,))


def counted(given: TensorInput) -> str | None:
    """Returns the dim that an input counts places of: the one that the bound of its random integers names; None where it names none, or several."""
    init = given["init"]
    named = expression.names(init["high"]) if init["kind"] == "randint" and isinstance(init["high"], str) else []
    return named[0] if len(named) == 1 else None


def points_nowhere(given: TensorInput) -> bool:
    """Tells whether an input holds indices of a dim some of which are below zero, as those of neighbours that are not there."""
    low = given["init"]["low"] if given["init"]["kind"] == "randint" else 0
    return type(low) is int and low < 0 and counted(given) is not None


def is_of(by: TensorInput, given: TensorInput, along: str | None = None) -> bool:
    """Tells whether an input has an element of `by` for each of its own, by the names of their dims, each of which stands there once; and the dim `along`, which is none of `by`."""
    own, shape = [str(dim) for dim in by["shape"]], [str(dim) for dim in given["shape"]]
    if by["name"] == given["name"] or len({*own}) < len(own) or len({*shape}) < len(shape):
        return False
    return {*own} <= {*shape} and (along is None or (along in shape and along not in own))


def with_hidden(declaration: Declaration, case: Case, dense: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the inputs that a case of hidden values speaks of, by name, with those values; `dense` has all inputs with their own, but for those that the case leaves out."""
    names = str(case.of).split(cases.JOINED)
    found: dict[str, torch.Tensor] = {}
    for by, of in zip(names[::2], names[1::2], strict=True):
        if by in dense and of in dense:
            found |= with_one(declaration, case, dense, by, of)
    return found


def with_one(
    declaration: Declaration, case: Case, dense: Mapping[str, torch.Tensor], by: str, of: str
) -> dict[str, torch.Tensor]:
    """Returns the input `of`, and `by` that says what of it counts, with their values in a case of hidden ones."""
    import torch

    inputs = {given["name"]: given for given in tensors(declaration)}
    own, shape = ([str(dim) for dim in inputs[name]["shape"]] for name in (by, of))
    says, values = dense[by].clone(), dense[of].clone()
    if case.values == PAGES:
        paging = probe_pages.paging_of(declaration, by, of)
        says = probe_pages.ending_within(paging, dense)
        free = probe_pages.is_free(paging, {**dense, by: says})
        return {by: says, of: values.masked_fill(free, torch.nan)}
    if case.values == NOWHERE:
        along = shape.index(str(counted(inputs[by])))
        last = values.shape[along] - 1
        says = says.clamp(1, max(last - 1, 1)).where(says >= 0, says)
        says.view(-1)[1::2] = -1
        ends = torch.tensor([0, last], device=values.device)
        return {by: says, of: values.index_fill_(along, ends, torch.nan)}
    if case.values == LOW:
        says.view(-1)[1::2] = -torch.inf
    wide = spread(says, own, shape)
    if case.values == BEHIND:
        along = shape.index(str(counted(inputs[by])))
        places = torch.arange(values.shape[along], device=values.device)
        where = places.view([-1 if place == along else 1 for place in range(len(shape))]) >= wide
    else:
        where = wide == -torch.inf if case.values == LOW else wide if case.values == TRUE else ~wide
    return {by: says, of: values.masked_fill(where, torch.nan)}


def spread(value: torch.Tensor, own: Sequence[str], shape: Sequence[str]) -> torch.Tensor:
    """Returns `value`, whose dims are called `own`, as one that broadcasts over dims called `shape`."""
    ordered = value.permute([own.index(dim) for dim in shape if dim in own])
    lengths = iter(ordered.shape)
    return ordered.reshape([next(lengths) if dim in own else 1 for dim in shape])
