"""What the results of a random op show together: a share, a distribution, and that no place or seed depends on another.

All declared cases of a dtype and all their seeds are one pool. Every test has the same level, and all of a check together have
`chance.LEVEL`. torch is imported only inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_harness.judging import chance
from t2t_harness.judging.random_ops import Seen

if TYPE_CHECKING:
    import torch

CERTAIN = 1e-10
"""Two seeds give the same result by chance less often than this, or it is no sign of anything. Of one check at most some
hundred pairs are looked at."""


AT = " at "
"""What stands between a dtype and the arguments of a pool that has others than the declared ones."""

EIGHTHS = 8
"""Parts of equal chance into which uniform numbers are sorted."""

PARTS = 4
"""Parts into which elements are sorted by their chance."""


@dataclass
class Pool:
    """The tests of one dtype."""

    share: chance.Sums = field(default_factory=chance.Sums)
    shares: dict[str, chance.Sums] = field(default_factory=dict)
    """By how likely the elements are to come out, where they are not all as likely."""
    draws: chance.Draws = field(default_factory=chance.Draws)
    apart: dict[str, chance.Sums] = field(default_factory=dict)
    """By what two elements are apart."""
    all_hit: chance.Sums = field(default_factory=chance.Sums)
    none_hit: chance.Sums = field(default_factory=chance.Sums)
    """What the share would be if every element came out, and if none did."""

    def add(self, seen: list[Seen]) -> None:
        """Adds what the runs of one case with different seeds show."""
        before = None
        for one in seen:
            values = centred(one)
            if values is None:
                continue
            self._add_alone(one, values)
            for name, distance in lags(values.shape):
                self._add_pairs(
                    name, values.flat()[distance:], values.flat()[:-distance], values.spread()[distance:], values.bound
                )
            if one.draws is not None:
                self._add_halves(values)
            if before is not None:
                self._add_seeds(values, before.flat())
                if one.draws is not None and before.shape == values.shape:
                    self._add_halves_between(values.flat(), before.flat(), "of the next seed")
                    self._add_halves_between(before.flat(), values.flat(), "of the seed before")
            before = values

    def _add_halves(self, values: Centred) -> None:
        """Adds how often a uniform number is in the upper half where the one beside it is in one of `EIGHTHS` parts: two that are made of one need not agree in size, and depend on each other all the same."""
        own = values.flat()
        for distance in sorted({1, *(step for _, step in shifts(values.shape))}):
            self._add_halves_between(own[:-distance], own[distance:], f"{distance} on")
            self._add_halves_between(own[distance:], own[:-distance], f"{distance} back")

    def _add_halves_between(self, one: torch.Tensor, other: torch.Tensor, where: str) -> None:
        """Adds how often `one` is in the upper half where the `other` is in one of `EIGHTHS` parts."""
        halves = (one > 0).double() - 0.5
        parts = ((other + 0.5) * EIGHTHS).long().clamp(0, EIGHTHS - 1)
        chance_of_part = 1 / EIGHTHS
        for place in range(EIGHTHS if halves.numel() else 0):
            inside = (parts == place).double() - chance_of_part
            # A half is as far from its mean as the other one, so that the variance is the same whatever came before; `back` is read from the end.
            variance = halves.numel() * 0.25 * chance_of_part * (1 - chance_of_part)
            sums = self.apart.setdefault(f"the upper half and part {place} of {EIGHTHS} {where}", chance.Sums())
            sums.add(halves * inside, variance, 0.5)

    def _add_seeds(self, values: Centred, before: torch.Tensor) -> None:
        """Adds what a result and that of the seed before it have in common, place by place and shifted."""
        name, later, spread = "one seed and the next", values.flat(), values.spread()
        if later.shape != before.shape:
            return
        self._add_pairs(name, later, before, spread, values.bound)
        for shift, distance in shifts(values.shape):
            self._add_pairs(f"{name} {shift} on", later[distance:], before[:-distance], spread[distance:], values.bound)
            self._add_pairs(
                f"{name} {shift} back", later[:-distance], before[distance:], spread[:-distance], values.bound
            )

    def _add_alone(self, one: Seen, values: Centred) -> None:
        if one.draws is not None:
            self.draws.add(one.draws)
            return
        assert one.chance is not None
        variance = float(values.variance.sum())
        self.share.add(values.centred, variance, values.bound)
        if float(one.chance.max()) > float(one.chance.min()):
            for part in range(PARTS):
                inside = (one.chance > part / PARTS) & (one.chance <= (part + 1) / PARTS)
                sums = self.shares.setdefault(
                    f"share where it is {part / PARTS:g} to {(part + 1) / PARTS:g}", chance.Sums()
                )
                sums.add(values.centred[inside], float(values.variance[inside].sum()), values.bound)
        uncertain = (one.chance > 0) & (one.chance < 1)
        self.all_hit.add((1 - one.chance).where(uncertain, one.chance.new_zeros(())), variance, values.bound)
        self.none_hit.add((-one.chance).where(uncertain, one.chance.new_zeros(())), variance, values.bound)

    def _add_pairs(
        self, name: str, later: torch.Tensor, earlier: torch.Tensor, spread: torch.Tensor, bound: float
    ) -> None:
        sums = self.apart.setdefault(name, chance.Sums())
        sums.add(later * earlier, float(spread.sum()) * bound**2, bound**2)

    def tests(self) -> Iterator[tuple[str, chance.Sums | chance.Draws]]:
        """Yields the tests with their names."""
        if self.share.count:
            yield "share", self.share
            yield from ((name, sums) for name, sums in self.shares.items() if sums.count)
        if self.draws.count:
            yield "distribution", self.draws
        yield from self.apart.items()

    def is_too_small(self, level: float) -> str | None:
        """Returns a wrong result that the tests could not tell from right ones, or None."""
        if self.share.count and not (self.all_hit.is_off(level) and self.none_hit.is_off(level)):
            return "everything comes out, or nothing" if self.share.variance > 0 else None
        if self.draws.count and self.draws.allowed(level) >= 0.5:
            return "the same everywhere"
        return None


@dataclass(frozen=True)
class Centred:
    """Numbers that are zero in expectation, with the variance of each and the largest magnitude."""

    centred: torch.Tensor
    variance: torch.Tensor
    bound: float

    @property
    def shape(self) -> list[int]:
        """Returns the shape of the result."""
        return list(self.centred.shape)

    def flat(self) -> torch.Tensor:
        """Returns the numbers in row-major order."""
        return self.centred.reshape(-1)

    def spread(self) -> torch.Tensor:
        """Returns the variances in row-major order."""
        return self.variance.reshape(-1)


def centred(seen: Seen) -> Centred | None:
    """Returns what a result shows as numbers that are zero in expectation; None where it shows nothing."""
    if seen.draws is not None:
        values = seen.draws - 0.5
        return Centred(values, values.new_full(values.shape, 1 / 12), 0.5)
    if seen.hits is None or seen.chance is None:
        return None
    variance = seen.chance * (1 - seen.chance)
    values = (seen.hits - seen.chance).where(variance > 0, variance.new_zeros(()))
    uncertain = seen.chance[variance > 0]
    bound = float(uncertain.maximum(1 - uncertain).max()) if uncertain.numel() else 0.0
    return Centred(values, variance, bound)


def lags(shape: list[int]) -> Iterator[tuple[str, int]]:
    """Yields the distances at which elements must not depend on each other: powers of two, those of the dims, and what rows are longer than powers of two: a number of a block may be that of the next row, too."""
    count = math.prod(shape)
    distance = 1
    while distance < count:
        yield f"elements {distance} apart", distance
        distance *= 2
    row = shape[-1] if len(shape) > 1 else 0
    for power in range(4, max(row - 1, 0).bit_length()):
        rest = row - (1 << power)
        if rest & (rest - 1):
            yield f"elements {rest} apart", rest
    for dim in range(1, len(shape)):
        step = math.prod(shape[dim:])
        if 0 < step < count and step & (step - 1):
            yield f"neighbours along dim {dim - 1}", step


def shifts(shape: list[int]) -> Iterator[tuple[str, int]]:
    """Yields the distances by which the result of a seed must not be that of the seed before it: one element, and one along each dim but the last."""
    steps = {math.prod(shape[dim:]): f"one along dim {dim - 1}" for dim in range(len(shape) - 1, 0, -1)}
    yield from ((name, step) for step, name in {**steps, 1: "one element"}.items() if 0 < step < math.prod(shape))


def is_same(one: Seen, other: Seen) -> bool:
    """Tells whether the results of two seeds are the same where chance would hardly make them so."""
    if one.draws is not None and other.draws is not None:
        return one.draws.numel() >= 4 and one.draws.equal(other.draws)
    if one.hits is None or other.hits is None or one.chance is None:
        return False
    agree = one.chance**2 + (1 - one.chance) ** 2
    return bool(one.hits.equal(other.hits)) and float(agree.log().sum()) < math.log(CERTAIN)


def conclude(pools: dict[str, Pool]) -> tuple[str | None, list[str], dict[str, object]]:
    """Returns what is wrong with the pools by dtype, and by arguments where those are not the declared ones, or None; the wrong results that they could not tell from right ones;
    and the tests, as evidence holds them."""
    count = sum(1 for pool in pools.values() for _ in pool.tests())
    level = chance.LEVEL / max(count, 1)
    rows: list[dict[str, object]] = []
    wrong: str | None = None
    for key, pool in pools.items():
        dtype, _, at = key.partition(AT)
        for name, test in pool.tests():
            is_off = test.is_off(level)
            verdict = "off" if is_off else "passed"
            shown = f"{name}{AT}{at}" if at else name
            rows.append({"dtype": dtype, "test": shown, "samples": test.count, "verdict": verdict})
            if is_off and wrong is None:
                wrong = f"{words(name, test, pool, level)} ({key}, {test.count} samples)"
    # Of other arguments what can be told is enough.
    asked = {key: pool for key, pool in pools.items() if AT not in key}
    unfit = [f"{found} ({dtype})" for dtype, pool in asked.items() if (found := pool.is_too_small(level)) is not None]
    return wrong, unfit, {"level": chance.LEVEL, "tests": rows}


def words(name: str, test: chance.Sums | chance.Draws, pool: Pool, level: float) -> str:
    """Returns what a test found, for people."""
    if isinstance(test, chance.Draws):
        far, allowed = test.distance(), test.allowed(level)
        return f"the distribution is off: its distance is {far:.3g}, at most {allowed:.3g} is chance"
    off, allowed = test.total / max(test.count, 1), test.reach(level) / max(test.count, 1)
    if name.startswith("share"):
        if name != "share":
            return f"the {name} is off by {off:+.3g}, {allowed:.2g} more or less is chance"
        expected = -pool.none_hit.total / max(test.count, 1)
        return f"the share is {expected + off:.3g}, {expected:.3g} is right, {allowed:.2g} more or less is chance"
    return f"what is drawn is not independent: {name} agree by {off:.2g}, at most {allowed:.2g} is chance"
