"""Bindings: the lengths that dims have in a case. Which dims are free, what torch and the shapes of inputs want of lengths, and short ones.

It makes no cases and no values, and imports no torch.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, cast

from t2t_harness.cases.remembered import of_declaration
from t2t_harness.op import expression, lengths
from t2t_harness.op.declaration import bind_init, bind_shape, tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, Taken

INTERPRETER_ELEMENTS = 8192
"""Most elements of one input of an edge case where a kernel is interpreted: a million-element addition takes a second
there."""


DEVICE_ELEMENTS = 1 << 22
"""Most elements of one input of an edge case on a device."""


@of_declaration
def dims(declaration: Declaration) -> list[str]:
    """Returns the names of the dims in the inputs' shapes, in order of appearance."""
    named = (dim for given in tensors(declaration) for length in given["shape"] for dim in expression.names(length))
    return list(dict.fromkeys(named))


def reach_limit(lane: str) -> int:
    """Returns the most elements of an input of a case that reaches what a measured size launches."""
    return 4 * limit_of(lane)


def limit_of(lane: str) -> int:
    """Returns the most elements of an input of an edge case on `lane`."""
    return DEVICE_ELEMENTS if lane == "cuda" else INTERPRETER_ELEMENTS


@of_declaration
def own_lengths(declaration: Declaration) -> dict[str, int | None]:
    """Returns each dim with the length that the check's sizes give it where the op fixes it, None where it is free."""
    fixed = fixed_lengths(declaration)
    return {dim: fixed.get(dim) for dim in smallest(declaration)}


DIVISOR = re.compile(r"([A-Za-z_]\w*)\s*//\s*(\d+)")
"""A dim in an expression that is divided by a number."""


GROUPS = ("groups", "num_groups")
"""Arguments that divide channels: the second dim of the first input, and the first one of further inputs."""


@of_declaration
def steps(declaration: Declaration) -> dict[str, int]:
    """Returns the dims whose lengths are multiples of a number, with it: those that a shape divides, as `C // 2`, and channels in groups. Only where all declared lengths are such multiples."""
    found: dict[str, int] = {}
    shaped = tensors(declaration)
    for given in shaped:
        for length in given["shape"]:
            for dim, divisor in DIVISOR.findall(length) if isinstance(length, str) else ():
                found[dim] = math.lcm(found.get(dim, 1), max(int(divisor), 1))
    for name in GROUPS:
        groups = (declaration.get("kwargs") or {}).get(name)
        if isinstance(groups, int) and groups > 1:
            channels = [given["shape"][:2][-1:] for given in shaped[:1]] + [given["shape"][:1] for given in shaped[1:]]
            for dim in chain.from_iterable(channels):
                if isinstance(dim, str) and dim in own_lengths(declaration):
                    found[dim] = math.lcm(found.get(dim, 1), groups)
    sizes = [*declaration["check_sizes"].values(), *declaration["sizes"].values()]
    return {dim: step for dim, step in found.items() if all(size.get(dim, 0) % step == 0 for size in sizes)}


def stepped(declaration: Declaration, binding: Mapping[str, int]) -> dict[str, int]:
    """Returns `binding` with each length rounded up to a multiple of what `steps` says, and to one that torch takes; places are as many as the integers that are distinct and point to them."""
    found = roomy(declaration, binding)
    for dim, step in steps(declaration).items():
        if dim in found:
            found[dim] = -(-found[dim] // step) * step
    return lengths.fitted(taken(declaration), found)


ROOM = 4
"""So often lengths are raised for distinct integers: each dim of an expression once is enough, as a rule."""


def roomy(declaration: Declaration, binding: Mapping[str, int]) -> dict[str, int]:
    """Returns `binding` with more places for integers of which none is there twice, where dims say how many there are that are free, or have one length in all sizes by chance: how many pages a cache has is nothing that a kernel relies on."""
    found, stated = dict(binding), declaration.get("fixed") or ()
    loose = [*free_lengths(declaration), *(dim for dim in fixed_lengths(declaration) if dim not in stated)]
    for given in tensors(declaration):
        init = given["init"]
        if init["kind"] not in ("distinct", "unique_between") or not given["shape"]:
            continue
        words = re.findall(r"[A-Za-z_]\w*", str(init["high"]))
        raised = min((dim for dim in words if dim in loose), key=loose.index, default=None)
        if raised is None or raised in given["shape"]:
            continue
        with contextlib.suppress(expression.Impossible, KeyError):
            # Lengths may be some of several.
            for _ in range(ROOM):
                bound, shape = bind_init(init, found), bind_shape(given["shape"], found)
                needed = shape[-1] if init["kind"] == "distinct" else math.prod(shape)
                low, high = int(cast("int", bound["low"])), int(cast("int", bound["high"]))  # type: ignore[typeddict-item]
                if high - low >= needed:
                    break
                found[raised] = -(-found[raised] * (needed + low) // max(high, 1))
    return found


def taken(declaration: Declaration) -> dict[str, Taken]:
    """Returns the lengths that torch takes, of the dims of which it refuses some; nothing of a dim that has another one in the op's own sizes."""
    sizes = [*declaration["check_sizes"].values(), *declaration["sizes"].values()]
    known = {**(declaration.get("lengths") or {}), **dict.fromkeys(_ends(declaration), TWO)}
    return {dim: one for dim, one in known.items() if all(lengths.is_taken(one, size.get(dim, 0)) for size in sizes)}


TWO: Taken = {"least": 2, "step": 1, "only": [], "divides": None, "within": None}
"""The lengths of a dim along which offsets lie: one segment has two ends."""


def _ends(declaration: Declaration) -> set[str]:
    """Returns the dims along which offsets lie, as many as there are ends of segments."""
    lasts = [given["shape"][-1] for given in tensors(declaration) if given["init"]["kind"] == "offsets"]
    return {length for length in lasts if isinstance(length, str) and length in own_lengths(declaration)}


def segments(declaration: Declaration) -> set[str]:
    """Returns the dims that say how many segments offsets divide something into."""
    lasts = [given["shape"][-1] for given in tensors(declaration) if given["init"]["kind"] == "offsets"]
    return {dim for length in lasts for dim in expression.names(length)}


def largest(declaration: Declaration, binding: Mapping[str, int]) -> int:
    """Returns the number of elements of the largest input; of an op without inputs, the product of all dims."""
    shaped = [math.prod(bind_shape(given["shape"], binding)) for given in tensors(declaration)]
    return max(shaped, default=math.prod(binding.values()))


@of_declaration
def smallest(declaration: Declaration) -> dict[str, int]:
    """Returns the first non-empty check size, or nothing for an op without dims."""
    sizes = [*declaration["check_sizes"].values(), *declaration["sizes"].values()]
    return dict(next((size for size in sizes if size), {}))


@of_declaration
def fixed_lengths(declaration: Declaration) -> dict[str, int]:
    """Returns the dims that have one length in all of two or more sizes, or that `dims` fixes where there is one size alone: a kernel may rely on it."""
    sizes = [size for size in [*declaration["sizes"].values(), *declaration["check_sizes"].values()] if size]
    distinct = [size for position, size in enumerate(sizes) if size not in sizes[:position]]
    if len(distinct) < 2:
        stated = declaration.get("fixed") or ()
        return {dim: length for size in distinct for dim, length in size.items() if dim in stated}
    return {dim: length for dim, length in distinct[0].items() if all(size.get(dim) == length for size in distinct)}


@of_declaration
def free_lengths(declaration: Declaration) -> dict[str, int]:
    """Returns the dims that differ from size to size, with their lengths in the first check size."""
    fixed = fixed_lengths(declaration)
    return {dim: length for dim, length in smallest(declaration).items() if dim not in fixed}


def is_possible(declaration: Declaration, binding: Mapping[str, int]) -> bool:
    """Tells whether every length of every input is valid for these lengths of dims."""
    try:
        return largest(declaration, binding) >= 0 and has_ends(declaration, binding)
    except expression.Impossible:
        return False


def has_ends(declaration: Declaration, binding: Mapping[str, int]) -> bool:
    """Tells whether all offsets have room for a first and a last one."""
    lasts = (given["shape"][-1:] for given in tensors(declaration) if given["init"]["kind"] == "offsets")
    return all(length >= 2 for last in lasts for length in bind_shape(last, binding))


def small_lengths(declaration: Declaration, limit: int = INTERPRETER_ELEMENTS) -> dict[str, int]:
    """Returns the lengths of edges that no block decides."""
    return _odd(declaration, _within(declaration, smallest(declaration), limit // 16))


def _within(declaration: Declaration, binding: Mapping[str, int], limit: int) -> dict[str, int]:
    """Returns `binding` with its longest free dims halved until no input has more than `limit` elements."""
    bound, free = dict(binding), free_lengths(declaration)
    while free and largest(declaration, bound) > limit:
        longest = max(free, key=lambda dim: bound[dim])
        halved = {**bound, longest: bound[longest] // 2}
        if bound[longest] <= 4 or not is_possible(declaration, halved):
            break
        bound = halved
    return bound


def _odd(declaration: Declaration, binding: Mapping[str, int]) -> dict[str, int]:
    """Returns `binding` with free dims that are odd, and no two of them equal where they are long enough: what takes one for another, or for a multiple of a block, shows."""
    bound = dict(binding)
    for position, dim in enumerate(one for one in dims(declaration) if one in free_lengths(declaration)):
        length = bound[dim]
        odd = {**bound, dim: length - 2 * position - (1 - length % 2)}
        if odd[dim] >= 4 and is_possible(declaration, odd):
            bound = odd
    return bound


def emptied(declaration: Declaration, free: Sequence[str]) -> str:
    """Returns the dim of `free` that is empty in the case without elements: the first one that the inputs name and that holds no channels, which torch treats in its own ways if there are none, that no integer of an input points into: on a device torch ends the process where there is nothing to point to; and that no shape wants to be longer, as `N - 3` does."""
    named, channels = dims(declaration), channels_of(declaration)
    free = sorted(free, key=lambda dim: named.index(dim) if dim in named else len(named))
    held = {*steps(declaration), *taken(declaration), *pointed_into(declaration), *segments(declaration), *channels}
    others = [dim for dim in free if dim not in channels]
    own = smallest(declaration)
    possible = [dim for dim in free if dim not in held and is_possible(declaration, {**own, dim: 0})]
    return next(iter((*possible, *others, *free)))


def channels_of(declaration: Declaration) -> set[str]:
    """Returns the dims of the weight of a convolution and of its input's channels: of no channels torch makes nothing of the shape that it makes of others."""
    shapes = [given["shape"] for given in tensors(declaration)[:2]]
    if CONVOLVING not in str(declaration.get("torch") or "") or len(shapes) < 2:
        return set()
    return {dim for dim in (*shapes[0][1:2], *shapes[1]) if isinstance(dim, str)}


CONVOLVING = ".conv"
"""What is in the names of convolutions."""


def pointed_into(declaration: Declaration) -> set[str]:
    """Returns the dims that bound the integers of an input."""
    found: set[str] = set()
    for given in tensors(declaration):
        init = given["init"]["of"] if given["init"]["kind"] == "sorted" else given["init"]
        bounds: tuple[object, ...] = ()
        if init["kind"] in ("randint", "distinct", "unique_between"):
            bounds = (init["low"], init["high"])
        elif init["kind"] == "offsets":
            bounds = (init["total"],)
        found |= {word for bound in bounds if isinstance(bound, str) for word in re.findall(r"[A-Za-z_]\w*", bound)}
    return found
