"""The lengths of dims that torch takes, found out by asking it: a reference may want whole windows, heads or groups, and a window may not be longer than its image.

An analysis asks, on tensors without values; cases are then made of lengths that are taken. It knows no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Taken

FIRST = 3
"""Where lengths up to this one are all taken, no others are asked for."""

MOST = 32
"""Lengths up to this one are all asked for where some are not taken."""

FURTHER = (64, 128, 256, 512, 1024)
"""Further ones that are asked for: where they are powers of two, more is known than of the small ones."""

ASKED = 400
"""So often torch is asked for one op at most. What is not known by then is taken for free."""

Accepts = Callable[[Mapping[str, int]], bool]
"""Tells whether torch takes the call at a binding."""


def taken(sizes: Iterable[Mapping[str, int]], accepts: Accepts) -> dict[str, Taken]:
    """Returns, for each dim of which torch refuses some lengths, those that it takes; the other dims are as in the smallest of `sizes`. Nothing where torch refuses even that one."""
    known = sorted((dict(size) for size in sizes if size), key=lambda size: sorted(size.values(), reverse=True))
    if not known or not accepts(known[0]):
        return {}
    base, asked = known[0], Asked(accepts)
    found: dict[str, Taken] = {}
    for dim in sorted(base):
        one = of_dim(base, dim, asked)
        if asked.is_over:
            break
        if one is not None:
            found[dim] = one
    for dim, one in list(found.items()):
        of = next((other for other in base if other != dim and divides(base, dim, other, one, asked)), None)
        if of is None or asked.is_over:
            continue
        one["divides"] = of
        # The other one may have been found in multiples of this one's length alone.
        alone = of_dim({**base, dim: 1}, of, asked)
        found.pop(of, None)
        if alone is not None and not asked.is_over:
            found[of] = alone
    return found


class Asked:
    """Asks torch, at most `ASKED` times."""

    def __init__(self, accepts: Accepts) -> None:
        self.accepts = accepts
        self.left = ASKED
        self.is_over = False
        """Whether an answer was wanted and not got."""

    def __call__(self, binding: Mapping[str, int]) -> bool:
        """Returns the answer; False where there was none."""
        self.is_over = self.is_over or self.left == 0
        if self.is_over:
            return False
        self.left -= 1
        return self.accepts(binding)


def of_dim(base: Mapping[str, int], dim: str, asked: Asked) -> Taken | None:
    """Returns the lengths of `dim` that are taken where all others are as in `base`, None where none is refused."""
    first = [length for length in range(1, FIRST + 1) if asked({**base, dim: length})]
    if len(first) == FIRST:
        return up_to(base, dim, asked)
    if (even := evenly(base, dim, asked)) is not None:
        return even
    most = max(MOST, *(base[dim] + more for more in (0, 1, 2)))
    own = {base[dim] * times for times in (1, 2, 3)} | {one for one in FURTHER if one <= 4 * base[dim]}
    further = sorted({*range(FIRST + 1, min(most, MOST) + 1), *own})
    lengths = [*first, *(length for length in further if length > FIRST and asked({**base, dim: length}))]
    return described(lengths, [*range(1, FIRST + 1), *further])


def up_to(base: Mapping[str, int], dim: str, asked: Asked) -> Taken | None:
    """Returns the dim that must be as long as `dim` at least, where torch refuses a long one for the sake of another; None where it does not."""
    long = 2 * max(base.values()) + 1
    if asked({**base, dim: long}):
        return None
    others = [other for other in base if other != dim and asked({**base, dim: long, other: 2 * long})]
    return {"least": 1, "step": 1, "only": [], "divides": None, "within": others[0]} if len(others) == 1 else None


def evenly(base: Mapping[str, int], dim: str, asked: Asked) -> Taken | None:
    """Returns the least length of `dim` that is taken and how far the next one is, where the next ones and the declared one are as far apart, and none between them is taken; else None."""
    least = next((length for length in range(1, MOST + 1) if asked({**base, dim: length})), None)
    if least is None:
        return None
    step = next((step for step in range(1, MOST + 1) if asked({**base, dim: least + step})), None)
    if step is None or (base[dim] - least) % step or base[dim] < least:
        return None
    between = {least + 2 * step + 1, least + 2 * step + step // 2, least + 3 * step - 1} if step > 1 else set()
    is_even = all(asked({**base, dim: least + times * step}) for times in (2, 3, 4))
    is_even = is_even and not any(asked({**base, dim: length}) for length in between)
    return {"least": least, "step": step, "only": [], "divides": None, "within": None} if is_even else None


def described(lengths: Sequence[int], asked: Sequence[int]) -> Taken | None:
    """Returns the form of the `lengths` that are taken of those `asked` for, None where it is but one or none."""
    if len(lengths) < 2:
        return None
    least, step = lengths[0], lengths[1] - lengths[0]
    even = [length for length in asked if length >= least and (length - least) % step == 0]
    if even == list(lengths):
        # They are further apart than the small ones that are asked for first.
        return {"least": least, "step": step, "only": [], "divides": None, "within": None}
    return {"least": least, "step": 1, "only": list(lengths), "divides": None, "within": None}


def divides(base: Mapping[str, int], dim: str, of: str, one: Taken, asked: Asked) -> bool:
    """Tells whether the lengths of `dim` are those that divide the length of `of`, whatever that is."""
    # No power of two, nor twice one: what takes those alone takes no divisors of it.
    length = 15
    wanted = [value for value in range(1, base[of] + 1) if base[of] % value == 0]
    if [value for value in one["only"] if value <= base[of]] != wanted or max(one["only"], default=0) > base[of]:
        return False
    return asked({**base, of: length, dim: 5}) and not asked({**base, of: length, dim: 4})


def fitted(lengths: Mapping[str, Taken], binding: Mapping[str, int]) -> dict[str, int]:
    """Returns `binding` with each length that is not taken made longer, to the next one that is; where there is none, shorter. A dim without elements stays so.

    What a dim divides is at least twice as long, where it is not 1 itself: several have one in common then. What a dim must be within is longer by one: there is more than one place for it.
    """
    found = dict(binding)
    for dim, one in lengths.items():
        if found.get(dim, 0) > 0 and one["divides"] is None:
            found[dim] = next_of(one, found[dim])
    for dim, one in lengths.items():
        around = one["within"]
        if around is not None and found.get(dim, 0) > found.get(around, 0) > 0:
            found[around] = found[dim] + 1
            if around in lengths:
                found[around] = next_of(lengths[around], found[around])
    for dim, one in lengths.items():
        of = one["divides"]
        if of is not None and found.get(dim, 0) > 1 and found.get(of, 0) > 0:
            found[of] = max(-(-found[of] // found[dim]), 2) * found[dim]
    return found


def next_of(one: Taken, length: int) -> int:
    """Returns the least length from `length` on that is taken, or the greatest where none is."""
    if one["only"]:
        return next((value for value in one["only"] if value >= length), one["only"][-1])
    return one["least"] + max(-(-(length - one["least"]) // one["step"]), 0) * one["step"]


def is_taken(one: Taken, length: int) -> bool:
    """Tells whether a length is among those that are taken. A divisor of another dim may be any."""
    return one["divides"] is not None or next_of(one, length) == length
