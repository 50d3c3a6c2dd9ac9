"""Probes in which two things differ at once: arguments, inputs that are left out, layouts, gradients that nobody asks for, long rows. A wrapper chooses a path by one of them, and the path may know the other one's usual value alone.

Pairs are covered by few cases, as in pairwise testing (D. M. Cohen et al., "The AETG System", IEEE Transactions on Software Engineering 23, 1997): each case takes the first pair that is left, and what else covers most of the others.
Nothing here makes values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_compared, cases, probe_meetings, probing, seeds
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

WORD = "together"
"""What such a case is called, and what turns it off."""

MOST = {"interpreter": 20, "cuda": 24}
"""Most of such cases, on each lane."""

LEVELS = 3
"""So many values of an argument take part: its first other one, words, and what a reference asks it to be equal to."""

LAYOUTS = ("strided", "transposed")
"""Layouts that take part."""

ALONE = (
    "ignore_index",
    "ceil_mode",
    "padding",
    "kernel_size",
    "stride",
    "dilation",
    "output_padding",
    "groups",
    "num_groups",
)
"""Arguments that are tried at shapes of their own. They meet flags and words alone, and none of each other but `ROUNDED`."""

ROUNDED = "ceil_mode"
"""The flag by which windows are rounded up: where they end is computed from all that is said of windows."""

ORDER = (
    ("kwarg", "kwarg"),
    ("absent", "kwarg"),
    ("kwarg", "layout"),
    ("asks", "long"),
    ("absent", "absent"),
    ("absent", "layout"),
    ("asks", "kwarg"),
    ("absent", "asks"),
    ("absent", "long"),
    ("asks", "layout"),
    ("layout", "long"),
)
"""Kinds of what differs, two at a time, the most telling first. An argument in a long row is tried elsewhere."""

NUMERIC = 1.5
"""Where two arguments that are numbers come in that order."""

SAFE = ("absent", "layout")
"""Kinds that may come as a third one: no wrapper refuses them, and no pair is lost by that, as one that shows in gradients is where none are asked for."""


@dataclass(frozen=True)
class Change:
    """One thing that differs from what is declared."""

    kind: str
    """`kwarg`, `absent`, `layout`, `asks` or `long`."""
    name: str
    """What differs: an argument, an input, or the kind again. Two changes of one name exclude each other."""
    label: str
    value: object = field(compare=False, hash=False)
    binding: Mapping[str, int] = field(default_factory=dict, compare=False, hash=False)
    """Lengths that it wants."""


def together(request: VariantRequest, others: Sequence[Case], long: Mapping[str, int] | None) -> Iterator[Case]:
    """Yields the cases; `others` are those in which arguments differ, `long` are the lengths of a long row, or None where there is none."""
    declaration = request["op"]
    if seeds.is_random(declaration) or WORD in cases.edges_off(declaration):
        return
    found = list(changes(declaration, others, long))
    yield from present(declaration, found)
    yield from flagged(declaration, found)
    left = pairs(found)
    for _ in range(MOST.get(request["lane"], MOST["cuda"])):
        if not left:
            return
        chosen = list(left[0])
        for third in dict.fromkeys(one for pair in left for one in pair):
            # What several inputs are absent for is one path, and each pair of them another.
            excluded = any(third.name == one.name or third.kind == one.kind for one in chosen)
            fresh = sum(frozenset((one, third)) in map(frozenset, left) for one in chosen)
            if third.kind in SAFE and not excluded and fresh == len(chosen):
                chosen.append(third)
                break
        met = {frozenset(pair) for pair in combinations(chosen, 2)}
        left = [pair for pair in left if frozenset(pair) not in met]
        yield case_of(declaration, chosen)


PRESENT = "present"
"""What a case is called in which one optional input alone is there, or none beside a flag or a word."""

FEW = 4
"""So many optional inputs are alone there, and so many flags and words come with none."""


def present(declaration: Declaration, found: Sequence[Change]) -> Iterator[Case]:
    """Yields, of an op with three optional inputs or more, cases in which one of them alone is there, and of one with two or more some in which none is and a flag or a word of the changes `found` is another one: what is computed for some of them together may be left out for one."""
    names = [one.name for one in found if one.kind == "absent"]
    for name in names[:FEW] if len(names) > 2 else ():
        absent = tuple(other for other in names if other != name)
        small = probing.tiny(declaration)
        yield probing.probe(declaration, f"{PRESENT}[{name}]", small, absent=absent, has_own_budget=True)
    words = [one for one in found if one.kind == "kwarg" and isinstance(one.value, bool | str)]
    for one in words[:FEW] if len(names) > 1 else ():
        yield probing.probe(
            declaration,
            f"{PRESENT}[none,{one.label}]",
            {dim: max(length, one.binding.get(dim, 0)) for dim, length in probing.tiny(declaration).items()},
            kwargs={**declaration["kwargs"], one.name: one.value},
            absent=tuple(names),
            has_own_budget=True,
        )


FLAGGED = 3
"""So many pairs of flags come with other numbers."""


def flagged(declaration: Declaration, found: Sequence[Change]) -> Iterator[Case]:
    """Yields cases in which two flags or words are other ones, and all numbers, too: what one flag leaves out of another one's formula may be a number that is declared as zero or one."""
    first: dict[str, Change] = {}
    for one in found:
        if one.kind == "kwarg" and one.name not in ALONE:
            first.setdefault(one.name, one)
    words = [one for one in first.values() if isinstance(one.value, bool | str)]
    numbers = [one for one in first.values() if probing.is_plain(one.value)]
    for pair in list(combinations(words, 2))[:FLAGGED] if numbers else ():
        changed = {one.name: one.value for one in (*pair, *numbers)}
        binding = probing.tiny(declaration)
        for one in (*pair, *numbers):
            binding = {dim: max(length, one.binding.get(dim, 0)) for dim, length in binding.items()}
        word = f"{WORD}[{','.join(one.label for one in pair)},numbers]"
        kwargs = {**declaration["kwargs"], **changed}
        yield probing.probe(declaration, word, binding, kwargs=kwargs, has_own_budget=True)


def changes(declaration: Declaration, others: Sequence[Case], long: Mapping[str, int] | None) -> Iterator[Change]:
    """Yields all that may differ."""
    off = cases.edges_off(declaration)
    counts: dict[str, int] = {}
    levels: dict[str, int] = {}
    for case in others if "kwargs" not in off else ():
        changed = [*probe_meetings.difference(declaration, case).items()]
        if len(changed) != 1 or case.values != "declared":
            continue
        ((name, value),) = changed
        counts[name] = counts.get(name, 0) + 1
        is_branch = isinstance(value, str) or value in arguments_compared.branches(declaration, name)
        if is_branch or counts[name] == 1:
            levels[name] = levels.get(name, 0) + 1
        if (is_branch or counts[name] == 1) and levels[name] <= LEVELS:
            yield Change("kwarg", name, f"{name}={value}", value, case.binding)
    for given in tensors(declaration):
        if given.get("optional"):
            yield Change("absent", given["name"], f"without-{given['name']}", given["name"])
    ranks = [len(given["shape"]) for given in tensors(declaration)]
    for layout, least in zip(LAYOUTS, (1, 2), strict=True):
        if layout not in off and any(rank >= least for rank in ranks):
            yield Change("layout", "layout", layout, layout)
    if declaration["backward"]:
        yield Change("asks", "asks", "gradients-off", cases.NOBODY)
    if long is not None and "blocks" not in off:
        yield Change("long", "long", ",".join(f"{dim}={length}" for dim, length in long.items()), None, long)


def pairs(found: Sequence[Change]) -> list[tuple[Change, Change]]:
    """Returns all pairs of changes of different names, in `ORDER`; of arguments first those of which one is a word or a flag."""
    listed: list[tuple[float, tuple[Change, Change]]] = []
    for pair in combinations(found, 2):
        first, second = sorted(pair, key=lambda one: one.kind)
        if first.name == second.name or (first.kind, second.kind) not in ORDER or is_void(first, second):
            continue
        if not may_meet(first, second) or not may_meet(second, first):
            continue
        is_numeric = first.kind == second.kind == "kwarg" and not any(isinstance(one.value, str | bool) for one in pair)
        place = NUMERIC if is_numeric else ORDER.index((first.kind, second.kind))
        listed.append((place, (first, second)))
    return [pair for _, pair in sorted(listed, key=lambda one: one[0])]


def may_meet(one: Change, other: Change) -> bool:
    """Tells whether an argument of `ALONE` meets another change; all else does."""
    if one.name not in ALONE or one.kind != "kwarg":
        return True
    if other.name in ALONE:
        return ROUNDED in (one.name, other.name)
    return other.kind == "kwarg" and isinstance(other.value, bool | str)


def is_void(layout: Change, long: Change) -> bool:
    """Tells whether a long row is one that lies transposed as it does otherwise: it has no second row."""
    return layout.value == "transposed" and long.kind == "long" and sum(one > 1 for one in long.binding.values()) < 2


def case_of(declaration: Declaration, chosen: Sequence[Change]) -> Case:
    """Returns the case in which all of the `chosen` changes are made, each dim as long as one of them wants it."""
    by_kind: dict[str, list[Change]] = {}
    for one in chosen:
        by_kind.setdefault(one.kind, []).append(one)
    binding = probing.tiny(declaration)
    if "long" in by_kind:
        binding = dict(by_kind["long"][0].binding)
    for one in by_kind.get("kwarg", ()):
        binding = {dim: max(length, one.binding.get(dim, 0)) for dim, length in binding.items()}
    kwargs = {**declaration["kwargs"], **{one.name: one.value for one in by_kind.get("kwarg", ())}}
    return probing.probe(
        declaration,
        f"{WORD}[{','.join(one.label for one in chosen)}]",
        binding,
        kwargs=kwargs if "kwarg" in by_kind else None,
        absent=tuple(one.name for one in by_kind.get("absent", ())),
        layout=str(by_kind["layout"][0].value) if "layout" in by_kind else None,
        asks=cases.NOBODY if "asks" in by_kind else (),
        has_own_budget=True,
    )
