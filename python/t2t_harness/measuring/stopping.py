"""When a size is measured enough where ops.yaml says `bench: {stop: auto}`: a group-sequential test on the figures themselves.

Each run is cut into tenths, of which each is a run of its own. After some numbers of them, the looks, every subject has an interval of its mean. Measuring ends at the
first look at which the intervals are narrow, or which of two subjects is faster is decided, or neither is to be expected of all runs. Pure arithmetic; it knows no clock and no
device.

The error rate. A comparison of the Finals of two subjects is wrong at most in `ERROR` of cases: `ERROR` is split evenly (Bonferroni) between the figures that it stands on, two a
size, and the looks, and Student's interval of each is made at that level. So all of them hold at once, whichever look is the last, and with them the sums of their
bounds. That is alpha spending (Lan and DeMets, Biometrika 70, 1983, pages 659-663) with equal parts, without the correlation of the looks, which would allow a little
more. It supposes that runs are independent and normal; benches/stopping.py says how often it errs on recorded ones, which are not quite.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from t2t_harness.measuring import statistics

PARTS = 10
"""How many runs one run of the protocol is cut into."""

ERROR = 0.05
"""How often a comparison of two Finals may be wrong."""

PRECISE = 0.01
"""Half the width of a narrow interval, as a share of the Final. Two Finals that differ by more than twice that are told apart where both are known so closely."""

LEAST_SPREAD = 0.001
"""The least standard deviation of runs, as a share of their mean, that is believed: a few that agree more closely do so by chance."""

DECIDING = 20
"""From this look on a decision is enough, and so is that none is to be expected: below, a figure that decides one comparison would tell little in others."""

FIRST = 6
"""The first look. Runs often have one of two speeds a per cent apart, and fewer would too often all have the same."""

Why: TypeAlias = Literal["precise", "decided", "varies", "runs"]
"""Why measuring ended: the intervals are narrow; it is decided which subject is faster; runs vary so much that all of them would do neither; no run is left."""


@dataclass(frozen=True)
class Known:
    """What the runs of a subject tell of its mean, in ms."""

    mean: float = 0.0
    within: float = 0.0
    """Half the width of its interval."""

    def __add__(self, other: Known) -> Known:
        """Returns what is known of the sum: the bounds add up."""
        return Known(self.mean + other.mean, self.within + other.within)

    def is_narrow(self, beside: Known) -> bool:
        """Tells whether the interval is narrow for the sum of it and what is known `beside`."""
        return self.within <= PRECISE * (self.mean + beside.mean)

    def differs(self, other: Known) -> bool:
        """Tells whether the two intervals lie apart."""
        return abs(self.mean - other.mean) > self.within + other.within


@dataclass(frozen=True)
class Plan:
    """How often is looked, and at what level."""

    looks: tuple[int, ...]
    """Numbers of runs, the last one the most that are made."""
    level: float
    """The chance that one interval at one look misses."""

    def known(self, means: Sequence[float], runs: int | None = None) -> Known:
        """Returns what the means of so many runs, two or more, tell; or what so many `runs` would tell if they varied as these do."""
        runs = runs or len(means)
        middle = statistics.mean(means)
        spread = max(statistics.variation(means), LEAST_SPREAD)
        return Known(middle, critical(self.level, runs - 1) * spread * middle / math.sqrt(runs))


@dataclass(frozen=True)
class Stop:
    """The end of a size."""

    runs: int
    """How many runs were made of each subject."""
    most: int
    """How many there would have been at most."""
    why: Why
    within: dict[str, float]
    """Subject → half the width of its interval, in ms."""


@dataclass
class Test:
    """The test of one measurement. Sizes come one after the other, the largest first: it decides the Final, so the others need not be known as closely."""

    plan: Plan
    before: dict[str, Known] = field(default_factory=dict)
    """Subject → the sum over the sizes that are over."""
    last: Stop | None = None
    """The end of the last size that is over."""

    def end(self, means: Mapping[str, Sequence[float]]) -> Stop | None:
        """Returns the end of the present size where there are runs enough, whose means by subject are `means`, and goes on to the next size. None where another run
        is needed; subjects have equally many."""
        runs = len(next(iter(means.values())))
        why = self.why(runs, means) if runs in self.plan.looks else None
        if why is None:
            return None
        known = {who: self.plan.known(values) for who, values in means.items()}
        self.before = {who: self.sum(who) + one for who, one in known.items()}
        self.last = Stop(runs, self.plan.looks[-1], why, {who: one.within for who, one in known.items()})
        return self.last

    def why(self, runs: int, means: Mapping[str, Sequence[float]]) -> Why | None:
        """Returns why a look is the last, None where it is not."""
        most = self.plan.looks[-1]
        if why := self.told(runs, {who: self.plan.known(values) for who, values in means.items()}):
            return why
        if runs == most:
            return "runs"
        # Each interval holds at whatever look is the last, so to give up costs no error.
        hoped = {who: self.plan.known(values, most) for who, values in means.items()}
        return "varies" if runs >= DECIDING and self.told(most, hoped) is None else None

    def told(self, runs: int, known: Mapping[str, Known]) -> Literal["precise", "decided"] | None:
        """Returns what so many runs tell enough by, None where they do not."""
        if all(one.is_narrow(self.sum(who)) for who, one in known.items()):
            return "precise"
        sums = [self.sum(who) + one for who, one in known.items()]
        pairs = list(itertools.combinations(sums, 2))
        if runs >= DECIDING and pairs and all(one.differs(other) for one, other in pairs):
            return "decided"
        return None

    def sum(self, who: str) -> Known:
        """Returns what is known of a subject at the sizes that are over."""
        return self.before.get(who, Known())

    def next_turn(self, runs: int) -> int:
        """Returns how many runs each subject makes in its next turn, `runs` having been made: as many as to the next look, at most as long as one run of the protocol."""
        return min(next(look for look in self.plan.looks if look > runs) - runs, PARTS)


def plan(runs: int, sizes: int) -> Plan:
    """Returns the plan for so many `runs` of the protocol at so many sizes, one or more of each."""
    most = runs * PARTS
    series = [FIRST, *(step * 10**power for power in range(1, 7) for step in (1, 2, 5))]
    looks = (*(look for look in series if look < most), most)
    return Plan(looks, ERROR / (2 * sizes * len(looks)))


@functools.cache
def critical(level: float, freedom: int) -> float:
    """Returns beyond what, in either direction, Student's t with so many degrees of freedom lies with the chance `level`."""
    low, high = 0.0, 1.0
    while beyond(high, freedom) > level:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, freedom) > level else (low, middle)
    return high


def beyond(value: float, freedom: int) -> float:
    """Returns the chance that Student's t lies beyond ±`value`: the finite series for a whole number of degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(value / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    term = cosine if is_odd else 1.0
    terms = [term] if freedom > 1 else []
    for number in range(3 if is_odd else 2, freedom, 2):
        term *= cosine * cosine * (number - 1) / number
        terms.append(term)
    within = sine * math.fsum(terms)
    return 1.0 - (2 / math.pi * (angle + within) if is_odd else within)


AUTO: Final = "auto"
"""What ops.yaml calls this rule."""
