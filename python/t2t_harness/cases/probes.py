"""Probes, the edges that do not depend on the kernel's blocks: fixed and drawn shapes, lengths from all integers in its file, values in each input, arguments at other values.

They come after all other cases, the most valuable first, and of those with a budget: on the interpreter they may do a share of what the others did. Nothing here makes
values. torch is imported only inside functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from t2t_harness.cases import (
    arguments_away,
    arguments_beyond,
    arguments_known,
    bindings,
    capped,
    cases,
    elementwise,
    literals,
    probe_alone,
    probe_arguments,
    probe_classes,
    probe_coarse,
    probe_corners,
    probe_decisions,
    probe_dtypes,
    probe_eights,
    probe_further,
    probe_gradients,
    probe_groups,
    probe_hidden,
    probe_indices,
    probe_lengths,
    probe_marks,
    probe_meetings,
    probe_raised,
    probe_scaled,
    probe_segments,
    probe_together,
    probe_values,
    probing,
    windows,
)
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

MOST = 50
"""Most of them in a check; half as many more for each further dtype."""


KINDS = {
    "shape": "shapes",
    "literal": "literals",
    "multiple": "literals",
    "drawn": "drawn",
    "kwarg": "kwargs",
    "zeros": "zeros",
    "denormal": "denormal",
    "infinite-rows": "infinite-rows",
    "nan": "special",
    "below": "large",
    "runs": "zeros",
    "offset": "offset",
    "cancelling": "cancelling",
    "limits": "limits",
    "every": "limits",
    "neighbours": "limits",
    "planted": "zeros",
    "extreme": "large",
    "raised": "large",
    "sunk": "large",
    "void": "special",
    "grid": "blocks",
    "programs": "blocks",
    "ties": "zeros",
    "corners": "zeros",
    "tails": "small",
    "powers": "zeros",
    "low": "infinite-rows",
    "positive": "shapes",
    "small": "small",
    "gradients": "gradients",
    "all": "special",
    "swapped": "transposed",
    "channels_last": "transposed",
    "inner_swapped": "transposed",
    "later": "shapes",
    "weights": "zeros",
    "again": "shapes",
    "init": "kwargs",
    "negative": "limits",
    "shorter": "shapes",
    "counts": "limits",
    "bounds": "limits",
    "sampled": "shapes",
    "turned": "shapes",
    "flow": "strided",
    "expanded": "strided",
    "zero": "zeros",
    "only": "special",
    "counted": "shapes",
    "apart": "padded",
    "segments": "shapes",
    "evaluation": "kwargs",
    "halves": "zeros",
    "opposed": "large",
    "coarse": "zeros",
    "present": "together",
}
"""What follows `edge/` in a case's name → what turns it off in ops.yaml."""


NOT_FINITE = ("special", "only", "special-late", "infinite-rows", "nan-rows", "low", "masked", cases.PAIRS)
"""Edges with values that are not finite: where one is off, all are."""


BEYOND_DRAWN = (cases.NEGATIVE, cases.COUNTS, cases.LONG_COUNT)
"""Values that `init` does not draw, and that a wrapper need not take."""


ARGUMENTS = 4
"""So many arguments are tried at a long dim, too. Of an op that works element by element one: what another value makes of an element, short rows show."""


def cases_of(request: VariantRequest, known: Sequence[Case]) -> list[Case]:
    """Returns the probes of a check whose other cases are `known`, in the order in which they run."""
    declaration, lane = request["op"], request["lane"]
    limit = bindings.reach_limit(lane)
    own, read = list(probe_lengths.shapes(declaration, lane, limit)), literals.read(request)
    first = [case for place, case in enumerate(own) if case.has_own_budget or place == 0]
    others = list(probe_arguments.kwargs(request))
    above = list(
        probe_lengths.of_literals(
            declaration, known, literals.of_files(read), lane, limit, compared=literals.thresholds(read)
        )
    )
    groups = [
        first,
        [*windows.of_declared(declaration, limit)],
        others[0::2],
        [*probe_values.broadcasts(declaration)],
        [*probe_values.layouts(declaration)],
        others[1::2],
        [*probe_marks.marks(request)],
        [*probe_values.values(declaration, lane)],
        [*probe_meetings.meetings(declaration, others)],
        [*probe_further.further(request, limit)],
        [*probe_values.late(declaration, lane, limit)],
        [*when_long(request, known, limit)],
        [
            *probe_lengths.at_literals(declaration, known, literals.equals(read), limit),
            *probe_lengths.at_multiples(declaration, literals.divisors(read), limit),
        ],
        [*probe_values.of_one(declaration)],
        [*probe_values.runs(declaration, limit)],
        [*probe_values.ties(declaration)],
        [*probe_gradients.gradients(declaration)],
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
        same = json.dumps({**vars(case), "name": None, "has_own_budget": None}, sort_keys=True)
        if same not in seen:
            seen.add(same)
            found.append(case)
    salted = [
        case
        for case in probe_lengths.drawn(declaration, str(request.get("salt") or ""), limit, lane)
        if not is_off(declaration, case)
    ]
    # They cost nothing, and take no other's place.
    without = [case for case in probe_values.empty(declaration) if not is_off(declaration, case)]
    beside = [
        *probe_dtypes.mixed(declaration),
        *probe_dtypes.added_masks(declaration),
        *probe_dtypes.turned(declaration),
        *probe_dtypes.later(declaration),
        *probe_values.single(declaration),
        *probe_indices.indices(declaration),
        *probe_indices.bounds(declaration, sorted(literals.thresholds(read)), limit),
        *probe_groups.groups(request),
        *probe_lengths.apart(declaration, limit),
        *probe_lengths.of_sorted(declaration, limit),
        *probe_lengths.at_once(declaration, literals.thresholds(read), limit),
        *probe_lengths.in_pieces(declaration, literals.divisors(read), limit),
        *probe_alone.alone(declaration, limit),
        *probe_coarse.coarse(declaration, others),
        *probe_hidden.hidden(declaration),
        *probe_raised.of_exponentials(declaration),
        *probe_scaled.halves(declaration),
        *probe_eights.every(declaration),
        *probe_classes.classes(request),
        *probe_arguments.unnamed(request),
        *probe_meetings.beside(declaration, others, limit),
        *probe_further.counted(declaration, limit),
        *probe_segments.segments(declaration, others, limit),
        *probe_lengths.sampled(declaration, literals.of_files(read), limit),
        *probe_lengths.of_arguments(declaration),
        *probe_together.together(request, others, probe_decisions.beyond(request, known, read)),
    ]
    without += [case for case in beside if not is_off(declaration, case)]
    room = MOST + (MOST // 2) * (len(declaration["dtypes"]) - 1)
    without += [*probe_corners.corners(declaration, others)]
    # Nor do those of corners, and of what is larger than a block.
    without += [
        case
        for case in (*probe_decisions.long(request, known, others, read), *arguments_beyond.beyond(request, read))
        if case.name not in names and not is_off(declaration, case)
    ]
    # Nor do those that ask for one gradient, or for none.
    counted = [case for case in found if not probing.is_forward(case)]
    asking = [replace(case, has_own_budget=True) for case in counted[room:] if case.asks]
    last = {case.name for case in counted[room:]}
    return [*(case for case in found if case.name not in last), *asking, *without, *salted]


def is_off(declaration: Declaration, case: Case) -> bool:
    """Tells whether ops.yaml turns off this edge, or one that it is a form of."""
    off = cases.edges_off(declaration)
    word = case.name.split("/")[1].split("[")[0]
    if word in NOT_FINITE and any(kind in off for kind in NOT_FINITE):
        return True
    if word in ("offset", "cancelling", "denormal") and "large" in off:
        return True
    if word == probe_gradients.TWICE and "upstream" in off:
        return True
    return KINDS.get(word.split("-")[0], word) in off or (
        "blocks" in off and word.split("-")[0] in ("shape", "literal", "multiple", "drawn")
    )


def is_of_length(case: Case) -> bool:
    """Tells whether a probe tries lengths: those in its name, or those that the build drew."""
    return case.name.startswith("edge/drawn-") or any(
        f"{dim}={length}" in case.name for dim, length in case.binding.items()
    )


def is_at_length(case: Case) -> bool:
    """Tells whether a probe says nothing at shorter lengths: something happens just below the one that it has."""
    words = ("literal", capped.WORD, cases.COUNTED)
    return case.name.startswith(tuple(f"edge/{word}[" for word in words))


def is_without(case: Case) -> bool:
    """Tells whether a probe has no element along a dim that a wrapper may want to have some."""
    return case.is_probe and case.name.startswith(f"edge/{cases.EMPTY}[")


def is_sampled(case: Case) -> bool:
    """Tells whether the numbers that are drawn in a probe are tested together, as those of declared cases are."""
    return case.is_probe and case.name.startswith(f"edge/{probe_lengths.SAMPLED}[")


def has_other_kwargs(case: Case) -> bool:
    """Tells whether a probe has an argument at an undeclared value, of the op or of its class."""
    return case.is_probe and (case.kwargs is not None or case.init is not None)


def is_undeclared(case: Case) -> bool:
    """Tells whether a probe is a call that ops.yaml does not speak of, and that a wrapper may leave to others: an argument at another value, an index that counts from the end, a count beyond those that are drawn, a module in evaluation, or inputs with shapes or types of their own."""
    is_other = case.evaluates or case.values in BEYOND_DRAWN or is_unlike(case)
    return has_other_kwargs(case) or (case.is_probe and is_other)


def is_unlike(case: Case) -> bool:
    """Tells whether an input of a case has a shape or a type of its own."""
    return case.shapes is not None or case.dtypes is not None


def is_beyond(declaration: Declaration, case: Case, times: int = 1) -> bool:
    """Tells whether a dim is longer than in all sizes that are checked or measured, or more than so many `times` as long."""
    known = [*probing.sizes(declaration), *declaration["check_sizes"].values()]
    most = {dim: max((size.get(dim, 0) for size in known), default=0) for dim in case.binding}
    return (case.is_probe or "-block[" in case.name) and any(
        length > times * most[dim] for dim, length in case.binding.items()
    )


def when_long(request: VariantRequest, known: Sequence[Case], limit: int) -> Iterator[Case]:
    """Yields cases with the longest last dim that a block or a measured size led to. They try strides, large values, means far from zero, and arguments on the kernel for long rows."""
    declaration = request["op"]
    first = declaration["dtypes"][0]
    dims = probing.loose(declaration)
    led = [case for case in known if case.dtype == first and ("-block[" in case.name or case.name.startswith("reach/"))]
    if not dims or not led:
        return
    length = max(case.binding.get(dims[-1], 0) for case in led)
    at, binding = f"{dims[-1]}={length}", probing.bound(declaration, {dims[-1]: length}, probing.NARROW)
    if not probing.fits(declaration, binding, limit):
        return
    ranks = [len(given["shape"]) for given in tensors(declaration)]
    names = [] if elementwise.shows_anywhere(declaration) else probing.of_values(declaration)
    if any(rank >= 2 for rank in ranks):
        yield probing.probe(declaration, f"padded[{at}]", binding, layout="padded")
    for name in names[:1]:
        # Equal values in different blocks of a row.
        yield probing.probe(declaration, f"zeros[{name},{at}]", binding, values="zeros", of=name)
    if names and request["lane"] != "cuda":
        # A device has many more elements, of which a few are further off than their last bits are worth.
        yield probing.probe(declaration, f"offset[{names[0]},{at}]", binding, values="offset", of=names[0])
        yield probing.probe(declaration, f"large[{at}]", binding, values="large")
    most = 1 if elementwise.shows_anywhere(declaration) else ARGUMENTS
    for label, changed in list(arguments_away.of_request(request, max(ranks, default=0)))[:most]:
        own, place = binding, at
        if any(changed.get(name) == 0 and f"{name}=0" in label for name in arguments_known.DIMS):
            own, place = (
                probing.bound(declaration, {dims[0]: length, dims[-1]: probing.NARROW}, probing.NARROW),
                f"{dims[0]}={length}",
            )
        if probing.fits(declaration, own, limit):
            yield probing.probe(declaration, f"kwarg[{label},{place}]", own, kwargs=changed)
