"""Lengths at which windows of a pool whose number is asked for have other bounds in float32 than in integers.

torch has integers there: window `o` of `n` begins at `o * L // n`. A kernel that multiplies by `L / n`, or by `1 / n`, rounds, and is one element off at few lengths. torch's `interpolate` rounds so itself, and has none of them.

Nothing here makes values, or imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from t2t_harness.cases import elementwise, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op import single
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

ARGUMENT = "output_size"
"""The argument that says how many windows there are."""

WINDOWS, LENGTHS = 28, (62, 32)
"""Another number of windows, and lengths at which one begins too early, or ends too late, in float32."""

FEW = 2
"""The number of windows along other dims."""

MOST = 512
"""The longest length that is looked at for a declared number of windows."""

MOST_WINDOWS = 64
"""The largest number of windows for which lengths are looked for."""


def is_asked(declaration: Declaration) -> bool:
    """Tells whether the op is one of torch's pools that are told how many windows there are."""
    return elementwise.name_of(declaration).startswith("adaptive_")


def sizes_away(value: object, rank: int) -> list[object]:
    """Returns another number of windows than `value` for an input of `rank` dims, of which the first two are not pooled; of several dims the last one has it, and the others few."""
    dims = len(value) if isinstance(value, list) else max(rank - 2, 1)
    wanted = [FEW] * (dims - 1) + [WINDOWS]
    found = wanted if isinstance(value, list) or dims > 1 else WINDOWS
    return [] if found == value else [found]


def shapes_away(declaration: Declaration) -> Iterator[dict[str, int]]:
    """Yields the lengths of all dims at which `WINDOWS` windows show it."""
    dims = along(declaration)
    others = probing.NARROW if len(tensors(declaration)[0]["shape"]) < 4 else 1
    for length in LENGTHS if dims else ():
        yield probing.bound(declaration, {dims[-1]: length}, others)


def of_declared(declaration: Declaration, limit: int) -> Iterator[Case]:
    """Yields shapes whose last dim has a length at which bounds in float32 are off, for the declared number of windows."""
    value, dims = declaration["kwargs"].get(ARGUMENT), along(declaration)
    value = value[-1] if isinstance(value, list) and value else value
    if type(value) is int and dims and is_asked(declaration):
        for length in lengths(value):
            yield from probing.shape(declaration, "shape", {dims[-1]: length}, probing.NARROW, limit, (dims[-1],))


def along(declaration: Declaration) -> list[str]:
    """Returns the last dim of the first input in a list; nothing where its length is fixed."""
    inputs, loose = tensors(declaration), probing.loose(declaration)
    return [str(dim) for dim in inputs[0]["shape"][-1:] if dim in loose] if inputs else []


@lru_cache
def lengths(windows: int) -> tuple[int, ...]:
    """Returns the shortest length at which a bound in float32 is off, for each kind of bound, without repetition; nothing for few `windows`, for which there is none."""
    if not 1 < windows <= MOST_WINDOWS:
        return ()
    found: dict[int, None] = {}
    for is_off in (begins_off, ends_off, is_off_by_reciprocal):
        if not any(is_off(length, windows) for length in found):
            found |= dict.fromkeys([one for one in range(2, MOST + 1) if is_off(one, windows)][:1])
    return tuple(found)


def begins_off(length: int, windows: int) -> bool:
    """Tells whether a window begins elsewhere where its number is multiplied by `length / windows`."""
    step = single.rounded(length / windows)
    return any(math.floor(single.rounded(one * step)) != one * length // windows for one in range(windows))


def ends_off(length: int, windows: int) -> bool:
    """Tells whether a window ends elsewhere where that is done."""
    step = single.rounded(length / windows)
    ends = ((min(math.ceil(single.rounded(one * step)), length), one) for one in range(1, windows + 1))
    return any(end != -(-one * length // windows) for end, one in ends)


def is_off_by_reciprocal(length: int, windows: int) -> bool:
    """Tells whether a window has other bounds where `1 / windows` is multiplied by."""
    part = single.rounded(1 / windows)
    places = ((single.rounded(one * length * part), one) for one in range(windows + 1))
    return any(
        math.floor(place) != one * length // windows or min(math.ceil(place), length) != -(-one * length // windows)
        for place, one in places
    )
