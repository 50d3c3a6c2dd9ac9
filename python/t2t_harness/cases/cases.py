"""The cases of an op: which inputs a kernel is run on, named, without their values.

A case is data: a size, a dtype, a seed and what is special about it. Values come from inputs.py. It imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import bindings, eights
from t2t_harness.op.declaration import bind_shape, changed, has_sorted_floats, tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, TensorInput

EDGES = 12
"""Most edge cases of one op, in its first dtype."""

DECLARED = "declared"

TIES = "ties"
"""Values of an input; each second one is a value of another input."""

IGNORED = "ignored"
"""Values of an input that are all the label which does not count."""

PADDING = "padding_idx"
"""The argument that is the index of nothing."""

IGNORE = "ignore_index"
"""The argument that says which label that is."""

PLANTED = "planted"
"""Values of an input of which some are numbers among the arguments of the call."""

PAIRS = "pairs"
"""Values of inputs of one shape in which each special number of one meets each of another."""

CORNERS = "corners"
"""The same of 0 and 1 of either sign."""

COUNTS = "counts"
"""Counts of which two are larger than others, and what a case of them is called."""

LONG_COUNT = "long-count"
"""Counts of which one is so large that few blocks are as long."""

MIXED = "mixed"
"""What a case is called in which two inputs have different dtypes."""

WEIGHTS = "weights"
"""What a case is called in which weights have other values than a constructor gave them."""

INIT = "init"
"""What a case is called in which a class is constructed with another argument; that follows, in brackets."""

AGAIN = "again"
"""What a case is called in which a class is called a second time."""

COUNTED = "counted"
"""What a case is called in which a dim is longer than a type of 16 bits counts to."""

BOUNDS = "bounds"
"""Integers of which each is the least or the greatest that is drawn, and what a case of them is called."""

NEGATIVE = "negative"
"""Indices of which some count from the end, and what a case of them is called."""

TAILS = "tails"
"""Values at which functions that approach zero are small."""

EMPTY = "empty"
"""What a case without elements is called, and in a probe the dim that has none, as `empty[K]`."""

NOBODY = ("",)
"""In the place of the inputs that ask for a gradient: none does, and gradients are turned off."""

ONE = "one"
"""In the place of a layout: one element in all places, as what flows into what a sum is of."""

ALL = "*"
"""In the place of an input's name: all of them."""

APART = "apart"
"""The layout of some inputs beside others: dense rows with memory between them, and each second element of a vector."""

PARAMETERS = "parameters of the module"
"""In the place of inputs that ask for a gradient: none of them does."""

JOINED = "+"
"""What stands between the names of several inputs."""

FLOATING = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Case:
    """One set of inputs. Two cases with equal fields have bit-identical inputs."""

    name: str
    kind: str
    """`declared`, `edge` or `hook`."""
    dtype: str
    binding: dict[str, int]
    seed: int = 0
    values: str = DECLARED
    """`declared`, `large`, `equal-rows`, `special`, `ignored`, `pairs`, `corners`, `negative`, or one of unusual.py; only floating inputs with random values heed it, but for `ignored`, `negative`, `counts`, `long-count`, `bounds`, `limits`, `false`, `true` and `late-true`."""
    layout: str | None = None
    """In the place of every input's declared layout, or of that which `of` names, where that input has the dims for it."""
    broadcast: bool = False
    """Whether the second input, or the one that `of` names, has length 1 along its first dim."""
    is_last: bool = False
    """Whether that is its last dim, instead."""
    shapes: dict[str, list[int]] | None = None
    """Shapes of inputs, by name, in the place of those that the declaration and the lengths of dims give them."""
    dtypes: dict[str, str] | None = None
    """Dtypes of inputs, by name, in the place of `dtype`."""
    kwargs: dict[str, object] | None = None
    """In the place of the declared keyword arguments, for a case of the user's own."""
    file: str | None = None
    """Where the inputs of a hook case lie, relative to the folder of `cases.json`."""
    strides: dict[str, list[int]] | None = None
    """Strides of the inputs of a hook case."""
    turn: int = 0
    """Which of its layouts an input with several has."""
    absent: tuple[str, ...] = ()
    """The optional inputs that are left out."""
    of: str | None = None
    """The input that has the `values`, the `layout`, or is `broadcast`, of the last also several, as `b+c`; None where that is all of them, for `special` and `ends` the first floating one, for `broadcast` the second."""
    is_probe: bool = False
    """Whether it is one of probes.py, for which there is a budget."""
    asks: tuple[str, ...] = ()
    """The inputs that ask for a gradient, `NOBODY` for none; all that have one where none is named."""
    uses: tuple[int, ...] = ()
    """The outputs, by position, that gradients flow into; all of them where none is named."""
    is_twice: bool = False
    """Whether its backward pass runs a second time over the same graph, and that one's gradients are compared."""
    is_changed: bool = False
    """Whether its outputs are changed in place before the backward pass."""
    flows: str | None = None
    """How the gradients that flow into the outputs lie: in a layout, or `ONE` element for all places; None for the common layout of the inputs."""
    weights: tuple[str, ...] = ()
    """The parameters and buffers of a module that have other values than its constructor gave them; `ALL` where the candidate says which."""
    init: dict[str, object] | None = None
    """In the place of the declared arguments of a reference's constructor."""
    is_again: bool = False
    """Whether a class was called once before, on the same inputs where `before` says nothing else: what it keeps then counts."""
    before: dict[str, int] | None = None
    """The lengths that it was called with before, where those were others."""
    evaluates: bool = False
    """Whether a module is in the mode of evaluation, and not as it is constructed."""
    has_own_budget: bool = False
    """Whether it is a probe that does not take from what the others may do."""
    salt: str = ""
    """Drawn by a build, and named in its evidence. A table of answers made before cannot have these values."""

    def facts(self) -> dict[str, object]:
        """Returns the case as JSON facts."""
        return asdict(self)


def from_facts(facts: Mapping[str, Any]) -> Case:
    """Returns the case that `facts` were made of."""
    return Case(**{**facts, "absent": tuple(facts.get("absent", ())), "asks": tuple(facts.get("asks", ()))})


OTHERS = 1 << 21
"""What the seed of the values that inputs get in place is away from the case's own."""


def updated(case: Case) -> Case:
    """Returns the case whose values the inputs of `case` get, where a wrapper is called again on the same tensors."""
    return replace(case, seed=case.seed + OTHERS)


def salted(listed: Sequence[Case], salt: str) -> list[Case]:
    """Returns `listed`; cases with other values in each build get `salt`."""
    return [replace(case, salt=salt) if is_salted(case) else case for case in listed]


def is_salted(case: Case) -> bool:
    """Tells whether a case has other values in each build: declared ones and drawn shapes.

    Other edges, which have few elements or few rows, have not: what honest kernels and torch differ in, such as the mean over no row at all, would come up in one build and not in another. Cases of the user's own
    have the values that they were made with.
    """
    if case.file is not None:
        return False
    return case.kind == "declared" or case.name.startswith("edge/drawn-")


def declared_cases(declaration: Declaration) -> list[Case]:
    """Returns check sizes × dtypes × seeds, named `small/float32/0`, and for each size and dtype those in which optional
    inputs are absent, as `small/float32/without-mask`. There are as many seeds as an input has layouts, at least."""
    sizes = [
        (size, binding)
        for size, binding in declaration["check_sizes"].items()
        if binding or not bindings.dims(declaration)
    ]
    seeds = max(declaration["seeds"], *(len(_layouts(given)) for given in tensors(declaration)), 1)
    found: list[Case] = []
    for (size, binding), dtype in product(sizes, declaration["dtypes"]):
        name = f"{size}/{dtype}"
        found += [Case(f"{name}/{seed}", "declared", dtype, dict(binding), seed, turn=seed) for seed in range(seeds)]
        for absent in _absences(declaration):
            without = f"{name}/without-{'-'.join(absent)}"
            found.append(Case(without, "declared", dtype, dict(binding), absent=absent))
    return found


def _layouts(given: TensorInput) -> Sequence[str]:
    return [given["layout"]] if isinstance(given["layout"], str) else given["layout"]


def _absences(declaration: Declaration) -> list[tuple[str, ...]]:
    """Returns the sets of optional inputs that are left out together: each alone, and all of several."""
    optional = [str(given["name"]) for given in tensors(declaration) if given.get("optional")]
    return [(name,) for name in optional] + ([tuple(optional)] if len(optional) > 1 else [])


def first(case: Case) -> Case:
    """Returns the case of the call that a class gets before that of `case`, which has lengths of its own there."""
    return replace(case, binding=dict(case.before or case.binding), seed=case.seed + OTHERS)


def asking(declaration: Declaration, case: Case) -> tuple[str, ...]:
    """Returns the inputs that ask for a gradient in `case`: its own, else those that ops.yaml has ask; none are all that have one."""
    return case.asks or tuple(str(given["name"]) for given in tensors(declaration) if given.get("requires_grad"))


def bench_cases(declaration: Declaration) -> list[Case]:
    """Returns sizes × dtypes with seed 0, named `large/float16`."""
    sizes = [
        (size, binding) for size, binding in declaration["sizes"].items() if binding or not bindings.dims(declaration)
    ]
    return [
        Case(f"{size}/{dtype}", "declared", dtype, dict(binding))
        for (size, binding), dtype in product(sizes, declaration["dtypes"])
    ]


def fixed_edges(declaration: Declaration, limit: int = bindings.INTERPRETER_ELEMENTS) -> list[Case]:
    """Returns the edge cases that no block size decides; the first dtype has all, the others only `special`.

    They have the first check size, made smaller until no input has more than a sixteenth of `limit` elements, and odd, but for
    dims that the op fixes.
    """
    cases: list[Case] = []
    for position, dtype in enumerate(declaration["dtypes"]):
        edges = edges_of(declaration, dtype, limit)
        cases += edges if position == 0 else [case for case in edges if case.values == "special"]
    return cases


def shapes(declaration: Declaration, case: Case) -> dict[str, list[int]]:
    """Returns the shape of each input of a declared or edge case."""
    found = {given["name"]: bind_shape(given["shape"], case.binding) for given in tensors(declaration)}
    if case.broadcast:
        for smaller in (case.of or tensors(declaration)[1]["name"]).split(JOINED):
            found[smaller] = [*found[smaller][:-1], 1] if case.is_last else [1, *found[smaller][1:]]
    return found | {name: list(shape) for name, shape in (case.shapes or {}).items()}


def dtype_of(given: TensorInput, case: Case) -> str:
    """Returns the name of the dtype that the declared input `given` has in `case`."""
    return (case.dtypes or {}).get(given["name"]) or given["dtype"] or case.dtype


def elements(declaration: Declaration, case: Case) -> int:
    """Returns the number of elements of all inputs of a declared or edge case."""
    return sum(map(math.prod, shapes(declaration, case).values()))


def at(case: Case, binding: Mapping[str, int]) -> Case:
    """Returns `case` with other lengths."""
    return replace(case, binding=dict(binding))


PLACED = ("stride", "padding", "dilation", "kernel_size", "output_padding", "scale_factor")
"""Arguments of which another value needs room: the lengths of their cases are as short as they can be."""


def has_lengths(case: Case) -> bool:
    """Tells whether the lengths of dims alone give all inputs of a case their shapes, and may be shorter."""
    return case.file is None and case.shapes is None and not any(name in PLACED for name in case.kwargs or {})


def smaller(declaration: Declaration, case: Case) -> Iterator[Case]:
    """Yields `case` with its longest free dim halved, again and again, as long as one is longer than 2; an odd length stays odd, so that it divides nothing it did not divide before. Nothing for a case of the user's own, or one with shapes of its own."""
    free = bindings.free_lengths(declaration) if has_lengths(case) else {}
    bound = dict(case.binding)
    while free:
        longest = max(free, key=lambda dim: bound[dim])
        half = bound[longest] // 2
        bound = {**bound, longest: half | 1 if bound[longest] % 2 and half > 2 else half}
        found = bindings.stepped(declaration, bound)
        if bound[longest] < 2 or not bindings.is_possible(declaration, found):
            return
        yield at(case, found)


def fewer(declaration: Declaration, case: Case) -> Iterator[Case]:
    """Yields `case` with one of its outer dims after the other of length 1, or 2 where that edge is off, which leaves the last two as they are, and then as `smaller` has it; nothing for a case of the user's own, or one with shapes of its own."""
    free = [dim for dim in bindings.dims(declaration) if dim in bindings.free_lengths(declaration)]
    one, least = case, 2 if "one" in edges_off(declaration) else 1
    for dim in free[:-2] if has_lengths(case) else ():
        bound = bindings.stepped(declaration, {**one.binding, dim: least})
        if one.binding[dim] > least and bindings.is_possible(declaration, bound):
            one = at(one, bound)
            yield one
    yield from smaller(declaration, one)


def as_told(declaration: Declaration, case: Case, binding: Mapping[str, int] | None) -> Case:
    """Returns `case` with the lengths that it was run with, `binding`, where those are of one of its `smaller` or `fewer` ones and a pass does not need it as it is; else the case."""
    if is_needed(declaration, case):
        return case
    known = chain(smaller(declaration, case), fewer(declaration, case) if case.is_probe else ())
    return next((one for one in known if one.binding == binding), case)


def is_needed(declaration: Declaration, case: Case) -> bool:
    """Tells whether a check passes only with this case as it is: it is a declared one of the first dtype, or the user's own."""
    return case.kind == "hook" or (case.kind == "declared" and case.dtype == declaration["dtypes"][0])


def edges_of(declaration: Declaration, dtype: str, limit: int) -> list[Case]:
    edges: list[Case] = []
    free = bindings.free_lengths(declaration)
    small = bindings.small_lengths(declaration, limit)

    def edge(name: str, binding: dict[str, int], **special: Any) -> None:
        binding = bindings.stepped(declaration, binding)
        if bindings.is_possible(declaration, binding):
            edges.append(Case(f"edge/{name}/{dtype}", "edge", dtype, binding, **special))

    if free:
        edge("empty", {**small, bindings.emptied(declaration, list(free)): 0})
        edge("one", {**small, **dict.fromkeys(free, 1)})
    ranks = [len(given["shape"]) for given in tensors(declaration)]
    if any(rank >= 2 for rank in ranks):
        edge("transposed", small, layout="transposed")
    if any(rank >= 1 for rank in ranks):
        edge("strided", small, layout="strided")
    if any(random_floats(given, dtype) for given in tensors(declaration)):
        kinds = ("equal-rows",) if has_probabilities(declaration) else ("large", "equal-rows", "special")
        for values in kinds:
            edge(values, small, values=values)
    elif any(has_sorted_floats(given, dtype) for given in tensors(declaration)):
        edge("large", small, values="large")
    if declaration["broadcast"] and len(ranks) >= 2 and ranks[1] >= 1:
        edge("broadcast", small, broadcast=True)
    off = edges_off(declaration)
    return [case for case in edges if case.name.split("/")[1] not in off]


def edges_off(declaration: Declaration) -> Mapping[str, str | None]:
    """Returns the kinds of edges that are not asked for, with the reason that is given; `blocks` are those around a variant's blocks."""
    return declaration.get("edges") or {}


def may_be_expanded(declaration: Declaration) -> bool:
    """Tells whether elements of an input may lie in the same place: nothing is written there, and inputs need not be dense."""
    off = edges_off(declaration)
    return not changed(declaration) and "strided" not in off and "transposed" not in off


def comparable(declaration: Declaration, dtype: str) -> list[str]:
    """Returns the names of the floating inputs with dims that are always there and are of the case's dtype."""
    inputs = [given for given in tensors(declaration) if given.get("list") is None and not given.get("optional")]
    return [given["name"] for given in inputs if given["shape"] and (given["dtype"] or dtype) == dtype in FLOATING]


def has_probabilities(declaration: Declaration) -> bool:
    """Tells whether inputs are probabilities. torch refuses other values, on a device by an assertion that ends the process."""
    random = declaration.get("random")
    return random is not None and random["kind"] in ("bernoulli", "multinomial")


def random_floats(given: TensorInput, dtype: str) -> bool:
    """Tells whether the declared input `given` has random floating values in a case of `dtype`."""
    return (given["dtype"] or dtype) in (*FLOATING, *eights.EIGHTS) and given["init"]["kind"] in ("normal", "uniform")


def unique(cases: Sequence[Case]) -> Iterator[Case]:
    """Yields `cases` without those that have the name of an earlier one."""
    seen: set[str] = set()
    for case in cases:
        if case.name not in seen:
            seen.add(case.name)
            yield case
