"""Figures of timings: of one run's samples, of the runs of one size, and of the sizes of one variant. Pure arithmetic, times in milliseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Figure, Run

STEADY = 0.05
"""Largest coefficient of variation of a figure that counts as stable."""

INTERRUPTED = 1.05
"""The mean of a run that nothing interrupted is below this many times its 80th percentile."""


def mean(values: Sequence[float]) -> float:
    """Returns the arithmetic mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("the mean of no values")
    return math.fsum(values) / len(values)


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the value below which `share` (0 to 1) of `values` lies, between neighbours in proportion, as `triton.testing` does."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("a quantile of no values")
    point = share * (len(ordered) - 1)
    lower, upper = math.floor(point), math.ceil(point)
    part = point - lower
    return (1 - part) * ordered[lower] + part * ordered[upper]


def variation(values: Sequence[float]) -> float:
    """Returns the coefficient of variation: the sample standard deviation over the mean; 0 for fewer than two values."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    spread = math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(spread) / middle if middle else 0.0


def geometric_mean(values: Sequence[float]) -> float:
    """Returns the geometric mean of positive values. Raises ValueError for no values."""
    return math.exp(mean([math.log(value) for value in values]))


def run_facts(samples: Sequence[float]) -> Run:
    """Returns mean, median, p20 and p80 of the samples of one run."""
    return {
        "mean": mean(samples),
        "median": quantile(samples, 0.5),
        "p20": quantile(samples, 0.2),
        "p80": quantile(samples, 0.8),
    }


def is_interrupted(run: Run) -> bool:
    """Tells whether a few samples of a run are so long that its mean lies beyond most of them: the host was stopped between two events."""
    return run["mean"] > INTERRUPTED * run["p80"]


def figure(runs: Sequence[Run], repeated: int = 0) -> Figure:
    """Returns the figure of `runs`: the runs themselves, the mean over the runs of each of their facts, and the variation of their means.

    `repeated` is how many runs were made in the place of an interrupted one.
    """
    means = [run["mean"] for run in runs]
    return {
        "runs": [run.copy() for run in runs],
        "mean": mean(means),
        "median": mean([run["median"] for run in runs]),
        "p20": mean([run["p20"] for run in runs]),
        "p80": mean([run["p80"] for run in runs]),
        "cv": variation(means),
        "repeated": repeated,
    }


def comparison(variant: Sequence[float], torch: Sequence[float]) -> dict[str, float]:
    """Returns the two Finals (mean over sizes), their ratio torch / variant, and the geometric mean of the ratios per size.

    Both hold one mean per size, in the same order.
    """
    final, torch_final = mean(variant), mean(torch)
    ratios = [one / other for one, other in zip(torch, variant, strict=True)]
    return {
        "final_ms": final,
        "torch_final_ms": torch_final,
        "speedup": torch_final / final,
        "geomean_speedup": geometric_mean(ratios),
    }
