"""Whether a candidate may be faster than the kernel that it is to replace: a group-sequential test on pairs of short runs. Pure arithmetic; it knows no clock and no device.

A pair is a short run of both kernels at every size, one after the other, and gives the logarithm of the ratio of their Finals. What slows the device slows both, so pairs vary
less than runs do. After some numbers of pairs, the looks, the ratio has an interval. Screening ends at the first look at which

- the interval lies above 1: the candidate is `slower`;
- it lies above 1 - `WORTH`: whatever the candidate gains is not worth a bench, `no-gain`;
- it lies below 1: the candidate is `faster`.

It also ends after the last pair (`pairs`), and where the device's time is spent (`time`).

The error rate. All intervals of one screening hold at once in at least 1 - `ERROR` of screenings: `ERROR` is split evenly (Bonferroni) between the looks, with one more for the
look at which time is spent, and Student's interval of each is made at that level. So a candidate that is no faster is called faster in at most half of `ERROR`, and one that is
faster by more than `WORTH` is called slower or without gain in at most half of `ERROR`. That is alpha spending (Lan and DeMets, Biometrika 70, 1983, pages 659-663) with equal
parts. It supposes that pairs are independent and their logarithms normal; benches/screening.py says how often it errs on recorded runs, which are not quite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from t2t_harness.measuring import statistics, stopping

LOOKS = (3, 6, 10, 16, 26, 40)
"""After how many pairs the interval is looked at, the last one the most that are made. Three tell a candidate that takes much longer."""

ERROR = 0.05
"""How often an interval of a screening may miss."""

LEVEL = ERROR / (len(LOOKS) + 1)
"""The chance that the interval at one look misses."""

WORTH = 0.01
"""The least gain that is worth a bench. `t2t compare` calls two benches that differ by less the same."""

LEAST_SPREAD = 0.002
"""The least standard deviation of the logarithms that is believed. Runs often have one of two speeds a per cent apart, so a few agree more closely by chance."""

Why: TypeAlias = Literal["faster", "slower", "no-gain", "pairs", "time"]
"""Why screening ended."""


@dataclass(frozen=True)
class End:
    """The end of a screening. Ratios are the candidate's Final over the incumbent's: below 1 the candidate is faster."""

    pairs: int
    why: Why
    ratio: float
    """The geometric mean of the ratios of the pairs."""
    low: float
    high: float
    """The bounds of its interval; 0 and infinity where one pair was made."""

    @property
    def may_win(self) -> bool:
        """Tells whether the candidate is worth a bench: it is faster, or seems to be where the pairs or the time did not tell."""
        return self.why == "faster" or (self.why in ("pairs", "time") and self.ratio < 1)


def end(incumbent: Sequence[float], candidate: Sequence[float], *, is_spent: bool) -> End | None:
    """Returns the end of a screening whose pairs had these Finals in ms, equally many of both and at least one, all above 0. None where another pair is needed.

    `is_spent` says that the device's time is: this look is then the last.
    """
    pairs = len(candidate)
    if pairs not in LOOKS and not is_spent:
        return None
    middle, low, high = interval(candidate, incumbent)
    why = why_of(low, high)
    if why is None and (is_spent or pairs >= LOOKS[-1]):
        why = "pairs" if pairs >= LOOKS[-1] else "time"
    return None if why is None else End(pairs, why, math.exp(middle), math.exp(low), math.exp(high))


def interval(times: Sequence[float], others: Sequence[float]) -> tuple[float, float, float]:
    """Returns the mean logarithm of the ratio of `times` to `others`, those of the same pairs, and the bounds of its interval at a look."""
    logarithms = [math.log(own / other) for own, other in zip(times, others, strict=True)]
    middle, within = statistics.mean(logarithms), half_width(logarithms)
    return middle, middle - within, middle + within


Verdict: TypeAlias = Literal["faster", "slower", "same", "open"]
"""What an interval tells of two kernels: which one is faster, that they differ by less than `WORTH`, or nothing."""


@dataclass(frozen=True)
class Ratio:
    """How many times as long one kernel takes as the other, with an interval."""

    ratio: float
    """The geometric mean of the ratios of the pairs."""
    low: float
    high: float
    """The bounds of its interval; 0 and infinity where one pair was made."""

    @property
    def verdict(self) -> Verdict:
        """Returns what it tells of the other kernel."""
        if self.low > 1:
            return "faster"
        if self.high < 1:
            return "slower"
        return "same" if self.low > 1 - WORTH and self.high < 1 / (1 - WORTH) else "open"


def ratio(times: Sequence[float], others: Sequence[float]) -> Ratio:
    """Returns the ratio of `times` to `others`, those of the same pairs, at a look: at most one in 1 / `ERROR` of such ratios has an interval at any look that misses."""
    return Ratio(*map(math.exp, interval(times, others)))


def half_width(logarithms: Sequence[float]) -> float:
    """Returns half the width of the interval of their mean; infinity for a single one."""
    count = len(logarithms)
    if count < 2:
        return math.inf
    middle = statistics.mean(logarithms)
    spread = math.sqrt(math.fsum((one - middle) ** 2 for one in logarithms) / (count - 1))
    return stopping.critical(LEVEL, count - 1) * max(spread, LEAST_SPREAD) / math.sqrt(count)


def why_of(low: float, high: float) -> Why | None:
    """Returns what an interval of the logarithm of the ratio tells, None where it tells nothing yet."""
    if low > 0:
        return "slower"
    if high < 0:
        return "faster"
    return "no-gain" if low > math.log(1 - WORTH) else None
