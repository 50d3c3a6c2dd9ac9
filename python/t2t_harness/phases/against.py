"""Measures two versions of a kernel against each other: both in one process, in pairs of short runs, with the interval of the ratio of their times at each size.

It is a screening that goes on until each size tells which version is faster, or that they differ by less than is worth a word. In the request the present version is the
`candidate`, the other one the `incumbent`. It chooses nothing, and nothing of it is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_harness.measuring import screening, spans, statistics, telemetry
from t2t_harness.phases import screen

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Against, AgainstSize, Documents, Reply, ScreenRequest

SPENT_S = 30.0
"""How many seconds after the last preparation the device's time is spent: the next look is then the last."""

LEAST = screening.LOOKS[0]
"""So many pairs are made, however long they take."""


@spans.told
def against(request: ScreenRequest) -> Reply:
    """Returns the reply with the document `against`, or a rejection as `screen.paired` says. Ratios are the other version's time over the present one's."""
    return screen.paired(request, against_of)


def against_of(found: screen.Screening) -> Documents:
    """Returns the document `against`. Raises what a wrapper raises."""
    sizes = screen.begun(found)
    found.until_s = found.clock.counter() + SPENT_S
    pairs = 0
    while True:
        for size in sizes.values():
            screen.run_pair(found, size, pairs)
        pairs += 1
        is_spent = found.is_spent
        if pairs < LEAST or (pairs not in screening.LOOKS and not is_spent):
            continue
        ratios = {name: ratio_of(size) for name, size in sizes.items()}
        if is_spent or pairs >= screening.LOOKS[-1] or all(one.verdict != "open" for one in ratios.values()):
            break
    document: Against = {
        "clock": found.clock.name,
        "model": found.request["model"],
        "pairs": pairs,
        "error": screening.ERROR,
        "sizes": {name: told(size, ratios[name]) for name, size in sizes.items()},
        "device_s": found.device_s,
        "telemetry": telemetry.snapshot(found.request),
    }
    return {"against": document}


def ratio_of(size: screen.Size) -> screening.Ratio:
    """Returns how many times as long the other version takes as the present one."""
    return screening.ratio(means(size, "incumbent"), means(size, "candidate"))


def means(size: screen.Size, who: str) -> list[float]:
    """Returns the time in ms of each run of a subject."""
    return [statistics.mean(samples) for samples in size.runs[who].samples]


def told(size: screen.Size, ratio: screening.Ratio) -> AgainstSize:
    """Returns what is known of a size; times are the means of all pairs."""
    return {
        "binding": size.case.binding,
        "dtype": size.case.dtype,
        "present_ms": statistics.mean(means(size, "candidate")),
        "other_ms": statistics.mean(means(size, "incumbent")),
        "ratio": ratio.ratio,
        "low": ratio.low,
        "high": ratio.high,
        "verdict": ratio.verdict,
    }
